#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "device_host/engine/collective_half.hpp"
#include "device_host/helpers.hpp"

namespace troupe::host {

/// The ends of channels that this device host has, by number, and the threads that work on them.
///
/// Each piece of work has a thread of its own: two ranks that send to one another, or a ring of
/// them, would wait for ever if one of them did its part only after its other part had ended.
class Channels {
 public:
  /// Pieces of work at a time: more are refused.
  static constexpr std::size_t kMaxWork = 512;
  using EndPtr = std::shared_ptr<ChannelEnd>;

  explicit Channels(ipc::Doorbell bell) : threads_(std::move(bell), kMaxWork) {}

  // The reactor's thread.

  /// Takes an end in. Errors: invalid if the number is taken; world_reformed if it was given up
  /// before.
  Result<void> add(std::uint64_t number, EndPtr end);
  /// Errors: world_reformed if there is no such end, or none any more.
  [[nodiscard]] Result<EndPtr> find(std::uint64_t number);
  /// Gives one end up, if it is there; else, if what makes it may come later, that does not make
  /// it. A number is used once.
  void drop(std::uint64_t number, bool may_come);
  /// False if there is too much under way.
  [[nodiscard]] bool start(Helpers::Job job) { return threads_.start(std::move(job)); }
  /// See Helpers.
  bool run_finished() { return threads_.run_finished(); }
  [[nodiscard]] int fd() const noexcept { return threads_.fd(); }
  [[nodiscard]] bool busy() const noexcept { return threads_.running() != 0; }
  /// Has a helper destroy the ends that have been given up, which may take some time.
  void bury(Helpers& helpers);

  /// Gives all ends up. Any thread, at once.
  void abort();

 private:
  std::mutex mutex_;
  std::map<std::uint64_t, EndPtr> ends_;
  std::vector<EndPtr> given_up_;
  std::set<std::uint64_t> given_up_early_;  ///< before they were made
  // Last: its threads use the rest.
  Helpers threads_;
};

}  // namespace troupe::host
