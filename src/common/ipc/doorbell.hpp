#pragma once

#include <troupe/error.hpp>

#include "common/ipc/unique_fd.hpp"

namespace troupe::ipc {

/// An eventfd that one process rings and another one polls. Ringing it twice is ringing it once.
class Doorbell {
 public:
  Doorbell() = default;
  explicit Doorbell(UniqueFd fd) : fd_(std::move(fd)) {}
  static Result<Doorbell> create();

  void ring() const noexcept;
  /// Makes the descriptor unreadable again.
  void clear() const noexcept;
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }

 private:
  UniqueFd fd_;
};

/// Cores that this process may run on (its affinity mask and cgroup share that out).
int usable_cores() noexcept;

}  // namespace troupe::ipc
