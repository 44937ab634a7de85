#include <troupe/lib/function.hpp>
#include <troupe/lib/kernel.hpp>

#include "mpi_tests.hpp"

namespace troupe::test {
namespace {

constexpr std::int64_t kKernelLength = 1000;

constexpr auto kSource = R"(
__device__ int weights[2];
template <class T>
__global__ void weigh(int n, T factor, const T* x, T* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = weights[i % 2] + factor * x[i];
}
extern "C" __global__ void count(int n, int* x) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += 1;
}
)";

void expect_refused(Context& c, const Future<void>& future, const std::string& text) {
  c.require(future.wait_for(kDeadline), "what must be refused does not resolve: " + text);
  const auto& outcome = future.wait();
  c.expect(
      outcome.code() == Errc::invalid && outcome.error().message.find(text) != std::string::npos,
      (outcome.ok() ? std::string("ok") : outcome.error().to_string()) + " instead of " + text);
}

/// A file of functions for this engine that the test was built with.
std::string functions_of(const Context& c) {
  return c.device().info().engine == "cuda" ? TROUPE_TEST_FUNCTIONS_CUDA
                                            : TROUPE_TEST_FUNCTIONS_CPU;
}

}  // namespace

/// Each rank launches kernels and calls functions on the devices of all ranks, with a device host
/// lost on the way; what is wrong is said by the owner.
TROUPE_MPI_CASE(remote_kernels) {
  auto& device = c.device();
  auto& world = c.world();
  const int n = static_cast<int>(kKernelLength);
  auto module = device.compile(kSource, {.names = {"weigh<double>", "count"}}).get();
  const auto weigh = module.kernel("weigh<double>"), count = module.kernel("count");
  auto weights = device.alloc<std::int32_t>(2);
  device.upload<std::int32_t>(std::vector{10 * c.rank(), 10 * c.rank() + 1}, weights);
  module.bind_symbol("weights", weights);
  auto x = device.alloc<double>(kKernelLength), y = device.alloc<double>(kKernelLength * c.size());
  auto counted = device.alloc<std::int32_t>(kKernelLength);
  for (int round = 0; round < 2; ++round) {
    for (auto* ref : {&x, &y})
      if (!ref->valid()) ref->renew();
    if (!counted.valid()) counted.renew();
    device.fill(x, 3.0 + c.rank()), device.fill(y, 0.0), device.fill(counted, 0).get();
    const auto xs = world.gather_values(x.token()), ys = world.gather_values(y.token()),
               counters = world.gather_values(counted.token());
    std::vector<Future<void>> futures;
    for (int r = 0; r < c.size(); ++r) {
      const auto owner = static_cast<std::size_t>(r);
      auto there = world.device(Rank(r));
      const auto part = RemoteRef<double>(ys[owner]).slice(c.rank() * kKernelLength, kKernelLength);
      const LaunchOptions how{.grid = 8, .block = 128, .repeatable = true};
      futures.push_back(
          there.launch(weigh, how, n, 2.0, read(RemoteRef<double>(xs[owner])), write(part)));
      futures.push_back(there.launch(count, {.grid = 8, .block = 128}, n,
                                     update(RemoteRef<std::int32_t>(counters[owner]))));
      const auto increment = device.load_functions(functions_of(c)).function("increment");
      futures.push_back(there.call(increment, update(part), static_cast<long long>(kKernelLength)));
    }
    for (const auto& future : futures) {
      c.require(future.wait_for(kDeadline), "a launch on another rank does not resolve");
      c.expect(future.wait().ok(),
               future.wait().ok() ? "" : "it fails: " + future.wait().error().to_string());
    }
    world.barrier();
    std::vector<double> wanted;
    for (int r = 0; r < c.size(); ++r) {
      for (int i = 0; i < n; ++i) wanted.push_back(10 * c.rank() + i % 2 + 2 * (3 + c.rank()) + 1);
    }
    c.expect_equal(device.download(y), wanted, "another result than the owner's own kernel has");
    c.expect_equal(device.download(counted), std::vector<std::int32_t>(kKernelLength, c.size()),
                   "not each rank has counted");
    world.barrier();
    if (round > 0) break;
    if (c.rank() == c.size() - 1) c.expect(kill_active(), "there is no device host to kill");
    c.require(settle(c, 1), "the world does not come back");
  }

  const auto all = world.gather_values(x.token());
  const RemoteRef<double> far(all[static_cast<std::size_t>((c.rank() + 1) % c.size())]);
  auto there = world.device(far.rank());
  expect_refused(
      c,
      there.launch(weigh, {.block = 2048}, n, 2.0, read(far.slice(0, 9)), write(far.slice(9, 9))),
      "block.x is 2048, not from 1 to 1024");
  expect_refused(c, there.launch(count, {}, n), "count: it takes 2 arguments, not 1");
  const auto own = device
                       .compile("extern \"C\" __global__ void own" + std::to_string(c.rank()) +
                                    "(double* x) { x[0] = 1; }",
                                {.names = {"own" + std::to_string(c.rank())}})
                       .get()
                       .kernel("own" + std::to_string(c.rank()));
  if (c.size() > 1)
    expect_refused(c, there.launch(own, {}, update(far)), "has made no module with the kernel own");
  (void)device.take_error();
  world.barrier();
}

}  // namespace troupe::test
