#include "drill.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <thread>

namespace troupe::drill {
namespace {

using namespace std::chrono_literals;

constexpr int kReducesPerStep = 16;
constexpr std::int64_t kStepsBefore = 20;
constexpr auto kFaultLimit = 60s;    ///< for a fault to have its effect and to be overcome
constexpr auto kRejoins = "rejoin";  ///< Recovery::kind of a rank that is back

/// What a fault anywhere makes of operations that have nothing to do with it.
bool is_of_a_fault(Errc code) {
  return code == Errc::device_lost || code == Errc::world_reformed || code == Errc::stale ||
         code == Errc::peer_lost;
}

bool contains(const std::vector<int>& ranks, int rank) {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

double to_ms(std::chrono::nanoseconds time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

}  // namespace

Recovery Outcome::sum() const {
  Recovery sum;
  for (std::size_t i = 0; i < recoveries.size(); ++i) {
    const auto& one = recoveries[i];
    const bool same_epoch = i > 0 && recoveries[i - 1].epoch == one.epoch;
    if (same_epoch) {  // several faults, one re-formation
      const auto& first = recoveries[i - 1];
      sum.detect_ms += std::max(0.0, one.detect_ms - first.detect_ms);
      sum.total_ms += std::max(0.0, one.total_ms - first.total_ms);
      continue;
    }
    for (const auto& time : kRecoveryTimes) sum.*time.ms += one.*time.ms;
    sum.end_ms += one.end_ms;
    sum.total_ms += one.total_ms;
    sum.lost_buffers += one.lost_buffers;
    sum.repeated_iterations += one.repeated_iterations;
  }
  return sum;
}

Drill::Drill(Runtime& runtime, const Options& options)
    : world_(runtime.world()),
      device_(runtime.device()),
      options_(options),
      is_victim_(contains(options.victims, world_.rank())),
      is_second_(options.second == world_.rank()),
      has_standby_(runtime.config().text("standby") != "off"),
      fault_limit_(kFaultLimit + runtime.config().duration("heartbeat-timeout")),
      all_ranks_(world_.size()),
      stream_(device_.alloc<double>(kStreamLength)),
      kept_(device_.alloc<float>(static_cast<std::int64_t>(options.kept_bytes / sizeof(float)))) {
  keep();
}

void Drill::settle() {
  if (options_.settle.has_value()) std::this_thread::sleep_for(*options_.settle);
  if (options_.settle.has_value() || !has_standby_) return world_.barrier();
  world_.wait_for_standbys(kSettleLimit);
}

Outcome Drill::suffer(const Attack& attack) {
  const bool second = !attack.phase.empty();
  reduce_and_verify();
  kind_ = attack.kind;
  known_ = world_.recoveries().size();
  expected_ = known_ + options_.victims.size() + (second ? 1 : 0);
  failed_ = failed_before_ = 0;
  goes_out_ = options_.shrinks && (is_victim_ || (second && is_second_));
  ordered_.reset();
  verified_ = {};
  longest_pause_ = {};
  streamed_ = Clock::now();
  if (second && is_second_) check(world_.inject_in_phase(kind_, attack.phase), "no such phase");
  // The clocks of nodes differ: each rank's times count from here.
  world_.barrier();
  const auto start = Clock::now();
  deadline_ = start + fault_limit_;
  options_.in_run ? suffer_in_run() : suffer_outside_run();
  if (goes_out_) failed_before_ = failed_;

  constexpr auto kNever = Clock::duration::max();
  const auto orders = world_.gather_values(ordered_ ? *ordered_ - start : kNever);
  // A rank that was out of the world has verified nothing.
  const auto ends = world_.gather_values(verified_ == Clock::time_point{} ? Clock::duration{}
                                                                          : verified_ - start);
  Outcome outcome;
  outcome.wall_ms = to_ms(*std::max_element(ends.begin(), ends.end()) -
                          *std::min_element(orders.begin(), orders.end()));
  came_back_ = {};
  for (const auto failed : world_.gather_values(failed_before_)) outcome.failed_commands += failed;
  for (const auto failed : world_.gather_values(failed_ - failed_before_))
    came_back_.failed_commands += failed;
  for (const auto pause : world_.gather_values(longest_pause_))
    came_back_.wall_ms = std::max(came_back_.wall_ms, to_ms(pause));
  for (const bool intact : world_.gather_values(kept_is_intact()))
    outcome.kept_intact = outcome.kept_intact && intact;
  came_back_.kept_intact = outcome.kept_intact;
  const auto recoveries = world_.recoveries();
  for (auto one = recoveries.begin() + static_cast<std::ptrdiff_t>(known_); one != recoveries.end();
       ++one) {
    (one->kind == kRejoins ? came_back_ : outcome).recoveries.push_back(*one);
  }
  if (!outcome.kept_intact) keep();
  return outcome;
}

/// As a program does that handles faults itself.
void Drill::suffer_outside_run() {
  for (std::int64_t number = 0;; ++number) {
    const auto epoch = world_.epoch();
    try {
      if (step(number) == Step::done) return;
      continue;
    } catch (const Exception& e) {
      (void)active_epoch();
      if (!is_of_a_fault(e.code())) throw;
    }
    // The first to notice is the device; the world may still seem active for a moment.
    while (active_epoch() == epoch && Clock::now() < deadline_) std::this_thread::sleep_for(20us);
  }
}

/// Waits for it. What ends the world ends it for all ranks.
Epoch Drill::active_epoch() {
  const auto epoch = world_.wait_active();
  if (!epoch) throw CollectiveException(epoch.error());
  return *epoch;
}

void Drill::suffer_in_run() {
  Checkpoint checkpoint(device_);
  checkpoint.add("stream", stream_);
  SaveOptions save;  // nothing to disk
  save.partner = world_.save_options().partner;
  world_.run(checkpoint, [this](std::int64_t number) { return step(number); },
             {.commit_every = kCommitEvery,
              .save = save,
              .redistribute = [this](const SavedState& state) { take_over(state); },
              .resized =
                  [&] {
                    if (!stream_.valid()) stream_.renew();
                    checkpoint.add("stream", stream_);
                  }});
}

/// Every rank has the same.
void Drill::take_over(const SavedState& state) {
  const SavedPiece piece{0, "stream", 0, static_cast<std::uint64_t>(kStreamLength)};
  const auto values = SavedState::as<double>(state.read({&piece, 1}).take()[0]);
  device_.upload(std::span<const double>(values), stream_).get();
}

Step Drill::step(std::int64_t number) {
  // What this rank submits in an epoch that it has not acknowledged fails.
  const auto overcome = world_.recoveries().size();
  if (is_victim_ && !ordered_ && (number >= kStepsBefore || overcome > known_)) order_fault();
  if (overcome >= expected_) return wait_for_all();
  if (Clock::now() > deadline_) {
    throw Exception(Error{Errc::timeout, 0,
                          fmt::format("{}: {} of {} faults were noticed and overcome",
                                      to_string(kind_), overcome - known_, expected_ - known_)});
  }
  stream();
  return Step::again;
}

Step Drill::wait_for_all() {
  const auto now = Clock::now();
  const bool all_are_here = world_.size() == all_ranks_;
  // The first pause is the loss's alone, unless the lost ranks are back at its end.
  if (!goes_out_ && (verified_ != Clock::time_point{} || all_are_here))
    longest_pause_ = std::max(longest_pause_, now - streamed_);
  reduce_and_verify();
  streamed_ = Clock::now();
  if (verified_ == Clock::time_point{} && !goes_out_) {
    verified_ = streamed_;
    failed_before_ = failed_;
  }
  if (all_are_here) return Step::done;
  if (now > deadline_) {
    throw Exception(
        Error{Errc::timeout, 0, "the lost ranks do not come back (see --rejoin-after)"});
  }
  return Step::again;
}

void Drill::order_fault() {
  ordered_ = Clock::now();
  (void)device_.inject(kind_);
}

void Drill::stream() {
  if (!stream_.valid()) stream_.renew();
  std::vector<Future<void>> futures;
  for (int i = 0; i < kReducesPerStep; ++i)
    futures.push_back(world_.all_reduce(stream_, ReduceOp::max));
  std::optional<Error> first;
  for (const auto& future : futures) {
    const auto& outcome = future.wait();
    if (outcome.ok()) continue;
    ++failed_;
    if (!first) first = outcome.error();
  }
  if (first) throw Exception(*first);
  streamed_ = Clock::now();
}

void reduce_and_verify(World& world, Device& device, const GpuRef<double>& stream) {
  device.fill(stream, world.rank() + 1.0);
  const auto reduced = world.all_reduce(stream, ReduceOp::sum);
  const auto values = device.download(stream);
  reduced.get();  // refused, it would have left the values alone
  const double expected = world.size() * (world.size() + 1) / 2.0;
  for (const double value : values) {
    if (value == expected) continue;
    throw Exception(
        Error{Errc::library, 0, fmt::format("all_reduce gives {} instead of {}", value, expected)});
  }
}

void Drill::reduce_and_verify() {
  if (!stream_.valid()) stream_.renew();
  drill::reduce_and_verify(world_, device_, stream_);
}

void Drill::keep() {
  if (!kept_.valid()) kept_.renew();
  device_.rng().uniform(kept_, {.subsequence = static_cast<std::uint64_t>(world_.rank())});
  kept_values_ = device_.download(kept_);
}

bool Drill::kept_is_intact() {
  if (!kept_.valid()) return false;
  const auto values = device_.download(kept_);
  return std::memcmp(values.data(), kept_values_.data(), values.size() * sizeof(float)) == 0;
}

}  // namespace troupe::drill
