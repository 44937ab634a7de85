#include "rank/device/commands/command_port.hpp"

#include <algorithm>
#include <thread>

namespace troupe::rank_process {

Future<void> CommandPort::Deliveries::submit(const detail::CommandView& command) {
  auto quiet = command;
  quiet.quiet = true;
  quiet.within = within_;
  return port_->submit(quiet, Patience::wait, true);
}

Future<void> CommandPort::submit(const detail::CommandView& command, Patience patience,
                                 bool delivers) {
  using Way = Transfers::Way;
  for (auto pause = std::chrono::microseconds(1);;
       pause = std::min(pause * 2, std::chrono::microseconds(1000))) {
    Transfers::Hindrance found;
    {
      const std::lock_guard lock(shared_.submissions);
      if (auto admitted = admit(command, delivers); !admitted) {
        gate_.note_wait(false);
        return command.quiet ? Future<void>(std::move(admitted)) : refuse(admitted.error());
      }
      if (!delivers) found = transfers_.hindrance(command);
      Future<void> future;
      if (gate_.is_its_turn() && found.way == Way::clear && ring_.push(command, future)) {
        gate_.note_wait(false);
        return future;
      }
      if (found.way == Way::clear && patience == Patience::wait) gate_.note_wait(true);
    }
    if (found.way == Way::lent) {
      transfers_.rescue(found.range);
      continue;
    }
    if (patience == Patience::give_up) {
      return Future<void>(Error{Errc::would_block, 0,
                                found.way == Way::clear ? "the command ring is full"
                                                        : "a transfer into a buffer is under way"});
    }
    poll();  // makes room in the ticket table; the device host makes it in the ring
    std::this_thread::sleep_for(pause);
  }
}

Result<void> CommandPort::admit(const detail::CommandView& command, bool delivers) const {
  if (gate_.ended()) return *gate_.ended();
  // Commands that other ranks ask for belong to an epoch and to steps of those ranks: the timeline
  // of this thread does not matter.
  const bool own = !delivers && command.within == 0;
  if (!run_guard_.works_for_run() && own && !Gate::Passage::open()) [[unlikely]] {
    if (auto right = run_guard_.check(command); !right) return right;
  }
  if (gate_.shut() && !Gate::Passage::open()) return *gate_.shut();
  const auto epoch = shared_.current_epoch();
  if (command.scope.epoch != 0 && command.scope.epoch != epoch) {
    return Error{Errc::world_reformed, 0,
                 std::string(command.info->name) + ": its epoch, " +
                     std::to_string(command.scope.epoch) +
                     ", has ended: call World::wait_active()"};
  }
  if (command.within != 0 && command.within != epoch) {
    return Error{Errc::world_reformed, 0,
                 "a request of epoch " + std::to_string(command.within) + ", which has ended"};
  }
  if (auto taken = ring_.takes(command); !taken) return taken;
  const auto& buffers = shared_.buffers;
  const auto known = [&buffers](const Operand& operand) {
    return in_no_table(operand) || buffers.current(operand);
  };
  const auto stale = [&](std::string_view name, const Operand& operand) {
    return Error{Errc::stale, 0,
                 std::string(command.info->name) + ": " + std::string(name) + ": " +
                     buffers.explain(operand)};
  };
  for (const auto& use : command.uses()) {
    if (!known(*use.range)) return stale(use.name, *use.range);
  }
  for (const auto& part : command.tail) {
    if (!known(part.range)) return stale(command.info->tail, part.range);
  }
  const auto bytes = wire::record_bytes(command);
  if (!ring_.takes(command.tail.size(), bytes)) {
    return Error{Errc::invalid, 0,
                 "a command of " + std::to_string(bytes) + " bytes does not fit the ring"};
  }
  return {};
}

}  // namespace troupe::rank_process
