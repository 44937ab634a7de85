#include <cmath>

#include "mpi_tests.hpp"

// --reproducible on: sums of numbers that are not exact have the same bits in every run, and after
// a recovery.

namespace troupe::test {
namespace {

/// Numbers of very different size, so that their sum depends on the order.
std::vector<float> numbers(int rank, std::int64_t count) {
  std::vector<float> values;
  std::uint64_t state = static_cast<std::uint64_t>(rank) * 977 + 12345;
  for (std::int64_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const auto fraction = static_cast<float>(state >> 40) / 16777216.0f - 0.5f;
    values.push_back(std::ldexp(fraction, static_cast<int>(state >> 32 & 15)));
  }
  return values;
}

class Bits {
 public:
  void add(const std::vector<float>& values) {
    for (const auto value : values) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, &value, sizeof bits);
      hash_ = (hash_ ^ bits) * 0x100000001b3u;
    }
  }
  [[nodiscard]] std::uint64_t get() const { return hash_; }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325u;
};

/// Of what collectives of the world and of a group, and products of matrices, give.
std::uint64_t results(Context& c, Group& group) {
  auto& device = c.device();
  Bits bits;
  for (const std::int64_t count : {1, 1000, 300'000}) {
    const auto source = device.alloc<float>(count), sum = device.alloc<float>(count);
    device.upload<float>(numbers(c.rank(), count), source).get();
    for (auto* ranks : {static_cast<Collectives*>(&c.world()), static_cast<Collectives*>(&group)}) {
      ranks->all_reduce(source, sum, ReduceOp::sum).get();
      bits.add(device.download(sum));
    }
    const auto wide = device.alloc<float>(count * c.size());
    device.upload<float>(numbers(c.rank() + 100, count * c.size()), wide).get();
    c.world().reduce_scatter(wide, sum, ReduceOp::avg).get();
    bits.add(device.download(sum));
  }
  const std::int64_t n = 200;
  const auto a = device.alloc<float>(n * n), product = device.alloc<float>(n * n),
             dot = device.alloc<float>(1);
  device.upload<float>(numbers(c.rank() + 7, n * n), a).get();
  device.blas().gemm(a, a, product, {.m = n, .n = n, .k = n});
  device.blas().dot(a, product, dot);
  bits.add(device.download(product));
  bits.add(device.download(dot));
  return bits.get();
}

}  // namespace

TROUPE_MPI_CASE(reproducible) {
  auto group = c.world().split(c.rank() % 2, -c.rank());
  const auto first = results(c, group);
  c.expect_equal(results(c, group), first, "the same sums have other bits a second time");
  c.world().barrier();
  if (c.first()) c.device().inject(memory::FaultKind::kill);
  c.require(settle(c, 1), "the world does not come back");
  (void)c.device().take_error();
  c.expect_equal(results(c, group), first, "the same sums have other bits after a recovery");
  std::string all = "bits:";
  for (const auto mine : c.world().gather_values(first)) all += " " + std::to_string(mine);
  c.report(all);
}

}  // namespace troupe::test
