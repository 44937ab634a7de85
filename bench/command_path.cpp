// What a command costs on its way to the device host and back, without its library and its kernel:
// the engine is null_engine.cpp. Any machine; no GPU.
//
// It measures, for each operation: the caller's cost of a tell (submitting, the future dropped)
// into a ring that nobody drains, because the device host is stopped meanwhile; the device host's
// cost of a command, as it then takes all of them; both at once, per command; and a round trip.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <troupe/lib/blas.hpp>
#include <troupe/lib/dnn.hpp>
#include <troupe/lib/kernel.hpp>
#include <troupe/lib/sparse.hpp>

#include "comparison.hpp"
#include "local_device.hpp"

namespace troupe::bench {
namespace {

using Clock = std::chrono::steady_clock;

/// Commands of any of these operations: no tell ever waits for room.
constexpr int kFitsRing = 1024;
/// The smallest vectors that still are a kernel's work.
constexpr int kTiny = 8;
constexpr auto kSource = R"(
extern "C" __global__ void step(int n, float factor, float* x) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = factor * x[i];
}
)";

double us_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

/// The device host among the processes that this one has started, or 0. It may run behind a
/// wrapper.
pid_t find_host(const std::string& process = "self") {
  for (const auto& task : std::filesystem::directory_iterator("/proc/" + process + "/task")) {
    std::ifstream children(task.path() / "children");
    for (pid_t child = 0; children >> child;) {
      std::string name;
      std::ifstream("/proc/" + std::to_string(child) + "/comm") >> name;
      if (name.starts_with("troupe-device")) return child;  // as much of it as comm has
      if (const auto host = find_host(std::to_string(child)); host != 0) return host;
    }
  }
  return 0;
}

/// `submit` once per command; `wait` for all of them.
void measure(const std::string& name, std::int64_t repetitions, int commands,
             const std::function<void()>& submit, const std::function<void()>& wait,
             std::vector<Comparison>& lines) {
  const auto host = find_host();
  if (host == 0) throw std::runtime_error("there is no device host");
  Comparison tell{"tell, not drained, " + name, "us", {}, {}},
      taken{"device host, " + name, "us", {}, {}},
      both{"tells and device host, " + name, "us", {}, {}};
  for (std::int64_t i = 0; i <= repetitions; ++i) {
    wait();
    ::kill(host, SIGSTOP);
    auto start = Clock::now();
    for (int n = 0; n < kFitsRing; ++n) submit();
    const auto told = us_since(start);
    start = Clock::now();
    ::kill(host, SIGCONT);
    wait();
    const auto drained = us_since(start);
    start = Clock::now();
    for (int n = 0; n < commands; ++n) submit();
    wait();
    const auto done = us_since(start);
    if (i == 0) continue;  // the first opens libraries
    tell.ours.push_back(told / kFitsRing);
    taken.ours.push_back(drained / kFitsRing);
    both.ours.push_back(done / commands);
  }
  for (auto* line : {&tell, &taken, &both}) lines.push_back(std::move(*line));
}

Comparison round_trip(const std::string& name, std::int64_t repetitions, int trips,
                      const std::function<void()>& trip) {
  Comparison line{"round trip, " + name, "us", {}, {}};
  for (std::int64_t i = 0; i <= repetitions; ++i) {
    const auto start = Clock::now();
    for (int n = 0; n < trips; ++n) trip();
    if (i > 0) line.ours.push_back(us_since(start) / trips);
  }
  return line;
}

std::vector<OptionSpec> option_specs() {
  return {
      {"repetitions", OptionType::integer, "15", "N", "measurements", {}, "1", "1000"},
      {"commands", OptionType::integer, "100000", "N", "of each measurement", {}, "1", "10000000"},
      {"trips", OptionType::integer, "10000", "N", "of each measurement", {}, "1", "1000000"},
      {"only", OptionType::text, "", "NAME",
       "one of nop, fill, axpy, spmv, launch, gelu, layer_norm"},
      {"json", OptionType::text, "", "FILE", "write the results as JSON"},
  };
}

int run(const Config& config) {
  const auto repetitions = config.integer("repetitions");
  const int commands = static_cast<int>(config.integer("commands")),
            trips = static_cast<int>(config.integer("trips"));
  LocalDevice device(config, "null");
  const auto x = device->alloc<float>(kTiny), y = device->alloc<float>(kTiny);
  device->fill(x, 1.0f);
  device->fill(y, 1.0f).get();
  const auto begin = device->alloc<std::int32_t>(kTiny + 1),
             column = device->alloc<std::int32_t>(kTiny);
  device->fill(begin, 0);
  device->fill(column, 0).get();
  const CsrMatrix<float, std::int32_t> matrix{kTiny, kTiny, begin, column,
                                              device->alloc<float>(kTiny)};
  const auto z = device->alloc<float>(kTiny), scale = device->alloc<float>(kTiny),
             bias = device->alloc<float>(kTiny);
  const NormStatistics statistics{device->alloc<float>(1), device->alloc<float>(1)};
  device->fill(statistics.mean, 0.0f);
  device->fill(statistics.inverse_deviation, 1.0f).get();
  const auto module = device->compile(kSource, {.names = {"step"}}).get();
  const auto kernel = module.kernel("step");

  struct Case {
    std::string name;
    std::function<Future<void>()> submit;
  };
  const std::vector<Case> cases = {
      {"nop", [&] { return device->nop(); }},
      {"fill", [&] { return device->fill(x, 1.5f); }},
      {"axpy", [&] { return device->blas().axpy(1.0f, x, y); }},
      {"spmv", [&] { return device->sparse().spmv(matrix, x, y); }},
      {"launch", [&] { return device->launch(kernel, {.block = kTiny}, kTiny, 1.0f, update(x)); }},
      {"gelu", [&] { return dnn::on(*device).pointwise(dnn::Mode::gelu, x, y); }},
      {"layer_norm",
       [&] { return dnn::on(*device).layer_norm_backward(y, x, x, statistics, z, scale, bias); }},
  };
  std::vector<Comparison> lines;
  for (const auto& [name, submit] : cases) {
    if (!config.text("only").empty() && config.text("only") != name) continue;
    const auto wait = [&] { submit().get(); };
    measure(
        name, repetitions, commands, [&] { (void)submit(); }, wait, lines);
    lines.push_back(round_trip(name, repetitions, trips, wait));
  }
  print(fmt::format("a command's way, engine that does nothing, medians of {}", repetitions),
        lines);
  write_json(config.text("json"), lines).take();
  return 0;
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  return troupe::bench::run_benchmark(argc, argv, "command_path",
                                      "What a command costs without its kernel.",
                                      troupe::bench::option_specs(), troupe::bench::run);
}
