#pragma once

#include <chrono>
#include <thread>
#include <type_traits>

#include <troupe/error.hpp>

namespace troupe {

/// Sends an actor a message however full its mailbox is: waits for room, so it is for threads that
/// may wait, not for actors. Errors: stopped.
///
/// Each attempt sends a copy, because one that fails has used its message up. What is costly to
/// copy, or cannot be, travels behind a shared_ptr.
template <class Ref, class M>
Result<void> tell_patiently(const Ref& actor, const M& message) {
  static_assert(std::is_copy_constructible_v<M>);
  for (;;) {
    auto told = actor.tell(message);
    if (told.code() != Errc::would_block) return told;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

}  // namespace troupe
