#pragma once

namespace troupe::rank_process {

/// A signal by which a launcher asks the run to end in good order, taken note of and no more: the
/// run loop looks after every step. One per process.
///
/// Catches `signal` from now on.
void catch_stop_signal(int signal) noexcept;
/// Restores the previous handler.
void release_stop_signal() noexcept;
/// Whether it has come since this was last asked. Any thread.
[[nodiscard]] bool take_stop_signal() noexcept;

}  // namespace troupe::rank_process
