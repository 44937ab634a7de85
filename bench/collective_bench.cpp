// all_reduce through troupe and through NCCL directly, by one program under mpirun.
//
//   mpirun -n N collective_bench [--engine cuda] [--json FILE]
//
// Pipelined: many queued, one wait, so what counts is throughput. Latency: each one waited for. The
// time of a measurement is that of the slowest rank. With the cpu engine there is no raw side.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include <troupe/runtime.hpp>

#include "side.hpp"
#include "world_bench.hpp"

namespace troupe::bench {
namespace {

std::vector<OptionSpec> option_specs() {
  return {
      {"repetitions", OptionType::integer, "7", "N", "measurements of each side", {}, "1", "1000"},
      {"count",
       OptionType::integer,
       "1000",
       "N",
       "small all_reduces per measurement",
       {},
       "1",
       "20000"},
      {"large",
       OptionType::bytes,
       "64MiB",
       "SIZE",
       "size of the large all_reduce",
       {},
       "8B",
       "4GiB"},
      {"large-count",
       OptionType::integer,
       "20",
       "N",
       "large all_reduces per measurement",
       {},
       "1",
       "1000"},
      {"json", OptionType::text, "", "FILE", "write the results as JSON"},
  };
}

/// NCCL itself, from this process; null where there is no GPU. All ranks call it.
std::unique_ptr<perf::Side> make_raw(World& world, const DeviceInfo& device, std::int64_t largest) {
  if (device.engine != "cuda") return nullptr;
  auto raw =
      perf::load_peer("nccl", {.rank = world.rank(),
                               .size = world.size(),
                               .local_rank = world.local_rank(),
                               .capacity = static_cast<std::uint64_t>(largest) * sizeof(double),
                               .first_one = [&](const perf::PeerSetup::Id& id) {
                                 return world.gather_values(id).front();
                               }});
  raw->prepare({});
  return raw;
}

class Bench {
 public:
  explicit Bench(Runtime& runtime)
      : world_(runtime.world()),
        device_(runtime.device()),
        config_(runtime.config()),
        large_(std::max<std::int64_t>(
            1, static_cast<std::int64_t>(config_.bytes("large") / sizeof(double)))),
        data_(device_.alloc<double>(large_)),
        raw_(make_raw(world_, device_.info(), large_)) {}

  std::vector<Comparison> run() {
    const auto count = config_.integer("count");
    const auto to_us = [](double seconds) { return seconds * 1e6; };
    const double bytes = static_cast<double>(large_) * sizeof(double);
    std::vector<Comparison> lines;
    lines.push_back(compare("all_reduce 8 B pipelined", "us", 1, count, false, to_us));
    lines.push_back(compare("all_reduce 8 B latency", "us", 1, count, true, to_us));
    lines.push_back(compare(fmt::format("all_reduce {} B", config_.bytes("large")), "GB/s", large_,
                            config_.integer("large-count"), false,
                            [bytes](double seconds) { return bytes / seconds / 1e9; }));
    return lines;
  }

 private:
  /// Sums of zeros stay zeros, however often; what the kernels do does not depend on the values.
  void through_troupe(std::int64_t elements, std::int64_t count, bool wait_for_each) {
    const auto part = data_.slice(0, elements);
    for (std::int64_t i = 1; i < count; ++i) {
      const auto done = world_.all_reduce(part, ReduceOp::sum);
      if (wait_for_each) done.get();
    }
    world_.all_reduce(part, ReduceOp::sum).get();
  }
  void through_library(std::int64_t elements, std::int64_t count, bool wait_for_each) {
    const perf::Call call{.dtype = DType::f64, .count = elements, .in_place = true};
    for (std::int64_t i = 0; i < count; ++i) {
      raw_->start(call, 0);
      if (wait_for_each) raw_->wait();
    }
    raw_->wait();
  }

  /// `to_value` makes the figure out of the seconds that one all_reduce takes.
  Comparison compare(std::string name, std::string unit, std::int64_t elements, std::int64_t count,
                     bool wait_for_each, const std::function<double(double)>& to_value) {
    const auto ours = [&] { through_troupe(elements, count, wait_for_each); };
    const std::function<void()> theirs = [&] { through_library(elements, count, wait_for_each); };
    const auto value = [&](const std::function<void()>& work) {
      return to_value(seconds_of(world_, work) / static_cast<double>(count));
    };
    device_.fill(data_, 0.0).get();
    Comparison line{std::move(name), std::move(unit), {}, {}};
    measure(line, config_.integer("repetitions"), ours, raw_ ? theirs : std::function<void()>(),
            value);
    return line;
  }

  World& world_;
  Device& device_;
  const Config& config_;
  const std::int64_t large_;  ///< elements
  const GpuRef<double> data_;
  const std::unique_ptr<perf::Side> raw_;
};

/// Every rank contributes its number: a benchmark of wrong answers is worth nothing.
Result<void> check_sum(Runtime& runtime) {
  auto& world = runtime.world();
  const auto value = runtime.device().alloc<double>(1);
  runtime.device().fill(value, world.rank() + 1.0);
  world.all_reduce(value, ReduceOp::sum);
  const double expected = world.size() * (world.size() + 1) / 2.0;
  const double got = runtime.device().download(value).front();
  if (got == expected) return {};
  return Error{Errc::library, 0, fmt::format("all_reduce gives {} instead of {}", got, expected)};
}

int run(Runtime& runtime) {
  require_report_file(runtime);
  auto& world = runtime.world();
  world.agree(check_sum(runtime));
  const auto lines = Bench(runtime).run();
  report(runtime,
         fmt::format("{} ranks, {}: collectives, medians of {}", world.size(),
                     runtime.device().info().name, runtime.config().integer("repetitions")),
         lines);
  return kExitSuccess;
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  using namespace troupe;
  const Program program{"collective_bench",
                        "Measures all_reduce through troupe and through NCCL directly.",
                        bench::option_specs()};
  return run_program(argc, argv, program, bench::run);
}
