#pragma once

#include <cstdint>

/// Whether a command may be queued now, and what becomes of it if not: functions of values alone.
namespace troupe::host {

/// Collectives that are launched ahead: beyond that the next one is set aside until one has ended.
/// When a communicator is given up, each of NCCL's takes some 4 ms until it sees that.
inline constexpr std::uint64_t kCollectivesAhead = 4;

/// What stands against a command before those of other ranks are looked at.
struct Standing {
  bool behind_others = false;    ///< it conflicts with one that is set aside
  bool libraries_ready = true;   ///< all that it needs are open, and none of them is at work
  bool queue_full = false;       ///< of commands that wait for other ranks
  bool waits_for_peers = false;  ///< it would wait for other ranks on its queue
  bool cells_read = true;        ///< the last run of the same sequence has been judged
  bool collective = false;
  // Of a collective:
  bool communicator_busy = false;       ///< one is being formed beside the work
  bool opening_goes_first = false;      ///< see Libraries::opening_goes_first()
  std::uint64_t collectives_ahead = 0;  ///< launched, and not ended
};

/// Whether nothing of that keeps the command.
[[nodiscard]] constexpr bool may_go(const Standing& s) noexcept {
  if (s.behind_others || !s.libraries_ready || !s.cells_read) return false;
  if (s.queue_full && s.waits_for_peers) return false;
  if (!s.collective) return true;
  return !s.communicator_busy && !s.opening_goes_first && s.collectives_ahead < kCollectivesAhead;
}

/// What becomes of a command.
enum class Fate {
  queue,      ///< it is queued
  set_aside,  ///< it leaves the ring and waits among those that are set aside
  wait,       ///< it stays where it is
  work,       ///< a thread of its library queues it
  play        ///< it runs a sequence, whose commands are queued one by one
};

/// What a command's fate depends on.
struct Course {
  bool may_go = false;           ///< nothing keeps it
  bool needs_thread = false;     ///< to queue it may block, or its sequence is no graph
  bool from_ring = false;        ///< else it is set aside
  bool room = false;             ///< for one more that is set aside
  bool sequence = false;         ///< it runs one
  bool waits_for_peers = false;  ///< it would wait for other ranks on its queue
};

[[nodiscard]] constexpr Fate fate_of(const Course& c) noexcept {
  if (c.may_go && !c.needs_thread) return Fate::queue;
  // Only what is set aside is given to a thread: it holds up nobody.
  if (c.from_ring) return c.room ? Fate::set_aside : Fate::wait;
  if (!c.may_go) return Fate::wait;
  if (c.sequence) return Fate::play;
  // What waits for other ranks would keep the library from its other commands.
  return c.waits_for_peers ? Fate::wait : Fate::work;
}

}  // namespace troupe::host
