#include "rank/device/host/host_table.hpp"

#include <algorithm>

namespace troupe::rank_process {

namespace {

std::optional<HostState> next(HostState from, HostTable::Event event) {
#define TROUPE_HOST(state, on, into) \
  if (from == HostState::state && event == HostTable::Event::on) return HostState::into;
#include "rank/device/host/host_transitions.def"
#undef TROUPE_HOST
  return std::nullopt;
}

}  // namespace

void HostTable::add(HostId host, HostState state, TimePoint now) {
  hosts_[host] = {.state = state, .since = now};
}

bool HostTable::move(HostId host, Event event) {
  const auto it = hosts_.find(host);
  if (it == hosts_.end()) return false;
  const auto into = next(it->second.state, event);
  if (into) it->second.state = *into;
  return into.has_value();
}

template <class... States>
std::optional<HostId> HostTable::in(States... states) const {
  const auto it = std::find_if(hosts_.begin(), hosts_.end(), [&](const auto& entry) {
    return ((entry.second.state == states) || ...);
  });
  return it == hosts_.end() ? std::nullopt : std::optional(it->first);
}

std::optional<HostId> HostTable::active() const {
  return in(HostState::starting, HostState::ready, HostState::promoting, HostState::serving,
            HostState::faulty, HostState::gone);
}
std::optional<HostId> HostTable::faulty() const {
  return in(HostState::faulty, HostState::gone);
}
std::optional<HostId> HostTable::beating() const {
  return in(HostState::ready, HostState::promoting, HostState::serving);
}
std::optional<HostId> HostTable::with_memory() const {
  return in(HostState::promoting, HostState::serving);
}
std::optional<HostId> HostTable::serving() const {
  return in(HostState::serving);
}
std::optional<HostId> HostTable::successor() const {
  return in(HostState::coming, HostState::waiting);
}
std::optional<HostId> HostTable::standby() const {
  return in(HostState::rising, HostState::standby);
}
std::optional<HostId> HostTable::ready_standby() const {
  return in(HostState::standby);
}
std::vector<HostId> HostTable::heirs() const {
  std::vector<HostId> all;
  for (const auto state : {HostState::standby, HostState::waiting})
    if (const auto host = in(state)) all.push_back(*host);
  return all;
}
std::optional<HostState> HostTable::state_of(HostId host) const {
  const auto it = hosts_.find(host);
  return it == hosts_.end() ? std::nullopt : std::optional(it->second.state);
}
std::optional<HostId> HostTable::next_in_line() const {
  return in(HostState::coming, HostState::waiting, HostState::starting, HostState::ready,
            HostState::promoting, HostState::serving);
}
bool HostTable::has_started(HostId host) const {
  const auto state = hosts_.at(host).state;
  return state != HostState::coming && state != HostState::starting;
}

}  // namespace troupe::rank_process
