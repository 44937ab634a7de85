// Kernels of the program's own by troupe against the same image launched with cuLaunchKernelEx.
//
// Both sides are measured by this one program, in turn. The raw side's context is this process's,
// troupe's is its device host's; before each measurement one launch makes the GPU switch to it.
// With --engine cpu there is no raw side.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <troupe/lib/kernel.hpp>
#include <troupe/sequence.hpp>

#include "local_device.hpp"
#include "raw_launches.hpp"
#include "sides.hpp"

namespace troupe::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kElements = 8, kBuffers = 4;
constexpr int kInSequence = 100, kRuns = 200;
constexpr auto kSource = R"(
extern "C" __global__ void step(int n, float factor, float* x) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = factor * x[i];
}
)";

/// One launch after another, each on the buffer of the one before, or of four ones in turn.
class Launches {
 public:
  Launches(Device& device, const Kernel& kernel, RawLaunches* raw, int buffers)
      : device_(&device), kernel_(kernel), raw_(raw), buffers_(buffers) {
    for (int i = 0; i < buffers; ++i) {
      ours_.push_back(device.alloc<float>(kElements));
      device.fill(ours_.back(), 1.0f).get();
    }
  }
  [[nodiscard]] Side ours(int count) const {
    const auto run = [this](int launches) {
      for (int i = buffers_; i < launches; ++i) (void)launch(i);
      std::vector<Future<void>> last;  // on each buffer
      for (int i = 0; i < std::min(buffers_, launches); ++i) last.push_back(launch(i));
      for (const auto& future : last) future.get();
    };
    return {[=] { run(count); }, [=] { run(1); }};
  }
  [[nodiscard]] Side raw(int count) const {
    return {[=, this] { raw_->launch(kElements, 1.0f, count, buffers_); },
            [=, this] { raw_->launch(kElements, 1.0f, 1, buffers_); }};
  }
  /// A recorded sequence of launches on one buffer.
  [[nodiscard]] Side our_runs(int count) const {
    const auto sequence = device_->record([this] {
      for (int i = 0; i < kInSequence; ++i) (void)launch(0);
    });
    const auto run = [sequence](int runs) {
      for (int i = 1; i < runs; ++i) (void)sequence.run();
      sequence.run().get();
    };
    for (int i = 0; i < 100; ++i) run(1);  // it is a graph from some run on
    return {[=] { run(count); }, [=] { run(1); }};
  }
  [[nodiscard]] Side raw_graphs(int count) const {
    const auto run = [this](int runs) { raw_->run_graph(kElements, 1.0f, kInSequence, runs); };
    return {[=] { run(count); }, [=] { run(1); }};
  }
  [[nodiscard]] Side raw_sequences(int count) const {
    const auto run = [this](int runs) { raw_->launch(kElements, 1.0f, runs * kInSequence, 1); };
    return {[=] { run(count); }, [=] { run(1); }};
  }
  /// Each is waited for before the next.
  [[nodiscard]] Side our_trips(int count) const {
    const auto run = [this](int trips) {
      for (int i = 0; i < trips; ++i) launch(0).get();
    };
    return {[=] { run(count); }, [=] { run(1); }};
  }
  [[nodiscard]] Side raw_trips(int count) const {
    const auto run = [this](int trips) {
      for (int i = 0; i < trips; ++i) raw_->launch(kElements, 1.0f, 1, 1);
    };
    return {[=] { run(count); }, [=] { run(1); }};
  }

 private:
  [[nodiscard]] Future<void> launch(int i) const {
    return device_->launch(kernel_, {.block = kElements}, kElements, 1.0f,
                           update(ours_[static_cast<std::size_t>(i % buffers_)]));
  }
  Device* device_;
  Kernel kernel_;
  RawLaunches* raw_;
  int buffers_;
  std::vector<GpuRef<float>> ours_;
};

/// Without a raw side only troupe's is measured.
Comparison measure(std::string name, std::int64_t repetitions, RawLaunches* raw, const Side& theirs,
                   const Side& ours, int count) {
  const auto to_us = [count](double seconds) { return seconds / count * 1e6; };
  if (raw != nullptr) return compare(std::move(name), "us", repetitions, theirs, ours, to_us);
  Comparison line{std::move(name), "us", {}, {}};
  ours.run();
  for (std::int64_t i = 0; i < repetitions; ++i) line.ours.push_back(to_us(seconds_of(ours)));
  return line;
}

/// From compile() to a kernel that can be launched, in a process that has not compiled it but finds
/// it on disk. The library is open, as it is in a program that has other kernels.
Comparison cached_compile(const Config& config, const std::string& engine,
                          std::int64_t repetitions) {
  Comparison line{"compile, cached on disk", "ms", {}, {}};
  const std::string other = "extern \"C\" __global__ void other(int* x) { *x = 1; }";
  for (std::int64_t i = 0; i <= repetitions; ++i) {  // the first fills the cache
    LocalDevice device(config, engine);
    (void)device->compile(other, {.names = {"other"}}).get();
    const auto start = Clock::now();
    (void)device->compile(kSource, {.names = {"step"}}).get();
    const std::chrono::duration<double, std::milli> taken = Clock::now() - start;
    if (i > 0) line.ours.push_back(taken.count());
  }
  return line;
}

std::vector<OptionSpec> option_specs() {
  return {
      {"repetitions", OptionType::integer, "7", "N", "measurements of each side", {}, "1", "1000"},
      {"launches", OptionType::integer, "20000", "N", "of each measurement", {}, "1", "1000000"},
      {"trips", OptionType::integer, "2000", "N", "of each measurement", {}, "1", "1000000"},
      {"json", OptionType::text, "", "FILE", "write the results as JSON"},
  };
}

int run(const Config& config) {
  const auto engine = config.text("engine") == "cpu" ? std::string("cpu") : std::string("cuda");
  const auto repetitions = config.integer("repetitions");
  const int launches = static_cast<int>(config.integer("launches")),
            trips = static_cast<int>(config.integer("trips"));
  std::vector<Comparison> lines;
  {
    LocalDevice device(config, engine);
    const auto module = device->compile(kSource, {.names = {"step"}}).get();
    const auto kernel = module.kernel("step");
    std::unique_ptr<RawLaunches> raw;
    if (engine == "cuda") raw = RawLaunches::create(module.image(), "step", kElements);
    const Launches chain(*device, kernel, raw.get(), 1),
        several(*device, kernel, raw.get(), kBuffers);
    const auto throughput = [&](const char* name, const Launches& which) {
      lines.push_back(measure(std::to_string(launches) + name, repetitions, raw.get(),
                              which.raw(launches), which.ours(launches), launches));
    };
    throughput(" launches of a tiny kernel, each", chain);
    throughput(" independent launches, each", several);
    lines.push_back(measure("launch, round trip", repetitions, raw.get(), chain.raw_trips(trips),
                            chain.our_trips(trips), trips));
    const auto runs = chain.our_runs(kRuns);
    lines.push_back(measure("sequence of 100 launches, CUDA graph", repetitions, raw.get(),
                            chain.raw_graphs(kRuns), runs, kRuns));
    lines.push_back(measure("sequence of 100 launches, launches", repetitions, raw.get(),
                            chain.raw_sequences(kRuns), runs, kRuns));
  }
  lines.push_back(cached_compile(config, engine, repetitions));
  print(fmt::format("kernels of the program's own, {}: cuLaunchKernelEx and troupe, medians of {}",
                    engine, repetitions),
        lines);
  write_json(config.text("json"), lines).take();
  return 0;
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  return troupe::bench::run_benchmark(argc, argv, "kernel_bench",
                                      "Kernels by troupe and by plain CUDA.",
                                      troupe::bench::option_specs(), troupe::bench::run);
}
