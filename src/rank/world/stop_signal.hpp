#pragma once

namespace troupe::rank {

/// A signal by which a launcher asks the run to end in good order, taken note of and no more: the
/// run loop looks after every step. One per process.
///
/// Catches `signal` from now on.
void catch_stop_signal(int signal) noexcept;
/// Gives it its meaning of before back.
void release_stop_signal() noexcept;
/// Whether it has come. Any thread.
[[nodiscard]] bool stop_signal_seen() noexcept;

}  // namespace troupe::rank
