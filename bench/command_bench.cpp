// What a command costs: its caller, a round trip, and many small kernels in a row.
//
// The engine is that of TROUPE_TEST_BACKEND (cpu or cuda; default cpu). Arguments that are not
// Google Benchmark's are troupe's own, such as --spin 1ms.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include <troupe/lib/blas.hpp>
#include <troupe/lib/vector.hpp>

#include "local_device.hpp"

namespace {

using Clock = std::chrono::steady_clock;

/// Far fewer than fit the command ring (4 MiB) and the ticket table: no tell ever waits.
constexpr int kTells = 8192;
constexpr int kKernels = 20'000;
/// The smallest vectors that still are a kernel's work.
constexpr std::int64_t kTiny = 8;

std::unique_ptr<troupe::bench::LocalDevice> opened;

troupe::Device& device() {
  return **opened;
}

/// The caller's cost of submitting one command whose future is dropped. Draining is not timed.
template <class Submit>
void tell(benchmark::State& state, const Submit& submit) {
  device().nop().get();
  for (auto _ : state) {
    const auto start = Clock::now();
    for (int i = 0; i < kTells; ++i) submit();
    state.SetIterationTime(std::chrono::duration<double>(Clock::now() - start).count());
    device().nop().get();
  }
  state.counters["tell"] = benchmark::Counter(
      kTells, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void tell_nop(benchmark::State& state) {
  tell(state, [] { (void)device().nop(); });
}
BENCHMARK(tell_nop)->UseManualTime()->Unit(benchmark::kMicrosecond);

void tell_axpy(benchmark::State& state) {
  const auto x = device().alloc<double>(kTiny), y = device().alloc<double>(kTiny);
  device().fill(x, 1.0);
  device().fill(y, 1.0).get();
  tell(state, [&] { (void)device().blas().axpy(1.0, x, y); });
}
BENCHMARK(tell_axpy)->UseManualTime()->Unit(benchmark::kMicrosecond);

/// To the device host and back; the engine has no part in it.
void nop_round_trip(benchmark::State& state) {
  device().nop().get();
  for (auto _ : state) device().nop().get();
}
BENCHMARK(nop_round_trip)->UseRealTime()->Unit(benchmark::kMicrosecond);

/// The same with one small kernel.
void kernel_round_trip(benchmark::State& state) {
  const auto x = device().alloc<float>(kTiny);
  device().fill(x, 1.5f).get();
  for (auto _ : state) device().fill(x, 1.5f).get();
}
BENCHMARK(kernel_round_trip)->UseRealTime()->Unit(benchmark::kMicrosecond);

/// Many small kernels, then one wait. cuda_raw_bench compares this with plain CUDA.
void kernels_and_wait(benchmark::State& state) {
  const auto x = device().alloc<float>(kTiny);
  device().fill(x, 1.5f).get();
  for (auto _ : state) {
    for (int i = 1; i < kKernels; ++i) (void)device().fill(x, 1.5f);
    device().fill(x, 2.5f).get();
  }
  state.SetItemsProcessed(state.iterations() * kKernels);
}
BENCHMARK(kernels_and_wait)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  const char* const asked = std::getenv("TROUPE_TEST_BACKEND");
  try {
    const auto config = troupe::Config::parse(argc, argv).take();
    opened = std::make_unique<troupe::bench::LocalDevice>(config, asked != nullptr ? asked : "cpu");
    benchmark::AddCustomContext("device", device().info().name);
    benchmark::RunSpecifiedBenchmarks();
    opened.reset();
  } catch (const troupe::Exception& e) {
    std::fprintf(stderr, "command_bench: %s\n", e.what());
    return 1;
  }
  return 0;
}
