#include "rank/device/arrivals.hpp"

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
  for (const auto& [collective, ticks] : kept_)
    all.push_back({collective, reading.time_of(ticks).count()});
  return all;
}

std::optional<Slowest> find_slowest(const std::vector<std::vector<Arrival>>& ranks,
                                    std::uint32_t stride, std::size_t least) {
  /// The last two to come to a collective.
  struct Meeting {
    std::size_t ranks = 0, last = 0;
    std::int64_t last_ns = 0, before_ns = 0;
  };
  std::map<std::uint64_t, Meeting> meetings;
  std::size_t members = 0;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    members += ranks[rank].empty() ? 0 : 1;
    for (const auto& [collective, time] : ranks[rank]) {
      auto& meeting = meetings[collective];
      if (meeting.ranks++ == 0 || time > meeting.last_ns) {
        meeting.before_ns = meeting.ranks == 1 ? time : meeting.last_ns;
        meeting.last = rank;
        meeting.last_ns = time;
      } else {
        meeting.before_ns = meeting.ranks == 2 ? time : std::max(meeting.before_ns, time);
      }
    }
  }
  std::erase_if(meetings, [&](const auto& one) { return one.second.ranks != members; });
  if (members < 2 || meetings.size() < std::max<std::size_t>(least, 2)) return std::nullopt;
  struct Tally {
    std::size_t last = 0;
    std::int64_t waiting_ns = 0;
  };
  std::vector<Tally> tallies(ranks.size());
  auto first_ns = meetings.begin()->second.last_ns, last_ns = first_ns;
  for (const auto& [collective, meeting] : meetings) {
    ++tallies[meeting.last].last;
    tallies[meeting.last].waiting_ns += meeting.last_ns - meeting.before_ns;
    first_ns = std::min(first_ns, meeting.last_ns);
    last_ns = std::max(last_ns, meeting.last_ns);
  }
  const auto most =
      std::max_element(tallies.begin(), tallies.end(),
                       [](const Tally& a, const Tally& b) { return a.last < b.last; });
  const auto span = static_cast<double>(std::max<std::int64_t>(last_ns - first_ns, 1));
  return Slowest{static_cast<std::size_t>(most - tallies.begin()), most->last, meetings.size(),
                 static_cast<double>(most->waiting_ns) * stride / span};
}

}  // namespace troupe::rank_process
