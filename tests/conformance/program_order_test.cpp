#include <troupe/lib/rng.hpp>
#include <troupe/lib/sparse.hpp>

#include "conformance.hpp"

// What is submitted behaves as if executed in that order: long random sequences over few,
// overlapping ranges, on all lanes, against the same sequence done here one after the other. All
// values are small integers, so the arithmetic is exact and one misplaced operation shows.

namespace troupe::test {
namespace {

constexpr std::int64_t kLength = 2048;

template <class T>
class ProgramOrder : public Typed<T> {
 protected:
  struct Part {
    std::size_t buffer;
    std::int64_t first;
  };
  static constexpr std::size_t kBuffers = 4;

  std::mt19937_64 random;
  std::vector<GpuRef<T>> buffers;
  std::vector<std::vector<T>> model;
  GpuRef<std::int32_t> index;
  std::vector<std::int32_t> host_index;
  std::vector<PinnedBuffer<T>> pinned;

  void prepare(std::uint64_t seed) {
    random.seed(seed);
    for (std::size_t i = 0; i < kBuffers; ++i) {
      model.emplace_back(kLength);
      for (auto& value : model.back()) value = static_cast<T>(random() % 8);
      buffers.push_back(put(model.back()));
    }
    for (std::int64_t i = 0; i < kLength; ++i)
      host_index.push_back(static_cast<std::int32_t>(random() % kLength));
    index = put(host_index);
  }
  Part part(std::int64_t count) {
    return {random() % kBuffers,
            static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(kLength - count + 1))};
  }
  /// A part that does not overlap `other`: operations whose operands overlap have no defined
  /// meaning.
  Part part_apart_from(const Part& other, std::int64_t count) {
    for (;;) {
      const auto chosen = part(count);
      if (chosen.buffer != other.buffer || std::abs(chosen.first - other.first) >= count)
        return chosen;
    }
  }
  GpuRef<T> on_device(const Part& p, std::int64_t count) const {
    return buffers[p.buffer].slice(p.first, count);
  }
  std::span<T> in_model(const Part& p, std::int64_t count) {
    return std::span(model[p.buffer])
        .subspan(static_cast<std::size_t>(p.first), static_cast<std::size_t>(count));
  }

  /// One operation, here and there. Values stay below 64: exact in every dtype.
  void step() {
    const auto count = static_cast<std::int64_t>(1 + random() % (kLength / 3));
    const auto to = part(count), from = part_apart_from(to, count);
    const auto dto = on_device(to, count), dfrom = on_device(from, count);
    const auto mto = in_model(to, count), mfrom = in_model(from, count);
    const auto n = static_cast<std::size_t>(count);
    switch (random() % 8) {
      case 0: {
        const T value = static_cast<T>(random() % 8);
        device().fill(dto, value);
        std::fill(mto.begin(), mto.end(), value);
        break;
      }
      case 1:
        device().copy(dfrom, dto);
        std::copy(mfrom.begin(), mfrom.end(), mto.begin());
        break;
      case 2: {  // H2D
        pinned.push_back(device().template pinned<T>(n));
        for (auto& value : pinned.back().span()) value = static_cast<T>(random() % 8);
        device().copy(pinned.back(), dto);
        std::copy_n(pinned.back().data(), n, mto.begin());
        break;
      }
      case 3:  // (x + y) reduced to small values again by the parity below
        device().vector().axpby(T(1), dfrom, T(-1), dto);
        for (std::size_t i = 0; i < n; ++i) mto[i] = mfrom[i] - mto[i];
        bound(to, count);
        break;
      case 4:
        device().blas().axpy(T(-1), dfrom, dto);
        for (std::size_t i = 0; i < n; ++i) mto[i] -= mfrom[i];
        bound(to, count);
        break;
      case 5:
        device().blas().copy(dfrom, dto);
        std::copy(mfrom.begin(), mfrom.end(), mto.begin());
        break;
      case 6: {
        // The source is a whole other buffer; the destination may be anything else.
        const auto source = (to.buffer + 1) % kBuffers;
        device().sparse().gather(buffers[source], index.slice(0, count), dto);
        for (std::size_t i = 0; i < n; ++i)
          mto[i] = model[source][static_cast<std::size_t>(host_index[i])];
        break;
      }
      default: {
        const auto sum_at = to.first;
        device().blas().dot(dfrom, dfrom, buffers[to.buffer].slice(sum_at, 1));
        T sum = 0;
        for (const T value : mfrom) sum += value * value;
        model[to.buffer][static_cast<std::size_t>(sum_at)] = sum;
        // Up to 2048 * 64^2, exact in f32; not to grow further:
        device().fill(buffers[to.buffer].slice(sum_at, 1), T(1));
        model[to.buffer][static_cast<std::size_t>(sum_at)] = T(1);
        break;
      }
    }
  }
  /// Values whose sums may have grown past 32 are replaced by a product with zeros.
  void bound(const Part& p, std::int64_t count) {
    const auto values = in_model(p, count);
    if (std::none_of(values.begin(), values.end(), [](T value) { return std::abs(value) > 32; }))
      return;
    device().blas().scal(T(0), on_device(p, count));
    std::fill(values.begin(), values.end(), T(0));
  }
  void expect_equal() {
    const auto done = device().take_error();
    ASSERT_TRUE(done.ok()) << done.error().to_string();
    for (std::size_t i = 0; i < kBuffers; ++i) {
      const auto actual = device().download(buffers[i]);
      for (std::size_t k = 0; k < actual.size(); ++k)
        ASSERT_EQ(actual[k], model[i][k]) << "buffer " << i << ", element " << k;
    }
  }
};
TYPED_TEST_SUITE(ProgramOrder, Reals);

TYPED_TEST(ProgramOrder, OfLongRandomSequencesIsKept) {
  for (const std::uint64_t seed : {1u, 2u, 3u, 4u}) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    this->buffers.clear(), this->model.clear(), this->host_index.clear();
    this->prepare(seed);
    for (int i = 0; i < 1500; ++i) {
      this->step();
      if (i % 500 == 499)
        this->pinned.clear();  // given back while copies out of them may be under way
    }
    this->expect_equal();
    if (this->HasFatalFailure()) return;
  }
}

TYPED_TEST(ProgramOrder, OfDependentChainsAcrossLanesIsKept) {
  using T = TypeParam;
  // vector -> blas -> sparse -> copy, each reading what the one before wrote; a result that nobody
  // waits for in between.
  const auto a = device().template alloc<T>(1000), b = device().template alloc<T>(1000),
             c = device().template alloc<T>(1000);
  const auto identity = device().template alloc<std::int32_t>(1000);
  std::vector<std::int32_t> numbers(1000);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::int32_t>(i);
  device().template upload<std::int32_t>(numbers, identity);
  device().fill(a, T(1));
  for (int i = 0; i < 200; ++i) {
    device().fill(b, T(0));
    device().vector().axpby(T(1), a, T(1), b);  // b = a
    device().blas().scal(T(-1), b);             // b = -a
    device().sparse().gather(b, identity, c);   // c = -a
    device().blas().scal(T(-1), c);             // c = a
    device().copy(c, a);                        // a = a
    device().vector().multiply(a, a, a);        // stays 1
    device().fill(c, T(7));                     // must come after the copy
  }
  EXPECT_EQ(device().download(a), std::vector<T>(1000, T(1)));
  EXPECT_EQ(device().download(b), std::vector<T>(1000, T(-1)));
}

}  // namespace
}  // namespace troupe::test
