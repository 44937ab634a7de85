#include "rank/device/flight/arrivals.hpp"

#include <algorithm>
#include <map>

namespace troupe::rank_process {

void Arrivals::thin_out() noexcept {
  stride_ *= 2;
  std::erase_if(kept_, [this](const Kept& one) { return (one.collective & (stride_ - 1)) != 0; });
}

std::vector<Arrival> Arrivals::taken(const TickScale::Reading& reading) const {
  std::vector<Arrival> all;
  all.reserve(kept_.size());
  for (const auto& [collective, ticks, ahead] : kept_)
    all.push_back({collective, reading.time_of(ticks).count(), ahead ? 1 : 0});
  return all;
}

namespace {

/// A rank stands out that the others wait for in this part of the time, at least.
constexpr double kLeastWaiting = 0.01;

/// The last two to come to a collective.
struct Meeting {
  std::size_t ranks = 0, last = 0;
  std::int64_t last_ns = 0, before_ns = 0;
  bool ahead = false;  ///< the last one was
};

void add(Meeting& meeting, std::size_t rank, const Arrival& arrival) {
  const auto time = arrival.time_ns;
  if (meeting.ranks++ == 0 || time > meeting.last_ns) {
    meeting.before_ns = meeting.ranks == 1 ? time : meeting.last_ns;
    meeting.last = rank;
    meeting.last_ns = time;
    meeting.ahead = arrival.ahead != 0;
  } else {
    meeting.before_ns = meeting.ranks == 2 ? time : std::max(meeting.before_ns, time);
  }
}

}  // namespace

std::optional<Slowest> find_slowest(const std::vector<std::vector<Arrival>>& ranks,
                                    std::uint32_t stride, std::size_t least) {
  std::map<std::uint64_t, Meeting> meetings;
  std::size_t members = 0;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    members += ranks[rank].empty() ? 0 : 1;
    for (const auto& arrival : ranks[rank]) add(meetings[arrival.collective], rank, arrival);
  }
  std::erase_if(meetings, [&](const auto& one) { return one.second.ranks != members; });
  if (members < 2 || meetings.size() < std::max<std::size_t>(least, 2)) return std::nullopt;
  struct Tally {
    std::size_t last = 0;
    std::int64_t waiting_ns = 0;
  };
  std::vector<Tally> tallies(ranks.size());
  const auto first_ns = meetings.begin()->second.last_ns;
  auto ended_ns = first_ns;  // a collective has not ended before all have come to it
  for (const auto& [collective, meeting] : meetings) {
    if (!meeting.ahead) {
      auto& tally = tallies[meeting.last];
      ++tally.last;
      // Multiplying by stride stands for the collectives that were not kept. The waiting cannot be
      // longer than the time since the last collective that was.
      const auto since = std::max(meeting.before_ns, ended_ns);
      const auto room = std::max<std::int64_t>(meeting.last_ns - ended_ns, 0);
      tally.waiting_ns +=
          std::min(std::max<std::int64_t>(meeting.last_ns - since, 0) * stride, room);
    }
    ended_ns = std::max(ended_ns, meeting.last_ns);
  }
  const auto most =
      std::max_element(tallies.begin(), tallies.end(),
                       [](const Tally& a, const Tally& b) { return a.last < b.last; });
  const auto span = static_cast<double>(std::max<std::int64_t>(ended_ns - first_ns, 1));
  const auto waiting = static_cast<double>(most->waiting_ns) / span;
  const bool often = 2 * members * most->last > (members + 1) * meetings.size();
  if (!often || waiting < kLeastWaiting) return std::nullopt;
  return Slowest{static_cast<std::size_t>(most - tallies.begin()), most->last, meetings.size(),
                 waiting};
}

}  // namespace troupe::rank_process
