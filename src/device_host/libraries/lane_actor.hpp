#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <vector>

#include <troupe/actor/restart_budget.hpp>
#include <troupe/lib/operation.hpp>

namespace troupe::host {

/// The actor of one lane: of a library, or of one of troupe's own lanes. Its mailbox are the
/// commands of its lane that are set aside (see SetAside), so that nobody else waits for it.
///
/// A library is opened when a command first needs it, on a helper thread. What may block is carried
/// out on a thread of its own, one command at a time. A call that fails while the context stays
/// sound restarts the library: it is opened anew, with a new handle; what is in its mailbox stays.
/// A library that fails more often than its budget allows is given up: from then on its commands
/// fail, and no others do. The reactor's thread only.
struct LaneActor {
  enum class State {
    absent,  ///< not open; `error`: why it could not be opened, for the next command
    opening,
    ready,
    given_up  ///< `error`: why
  };
  static constexpr int kRestarts = 3;
  static constexpr std::chrono::seconds kWindow{60};

  State state = State::absent;
  std::optional<Error> error;
  bool working = false;     ///< its thread carries out a command: no other call of it may be made
  bool fails_next = false;  ///< as was ordered, see memory::LibraryFault
  /// The ticket of the command that fails for that: the next one of the program, whichever runs
  /// first.
  std::uint64_t failing_ticket = 0;

  /// Whether the command with this ticket is to fail, which it does once.
  bool fails(std::uint64_t ticket) noexcept {
    const bool is = failing_ticket == ticket && ticket != 0;
    if (is) failing_ticket = 0;
    return is;
  }
  std::vector<Operand> overwritten;  ///< while it worked: see Engine::overwrites()
  RestartBudget restarts{kRestarts, kWindow};
};

class LaneActors {
 public:
  LaneActor& operator[](Lane lane) { return actors_[static_cast<std::size_t>(lane)]; }
  const LaneActor& operator[](Lane lane) const { return actors_[static_cast<std::size_t>(lane)]; }

 private:
  std::array<LaneActor, kLaneCount> actors_;
};

}  // namespace troupe::host
