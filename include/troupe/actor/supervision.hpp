#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string_view>

#include <troupe/actor/actor_id.hpp>
#include <troupe/error.hpp>

namespace troupe {

/// What to do with an actor whose handler failed. Every actor is dealt with alone (one for one).
enum class Directive : std::uint8_t {
  resume,   ///< drop the message that failed, keep the actor
  restart,  ///< destroy the object and make a new one at the same address, with the same mailbox
  stop,     ///< end the actor with the error
  escalate  ///< end the actor with the error and let its parent fail with it
};

/// Maps a failure to a directive. Runs in the failing actor's turn; must not throw.
using Decider = std::function<Directive(const Error&)>;

/// The caller's and the library's errors leave the actor usable (resume), device_lost asks for a
/// new start (restart), device_failed cannot be cured (stop), and what should not happen goes up
/// (escalate).
[[nodiscard]] Directive default_decider(const Error& error);

/// How an actor is supervised. Past the budget it is stopped with Errc::budget_exhausted.
struct OneForOne {
  Decider decider = default_decider;
  int max_restarts = 3;
  std::chrono::nanoseconds window = std::chrono::seconds(60);
};

/// A failure and what was done about it.
struct Failure {
  ActorId id;
  std::string_view name;  ///< valid during the call
  const Error& error;
  Directive directive;
};

[[nodiscard]] std::string_view to_string(Directive directive) noexcept;

}  // namespace troupe
