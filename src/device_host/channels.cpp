#include "device_host/channels.hpp"

#include <string>
#include <utility>

#include "device_host/device_host.hpp"

namespace troupe::host {

Result<void> Channels::add(std::uint64_t number, EndPtr end) {
  const std::lock_guard lock(mutex_);
  if (given_up_early_.erase(number) != 0)
    return Error{Errc::world_reformed, 0,
                 "the end number " + std::to_string(number) + " was given up before it was made"};
  if (ends_.emplace(number, std::move(end)).second) return {};
  return Error{Errc::invalid, 0, "there is an end number " + std::to_string(number) + " already"};
}

Result<Channels::EndPtr> Channels::find(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto found = ends_.find(number);
  if (found != ends_.end()) return found->second;
  return Error{Errc::world_reformed, 0,
               "there is no channel with an end number " + std::to_string(number)};
}

void Channels::drop(std::uint64_t number, bool may_come) {
  const std::lock_guard lock(mutex_);
  const auto found = ends_.find(number);
  if (found == ends_.end()) {
    if (may_come) given_up_early_.insert(number);
    return;
  }
  found->second->abort();
  given_up_.push_back(std::move(found->second));
  ends_.erase(found);
}

void Channels::abort() {
  const std::lock_guard lock(mutex_);
  for (auto& [number, end] : ends_) {
    end->abort();
    given_up_.push_back(std::move(end));
  }
  ends_.clear();
  given_up_early_.clear();
}

std::vector<Channels::EndPtr> Channels::take_given_up() {
  const std::lock_guard lock(mutex_);
  return std::exchange(given_up_, {});
}

// What the reactor does with them.

Result<void> DeviceHost::make_channel_end(std::uint64_t number, bool receives) {
  auto end = engine_->collectives().make_channel_end(receives);
  if (!end.ok()) return end.error();
  return channels_.add(number, std::move(*end));
}

DeviceHost::Step DeviceHost::work_on_channel(std::uint64_t number, Source source,
                                             std::optional<bool> makes,
                                             std::function<Result<void>(ChannelEnd&)> work) {
  const auto ticket = command_.header().ticket;
  if (opening_goes_first()) {
    if (source == Source::set_aside || set_aside_.full()) return Step::blocked;
    // It holds up nobody, least of all what gives the channel up that the opening waits for.
    set_aside_.add(ticket, *commands_.front(), command_.operands(), false);
    note_taken(ticket);
    commands_.pop();
    return Step::queued;
  }
  note_issued(command_.header());
  const auto made = makes ? make_channel_end(number, *makes) : Result<void>();
  const auto end = made.ok() ? channels_.find(number) : Result<Channels::EndPtr>(made.error());
  if (!end.ok()) return answered(ticket, source, end.error());
  const bool started =
      channels_.start([this, ticket, end = *end, work = std::move(work)]() -> Helpers::Finish {
        return [this, ticket, outcome = work(*end)] {
          if (mode_ == Mode::lost) return;
          if (outcome.code() == Errc::device_lost || outcome.code() == Errc::device_failed)
            return lose(outcome.error());
          held_answers_.emplace_back(
              ticket, outcome.ok() ? outcome : Result<void>(with_memory_use(outcome.error())));
        };
      });
  if (!started) {
    return answered(ticket, source,
                    Error{Errc::would_block, 0, "the device host has too much under way"});
  }
  take(source);
  return Step::queued;
}

DeviceHost::Step DeviceHost::drop_channel(std::uint64_t number, Source source) {
  const auto ticket = command_.header().ticket;
  note_issued(command_.header());
  channels_.drop(number, !set_aside_.empty());
  bury_channels();
  return answered(ticket, source, {});
}

void DeviceHost::bury_channels() {
  auto ends = channels_.take_given_up();
  if (ends.empty()) return;
  (void)helpers_.start([ends = std::move(ends)]() mutable -> Helpers::Finish {
    ends.clear();
    return [] {};
  });
}

}  // namespace troupe::host
