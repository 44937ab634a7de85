#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "common/wire/record.hpp"
#include "device_host/formation/rendezvous.hpp"

namespace troupe::host {

/// The meeting places of this rank's communicators, also of those that are yet to be formed. The
/// reactor's thread only.
class Meetings {
 public:
  /// Makes a new place for the communicator. Errors: io.
  Result<Rendezvous::Card> open(std::uint32_t communicator);
  /// nullptr: there is none.
  [[nodiscard]] Rendezvous* find(std::uint32_t communicator) const;
  void close(std::uint32_t communicator);
  void close_all();
  /// Closes all places but those of these communicators, and returns which.
  std::vector<std::uint32_t> close_others(const std::vector<std::uint32_t>& kept);

  /// Whether the command is right for its communicator. Errors: invalid.
  [[nodiscard]] Result<void> fits(const wire::Command& command) const;
  /// Comes with a collective to the place of its communicator; `fits`: whether this rank may launch
  /// it. `looks`: how often it looks for the others. True: all are there. Errors: none of the
  /// members launches it.
  Result<bool> come(const wire::Command& command, const Result<void>& fits, int looks);

  /// Whether the collective that came last need not wait any more.
  [[nodiscard]] bool ready() const { return newest_ != nullptr && newest_->ready(); }
  /// True while it waits for other ranks of this host.
  [[nodiscard]] bool waits() const noexcept { return newest_ != nullptr && newest_->waits(); }

  // As those of Rendezvous, of the place where the newest collective is.
  [[nodiscard]] int fd() const { return newest_ != nullptr ? newest_->fd() : -1; }
  void clear() const {
    if (newest_ != nullptr) newest_->clear();
  }
  void announce_sleep() {
    if (newest_ != nullptr) newest_->announce_sleep();
  }
  void cancel_sleep() {
    if (newest_ != nullptr) newest_->cancel_sleep();
  }

 private:
  std::map<std::uint32_t, std::unique_ptr<Rendezvous>> places_;  ///< by communicator
  Rendezvous* newest_ = nullptr;  ///< where the newest collective has come to
};

}  // namespace troupe::host
