#include "simulated_network.hpp"

#include <algorithm>

namespace troupe::rank_process {

bool SimulatedNetwork::is_slow(int rank) const {
  return std::find(conditions_.slow.begin(), conditions_.slow.end(), rank) !=
         conditions_.slow.end();
}

std::chrono::microseconds SimulatedNetwork::travel(int from, int to) {
  auto time = 1 + (*random_)() % conditions_.delay_us;
  for (; chance(conditions_.lost_percent); ++lost_)
    time += 1 + (*random_)() % conditions_.resent_after_us;
  return std::chrono::microseconds(time * (is_slow(from) || is_slow(to) ? kSlowness : 1));
}

void SimulatedNetwork::send(int from, int to, std::function<void()> deliver) {
  auto& line = lines_[{from, to}];
  const auto number = line.sent++;
  const auto arrival = [this, &line, number, deliver = std::move(deliver)] {
    arrive(line, number, deliver);
  };
  if (chance(conditions_.duplicated_percent)) later_(travel(from, to), arrival);
  later_(travel(from, to), arrival);
}

void SimulatedNetwork::arrive(Line& line, std::uint64_t number,
                              const std::function<void()>& deliver) {
  if (number < line.delivered || line.held.contains(number)) {
    ++duplicates_;
    return;
  }
  if (number > line.delivered) ++overtaken_;
  line.held.emplace(number, deliver);
  while (!line.held.empty() && line.held.begin()->first == line.delivered) {
    const auto next = std::move(line.held.begin()->second);
    line.held.erase(line.held.begin());
    ++line.delivered;
    next();
  }
}

}  // namespace troupe::rank_process
