// Tokens: fetch and put between two ranks, beside what moves the same bytes without troupe, by one
// program under mpirun.
//
//   mpirun -n 2 token_bench [--engine cuda] [--token-path peer|network|nccl] [--size 1GiB]
//   [--json FILE]
//
// Small sizes are told as the time of one transfer, others as bytes per second. Raw is, for
// --token-path network, one MPI message between host memories; otherwise a copy between the two
// devices by one process (cudaMemcpyPeerAsync; memcpy with the cpu engine). The time is that of the
// slowest rank. The first fetch from a slab, for which the reader has to map it, has a line of its
// own.
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <functional>

#include <troupe/runtime.hpp>

#include "raw_copy.hpp"
#include "world_bench.hpp"

namespace troupe::bench {
namespace {

std::vector<OptionSpec> option_specs() {
  return {
      {"repetitions", OptionType::integer, "9", "N", "measurements of each side", {}, "1", "1000"},
      {"size",
       OptionType::bytes,
       "1GiB",
       "SIZE",
       "bytes of a transfer; without it 8 B, 64 MiB and 1 GiB",
       {},
       "8B",
       "1GiB"},
      {"json", OptionType::text, "", "FILE", "write the results as JSON"},
  };
}

/// One message each way, or one from rank 1 to rank 0, between host memories.
class RawMessages {
 public:
  explicit RawMessages(std::uint64_t bytes) : source_(bytes, 1), destination_(bytes, 2) {
    MPI_Comm_dup(MPI_COMM_WORLD, &communicator_);
  }
  ~RawMessages() { MPI_Comm_free(&communicator_); }
  RawMessages(const RawMessages&) = delete;
  RawMessages& operator=(const RawMessages&) = delete;

  void run(int rank, bool both_ways) {
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    const int count = static_cast<int>(source_.size());
    if (rank == 0 || both_ways)
      MPI_Irecv(destination_.data(), count, MPI_BYTE, 1 - rank, 0, communicator_, &requests[0]);
    if (rank == 1 || both_ways)
      MPI_Isend(source_.data(), count, MPI_BYTE, 1 - rank, 0, communicator_, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }

 private:
  std::vector<char> source_, destination_;
  MPI_Comm communicator_ = MPI_COMM_NULL;
};

/// Below this what a transfer takes does not depend on its size.
constexpr std::uint64_t kLarge = 64u << 10;
/// So many times as many measurements of small transfers, which vary more.
constexpr std::int64_t kMoreOfSmall = 25;

std::string in_words(std::uint64_t bytes) {
  return bytes >> 20 != 0 ? fmt::format("{} MiB", bytes >> 20) : fmt::format("{} B", bytes);
}

class Bench {
 public:
  Bench(Runtime& runtime, std::uint64_t size)
      : runtime_(runtime),
        world_(runtime.world()),
        bytes_(size / sizeof(double) * sizeof(double)),
        small_(bytes_ < kLarge),
        repetitions_(runtime.config().integer("repetitions") * (small_ ? kMoreOfSmall : 1)),
        mine_(runtime.device().alloc<double>(static_cast<std::int64_t>(bytes_ / sizeof(double)))),
        copy_(runtime.device().alloc<double>(mine_.length())),
        messages_(bytes_) {
    runtime.device().fill(mine_, 1.0 + world_.rank());
    runtime.device().fill(copy_, 0.0).get();
    tokens_ = world_.gather_values(mine_.token());
    boxes_ = world_.gather_values(copy_.token());
    network_ = runtime.config().text("token-path") == "network";
    if (!network_ && world_.rank() == 0) raw_ = RawCopy::make(runtime.device().info(), bytes_);
  }

  std::vector<Comparison> run() {
    const auto other = static_cast<std::size_t>(1 - world_.rank());
    const bool first = world_.rank() == 0;
    std::vector<Comparison> lines{
        compare(
            "fetch",
            [&] {
              if (first) world_.fetch(tokens_[other], copy_).get();
            },
            false),
        compare(
            "put",
            [&] {
              if (!first) world_.put(mine_, boxes_[other]).get();
            },
            false),
        compare(
            "fetch, both ways", [&] { world_.fetch(tokens_[other], copy_).get(); }, true)};
    if (small_ && !network_) lines.push_back(first_contact());
    return lines;
  }

 private:
  void raw(bool both_ways) {
    if (network_) return messages_.run(world_.rank(), both_ways);
    if (raw_) raw_->run();
  }
  /// All ranks call it.
  [[nodiscard]] bool has_raw(bool both_ways) {
    // One process that copies both ways is not what two ranks are to be compared with.
    return world_.gather_values<int>(network_ || (raw_ && !both_ways)).front() != 0;
  }

  Comparison compare(const std::string& what, const std::function<void()>& ours, bool both_ways) {
    const auto value = [&](const std::function<void()>& work) {
      const double seconds = seconds_of(world_, work);
      return small_ ? seconds * 1e6
                    : static_cast<double>(bytes_) * (both_ways ? 2 : 1) / seconds / 1e9;
    };
    Comparison line{fmt::format("{} {}", what, in_words(bytes_)), small_ ? "us" : "GB/s", {}, {}};
    measure(line, repetitions_, ours,
            has_raw(both_ways) ? [&] { raw(both_ways); } : std::function<void()>(), value);
    return line;
  }

  /// A fetch of rank 0 from a slab of rank 1 that it has not mapped.
  Comparison first_contact() {
    const auto& config = runtime_.config();
    // Larger than a slab, so it gets one of its own.
    const auto elements = config.bytes("slab-size") / sizeof(double) + mine_.length();
    const bool raw_too = has_raw(false);
    Comparison line{fmt::format("first fetch {}", in_words(bytes_)), "us", {}, {}};
    std::vector<GpuRef<double>> kept;  // else their slabs would be used again
    for (std::int64_t i = 0; i < config.integer("repetitions"); ++i) {
      kept.push_back(runtime_.device().alloc<double>(static_cast<std::int64_t>(elements)));
      const auto source = kept.back().slice(0, mine_.length());
      runtime_.device().fill(source, 2.0).get();
      const auto tokens = world_.gather_values(source.token());
      line.ours.push_back(1e6 * seconds_of(world_, [&] {
                            if (world_.rank() == 0) world_.fetch(tokens[1], copy_).get();
                          }));
      if (raw_too) line.raw.push_back(1e6 * seconds_of(world_, [&] { raw(false); }));
    }
    return line;
  }

  Runtime& runtime_;
  World& world_;
  const std::uint64_t bytes_;
  const bool small_;
  const std::int64_t repetitions_;
  const GpuRef<double> mine_, copy_;
  std::vector<GpuToken> tokens_, boxes_;
  RawMessages messages_;
  bool network_ = false;
  std::unique_ptr<RawCopy> raw_;
};

/// A benchmark of wrong answers is worth nothing.
Result<void> check_fetch(Runtime& runtime) {
  auto& world = runtime.world();
  const auto value = runtime.device().alloc<double>(1'000'003);
  runtime.device().fill(value, 1.0 + world.rank());
  const auto tokens = world.gather_values(value.token());
  const int other = 1 - world.rank();
  const auto got = world.fetch<double>(tokens[static_cast<std::size_t>(other)]).get();
  const auto values = runtime.device().download(got);
  world.barrier();
  if (std::count(values.begin(), values.end(), 1.0 + other) == got.length()) return {};
  return Error{Errc::library, 0, "a fetch gives wrong bytes"};
}

int run(Runtime& runtime) {
  require_report_file(runtime);
  auto& world = runtime.world();
  if (world.size() != 2) world.agree(Error{Errc::invalid, 0, "token_bench wants two ranks"});
  world.agree(check_fetch(runtime));
  const auto& config = runtime.config();
  const std::vector<std::uint64_t> sizes = config.given("size")
                                               ? std::vector{config.bytes("size")}
                                               : std::vector<std::uint64_t>{8, 64u << 20, 1u << 30};
  std::vector<Comparison> lines;
  for (const auto size : sizes) {
    const auto of_size = Bench(runtime, size).run();
    lines.insert(lines.end(), of_size.begin(), of_size.end());
  }
  report(runtime,
         fmt::format("{}, token-path {}: medians of {}, of small transfers of {}",
                     runtime.device().info().name, config.text("token-path"),
                     config.integer("repetitions"), kMoreOfSmall * config.integer("repetitions")),
         lines);
  return kExitSuccess;
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  using namespace troupe;
  const Program program{"token_bench",
                        "Measures fetch and put between two ranks, beside raw copies or messages.",
                        bench::option_specs()};
  return run_program(argc, argv, program, bench::run);
}
