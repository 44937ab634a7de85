#include "rank/protocol/slow_ranks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace troupe::rank_process {
namespace {

double own_share(const RankPace& pace) {
  return pace.wall_us > 0 ? static_cast<double>(pace.own_us) / static_cast<double>(pace.wall_us)
                          : 0;
}

/// The lesser one of the two in the middle, if their number is even: of two ranks one can be slow.
double median(std::vector<double> values) {
  const auto middle = values.begin() + (std::ssize(values) - 1) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// A rank has this many processes on its GPU by itself: a device host, and a standby.
constexpr unsigned kOwnProcesses = 2;
/// A clock is low below this part of the highest one: boost clocks vary by some percent.
constexpr double kLowClock = 0.9;

std::string of_gpu(const GpuHealth& health) {
  std::vector<std::string> known;
  const bool slowed = health.slowed_by && !health.slowed_by->empty();
  const bool low = health.clock && health.highest_clock &&
                   *health.clock < kLowClock * static_cast<double>(*health.highest_clock);
  if (low) {
    known.push_back(
        fmt::format("its GPU's clock is {} of {} MHz", *health.clock, *health.highest_clock));
  }
  if (slowed) {
    known.push_back(
        fmt::format("its GPU is slowed down by: {}", fmt::join(*health.slowed_by, ", ")));
    if (health.temperature)
      known.push_back(fmt::format("it is at {} degrees Celsius", *health.temperature));
  }
  if (health.processes && *health.processes > kOwnProcesses)
    known.push_back(fmt::format("{} processes compute on its GPU", *health.processes));
  if (known.empty()) return "its device takes longer, and nothing is known of why";
  return fmt::format("{}", fmt::join(known, ", "));
}

}  // namespace

SlowRanks::SlowRanks(Options options)
    : options_(options), ranks_(static_cast<std::size_t>(options.size)) {}

std::vector<from_supervisor::Slow> SlowRanks::receive(const from_rank::Committed& committed,
                                                      const std::vector<std::int32_t>& excluded) {
  if (committed.epoch != epoch_) begin_epoch(committed.epoch);
  for (const auto& pace : committed.paces) {
    if (pace.rank >= 0 && pace.rank < options_.size)
      ranks_[static_cast<std::size_t>(pace.rank)].pace = pace;
  }
  std::vector<std::int32_t> members;
  for (std::int32_t rank = 0; rank < options_.size; ++rank) {
    if (std::binary_search(excluded.begin(), excluded.end(), rank)) continue;
    if (!ranks_[static_cast<std::size_t>(rank)].pace) return {};
    members.push_back(rank);
  }
  return compare(members);
}

void SlowRanks::begin_epoch(std::uint32_t epoch) {
  epoch_ = epoch;
  told_in_epoch_ = false;
  for (auto& rank : ranks_) {
    rank.pace.reset();
    rank.slow_in_a_row = 0;
  }
}

std::vector<from_supervisor::Slow> SlowRanks::compare(const std::vector<std::int32_t>& members) {
  std::vector<double> shares;
  std::vector<std::int64_t> collectives;
  for (const auto rank : members) {
    const auto& pace = *ranks_[static_cast<std::size_t>(rank)].pace;
    shares.push_back(own_share(pace));
    collectives.push_back(pace.collectives);
  }
  if (members.empty()) return {};
  const auto [fewest, most] = std::minmax_element(collectives.begin(), collectives.end());
  const bool comparable = 2 * *fewest >= *most;
  const auto usual = median(shares);
  std::vector<from_supervisor::Slow> found;
  for (const auto number : members) {
    auto& rank = ranks_[static_cast<std::size_t>(number)];
    const auto pace = *std::exchange(rank.pace, std::nullopt);
    const auto share = own_share(pace);
    const bool slow = comparable && share > options_.factor * usual && share - usual > kLeastShare;
    rank.slow_in_a_row = slow ? rank.slow_in_a_row + 1 : 0;
    if (rank.slow_in_a_row < kWindows || !may_tell(rank)) continue;
    rank.told = told_in_epoch_ = true;
    ++told_;
    found.push_back({pace, static_cast<std::int64_t>(usual * static_cast<double>(pace.wall_us))});
  }
  return found;
}

bool SlowRanks::may_tell(const Rank& rank) const {
  return !rank.told && told_ < kMostTold && !(options_.one_in_an_epoch && told_in_epoch_);
}

double ratio_of(const from_supervisor::Slow& slow) {
  return static_cast<double>(slow.pace.own_us) /
         static_cast<double>(std::max<std::int64_t>(slow.median_us, 1));
}

std::string in_words(const from_supervisor::Slow& slow, const GpuHealth& health) {
  const auto& pace = slow.pace;
  const auto percent = [&](std::int64_t part_us) {
    return 100 * static_cast<double>(part_us) /
           static_cast<double>(std::max<std::int64_t>(pace.wall_us, 1));
  };
  const auto beyond = pace.own_us - slow.median_us;
  auto text =
      fmt::format("its own work takes {:.1f} times as long as the median rank's; ", ratio_of(slow));
  if (2 * pace.idle_us >= beyond)
    return text + fmt::format(
                      "its program submits late: its device had nothing to do in {:.0f} % "
                      "of the time",
                      percent(pace.idle_us));
  return text + of_gpu(health);
}

}  // namespace troupe::rank_process
