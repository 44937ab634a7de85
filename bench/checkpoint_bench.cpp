// What a commit costs, and what it costs the step loop when the committed state also goes to disk.
//
//   mpirun -n N checkpoint_bench [--size 1GiB,10GiB] [--dir DIR] [--json FILE]
//
// Per size of the state (of each rank): a commit, device to device, until it is complete; a copy
// from the device to pinned memory, until it is complete; and a loop of updates of the whole state,
// once with commits alone and once with one of them going to disk as well: by way of pinned memory
// and, where that can be, straight from device memory. The difference between the loops is the
// stall; it is held against the copy to pinned memory of the same run. The rate is that of all
// ranks together, while they write. The device needs three times the size, pinned memory twice.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include <nlohmann/json.hpp>
#include <troupe/lib/blas.hpp>
#include <troupe/runtime.hpp>

#include "comparison.hpp"
#include "world_bench.hpp"

namespace troupe::bench {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<OptionSpec> option_specs() {
  return {
      {"size", OptionType::list, "64MiB,256MiB", "SIZE", "bytes of a rank's state; MiB or GiB"},
      {"dir", OptionType::text, "/tmp", "DIR", "where the states are written, and removed again"},
      {"repetitions", OptionType::integer, "5", "N", "of everything", {}, "1", "1000"},
      {"json", OptionType::text, "", "FILE", "write the results as JSON"},
  };
}

/// "10GiB", "64MiB"
Result<std::uint64_t> parse_size(const std::string& text) {
  char* end = nullptr;
  const auto number = std::strtoull(text.c_str(), &end, 10);
  const std::string unit(end);
  if (number >= 1 && number <= 1'000'000 && unit == "MiB") return number << 20;
  if (number >= 1 && number <= 1000 && unit == "GiB") return number << 30;
  return Error{Errc::invalid, 0, "--size " + text + ": wants a number of MiB or GiB"};
}

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// Loops of which a state goes to disk, one way.
struct Saving {
  std::vector<double> loop_ms, host_stall_ms, bytes_per_second;
  std::string refused;  ///< why it cannot go that way; empty: it can
};

struct Figures {
  std::uint64_t bytes = 0;
  std::vector<double> commit_ms, pinned_ms, plain_ms;
  Saving pinned, direct;
  [[nodiscard]] double stall_ms(const Saving& saving) const {
    return median(saving.loop_ms) - median(plain_ms);
  }
};

class Bench {
 public:
  Bench(Runtime& runtime, std::uint64_t bytes)
      : runtime_(&runtime), device_(&runtime.device()), world_(&runtime.world()) {
    figures_.bytes = bytes;
    state_ = device_->alloc<float>(static_cast<std::int64_t>(bytes / sizeof(float)));
    device_->fill(state_, 1.0f).get();
  }

  Figures measure() {
    measure_commit();
    measure_pinned();
    // Long enough for the copy to pinned memory to run beside the updates several times over.
    const auto update = updates_ms(20) / 20;
    const auto steps = std::clamp<std::int64_t>(
        static_cast<std::int64_t>(4 * median(figures_.pinned_ms) / std::max(update, 1e-3)), 40,
        20'000);
    const auto agreed = world_->gather_values(steps);
    const auto longest = *std::max_element(agreed.begin(), agreed.end());
    for (int i = 0; i < repetitions(); ++i) {
      figures_.plain_ms.push_back(loop(longest, nullptr, StateIo::pinned));
      (void)loop(longest, &figures_.pinned, StateIo::pinned);
      if (!figures_.direct.refused.empty()) continue;
      try {
        (void)loop(longest, &figures_.direct, StateIo::direct);
      } catch (const CollectiveException& e) {
        if (e.code() != Errc::invalid) throw;
        figures_.direct.refused = e.error().message;
      }
    }
    return figures_;
  }

 private:
  [[nodiscard]] int repetitions() const {
    return static_cast<int>(runtime_->config().integer("repetitions"));
  }

  void measure_commit() {
    Checkpoint checkpoint(*device_);
    checkpoint.add("state", state_);
    checkpoint.commit(0).get();
    checkpoint.commit(1).get();  // both halves have been touched
    for (int i = 0; i < repetitions(); ++i) {
      const auto start = Clock::now();
      checkpoint.commit(2 + i).get();
      figures_.commit_ms.push_back(ms_since(start));
    }
  }
  void measure_pinned() {
    const auto pinned = device_->pinned<float>(static_cast<std::size_t>(state_.length()));
    device_->copy(state_, pinned).get();
    for (int i = 0; i < repetitions(); ++i) {
      const auto start = Clock::now();
      device_->copy(state_, pinned).get();
      figures_.pinned_ms.push_back(ms_since(start));
    }
  }
  double updates_ms(int count) {
    const auto start = Clock::now();
    for (int i = 1; i < count; ++i) device_->blas().scal(1.0f, state_);
    device_->blas().scal(1.0f, state_).get();
    return ms_since(start);
  }
  /// A run's pinned memory is given to the device host beside its first steps; registering it with
  /// CUDA takes about 0.35 s per GiB. What is measured is a run that has been going for longer.
  [[nodiscard]] std::chrono::milliseconds memory_is_mapped() const {
    return std::chrono::milliseconds(300 + (figures_.bytes >> 20) / 2);
  }
  /// The time of the steps alone, with a commit after half of them, which goes to disk where there
  /// is `saving`.
  double loop(std::int64_t steps, Saving* saving, StateIo io) {
    Checkpoint checkpoint(*device_);
    checkpoint.add("state", state_);
    const auto half = steps / 2;
    SaveOptions options;
    options.name = "checkpoint_bench";
    options.restart = SaveOptions::kNever;
    options.io = io;
    if (saving != nullptr) {
      options.directory = runtime_->config().text("dir");
      options.every = half;
    }
    Clock::time_point start;
    double elapsed = 0;
    world_->run(checkpoint,
                [&](std::int64_t i) {
                  if (i == 0) {
                    std::this_thread::sleep_for(memory_is_mapped());
                    start = Clock::now();
                  }
                  auto updated = device_->blas().scal(1.0f, state_);
                  if (i + 1 < 2 * half - 1) return Step::again;
                  updated.get();
                  elapsed = ms_since(start);
                  return Step::done;
                },
                {.commit_every = half, .save = options});
    if (saving == nullptr) return elapsed;
    const auto saved = world_->saved_checkpoints().at(0);
    saving->loop_ms.push_back(elapsed);
    saving->host_stall_ms.push_back(1e3 * saved.stall_seconds);
    saving->bytes_per_second.push_back(saved.write_rate());
    return elapsed;
  }

  Runtime* runtime_;
  Device* device_;
  World* world_;
  GpuRef<float> state_;
  Figures figures_;
};

void print(const Figures& f) {
  const auto commit = median(f.commit_ms), pinned = median(f.pinned_ms);
  fmt::print("  {:>8} {:>10.3f} {:>8.1f} {:>10.2f} {:>8.1f} {:>10.2f}",
             fmt::format("{} MiB", f.bytes >> 20), commit,
             static_cast<double>(f.bytes) / commit / 1e6, pinned,
             static_cast<double>(f.bytes) / pinned / 1e6, median(f.plain_ms));
  const auto print_saving = [&](const char* by, const Saving& saving) {
    fmt::print(" {:>7} {:>10.2f} {:>8.2f} {:>10.3f} {:>10.3f}\n", by, f.stall_ms(saving),
               f.stall_ms(saving) / pinned, median(saving.host_stall_ms),
               median(saving.bytes_per_second) / 1e9);
  };
  print_saving("pinned", f.pinned);
  fmt::print("{:60}", "");
  if (f.direct.refused.empty()) {
    print_saving("direct", f.direct);
  } else {
    fmt::print("  direct  {}\n", f.direct.refused);
  }
  std::fflush(stdout);
}

void add(nlohmann::ordered_json& json, const std::string& prefix, const Figures& f,
         const Saving& saving) {
  json[prefix + "stall"] = f.stall_ms(saving);
  json[prefix + "stall_over_copy"] = f.stall_ms(saving) / median(f.pinned_ms);
  json[prefix + "gigabytes_per_second"] = median(saving.bytes_per_second) / 1e9;
  json[prefix + "saving_loop_values"] = saving.loop_ms;
  json[prefix + "submission_stall_values"] = saving.host_stall_ms;
}

std::string to_json(const Figures& f, int ranks) {
  nlohmann::ordered_json json{{"name", fmt::format("checkpoint {} MiB", f.bytes >> 20)},
                              {"unit", "ms"},
                              {"ranks", ranks},
                              {"commit_median", median(f.commit_ms)},
                              {"pinned_copy_median", median(f.pinned_ms)}};
  add(json, "", f, f.pinned);  // by way of pinned memory
  json["commit_values"] = f.commit_ms;
  json["pinned_copy_values"] = f.pinned_ms;
  json["loop_values"] = f.plain_ms;
  if (f.direct.refused.empty()) {
    add(json, "direct_", f, f.direct);
  } else {
    json["direct_refused"] = f.direct.refused;
  }
  return json.dump();
}

int run(Runtime& runtime) {
  require_report_file(runtime);
  auto& world = runtime.world();
  const auto& config = runtime.config();
  if (world.rank() == 0) {
    fmt::print(
        "\n{} ranks, {}, states in {}: medians in ms of {} repetitions, on rank 0\n"
        "  {:>8} {:>10} {:>8} {:>10} {:>8} {:>10} {:>7} {:>10} {:>8} {:>10} {:>10}\n",
        world.size(), runtime.device().info().name, config.text("dir"),
        config.integer("repetitions"), "state", "commit", "GB/s", "to pinned", "GB/s", "loop", "by",
        "stall", "ratio", "submitting", "GB/s");
  }
  std::vector<std::string> lines;
  for (const auto& text : config.list("size")) {
    const auto bytes = parse_size(text);
    world.agree(bytes.ok() ? Result<void>() : Result<void>(bytes.error()));
    const auto figures = Bench(runtime, *bytes).measure();
    if (world.rank() == 0) print(figures);
    lines.push_back(to_json(figures, world.size()));
  }
  Result<void> written;
  if (world.rank() == 0) {
    std::error_code ignored;
    std::filesystem::remove_all(std::filesystem::path(config.text("dir")) / "checkpoint_bench",
                                ignored);
    if (!config.text("json").empty()) written = write_json_lines(config.text("json"), lines);
  }
  world.agree(written);
  return kExitSuccess;
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  using namespace troupe;
  ::setenv("TROUPE_LOG_LEVEL", "warn", 0);  // the table says it all
  const Program program{"checkpoint_bench",
                        "Measures commits, and what states on disk cost the step loop.",
                        bench::option_specs()};
  return run_program(argc, argv, program, bench::run);
}
