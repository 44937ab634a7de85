#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include <troupe/error.hpp>

namespace troupe::rank {

/// What has failed, and what of it the program knows.
///
/// A program may drop any future. So errors are entered here before they go into one, with a mark
/// that the future sets when the program reads it. Any thread.
class ErrorLedger {
 public:
  /// Enters an error. Returns it with its mark: this is what the future shall hold.
  [[nodiscard]] Error enter(Error error);
  /// The first error since the last call, read or not. All that were entered count as read.
  std::optional<Error> take();
  /// Errors of commands that a loss has ended, or kept from running, count as read.
  void forgive_losses();
  [[nodiscard]] UnreadErrors unread();

 private:
  /// Forgets the errors that no future holds any more; counts those of them that were not read.
  void settle();

  std::mutex mutex_;
  std::atomic<bool> any_{false};
  std::optional<Error> first_;  ///< see take()
  std::vector<Error> open_;     ///< in order; the program may still read them, or has
  std::size_t settle_at_ = 64;  ///< as many open ones
  UnreadErrors lost_;           ///< that nobody can read any more
  UnreadErrors lost_by_loss_;   ///< of these, what forgive_losses() is about
};

}  // namespace troupe::rank
