#pragma once

/// Where functions run that are given to futures.
namespace troupe::detail {

/// Whether the calling thread is in such a function: in what Future::then() or on_ready() was
/// given, or behind a co_await that did not find its future ready. It may be the thread on which
/// futures are resolved, and then all of them wait for it.
[[nodiscard]] bool in_continuation() noexcept;

}  // namespace troupe::detail
