#include "device_host/formation/meetings.hpp"

#include <algorithm>
#include <utility>

namespace troupe::host {

Result<Rendezvous::Card> Meetings::open(std::uint32_t communicator) {
  auto made = Rendezvous::open();
  if (!made.ok()) return made.error();
  close(communicator);
  return places_.emplace(communicator, std::move(*made)).first->second->card();
}

Rendezvous* Meetings::find(std::uint32_t communicator) const {
  const auto found = places_.find(communicator);
  return found != places_.end() ? found->second.get() : nullptr;
}

void Meetings::close(std::uint32_t communicator) {
  if (newest_ == find(communicator)) newest_ = nullptr;
  places_.erase(communicator);
}

void Meetings::close_all() {
  newest_ = nullptr;
  places_.clear();
}

std::vector<std::uint32_t> Meetings::close_others(const std::vector<std::uint32_t>& kept) {
  std::vector<std::uint32_t> others;
  for (const auto& [communicator, place] : places_) {
    if (std::find(kept.begin(), kept.end(), communicator) == kept.end())
      others.push_back(communicator);
  }
  for (const auto communicator : others) close(communicator);
  return others;
}

Result<void> Meetings::fits(const wire::Command& command) const {
  const auto check_world = command.info().check_world;
  if (check_world == nullptr) return {};
  const auto* const place = find(command.header().communicator);
  if (place == nullptr || place->size() == 0) return {};
  return check_world(command.op(), place->rank(), place->size());
}

Result<bool> Meetings::come(const wire::Command& command, const Result<void>& fits, int looks) {
  auto* const place = find(command.header().communicator);
  if (place == nullptr) return true;
  newest_ = place;
  if (fits.ok())
    return place->arrive(command.header().ticket, command.info(), command.op(), command.tail(),
                         looks);
  if (place->refuse(command.info(), command.op())) return fits.error();
  return false;
}

}  // namespace troupe::host
