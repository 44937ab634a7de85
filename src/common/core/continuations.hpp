#pragma once

#include <chrono>
#include <functional>

#include <troupe/error.hpp>

/// Where functions run that are given to futures.
namespace troupe::detail {

/// Whether the calling thread is in such a function: in what Future::then() or on_ready() was
/// given, or behind a co_await that did not find its future ready. It may be the thread on which
/// futures are resolved, and then all of them wait for it.
[[nodiscard]] bool in_continuation() noexcept;

/// For a thread of which the runtime has need, whatever the program does: that of an actor of
/// troupe's, of a transport, of a watcher. The program's functions, which may submit commands and
/// wait for room, run on other threads from now on where this one resolves a future.
void this_thread_must_not_wait() noexcept;

/// Waits until all of those have returned; false if they take longer than that.
bool wait_for_continuations(std::chrono::nanoseconds limit);

/// Who is to hear of an error that no command has had: everybody who asks what has failed, or only
/// whoever holds the future, and the end of the program if nobody has read that.
enum class Heard { by_all, by_asker };
/// Where enter_error() and enter_answer() go; empty: errors are kept nowhere else. It returns the
/// error with its mark, and must not resolve futures.
using EnterError = std::function<Error(Error error, Heard heard)>;
void set_error_account(EnterError enter);

}  // namespace troupe::detail
