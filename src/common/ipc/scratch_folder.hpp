#pragma once

#include <string>

#include <troupe/error.hpp>

#include "common/ipc/unique_fd.hpp"

namespace troupe::ipc {

/// A temporary folder of this process's own, removed with this object. If the process is killed
/// before, the next one of the same user and prefix on this machine removes it: the folder of a
/// living process is locked.
class ScratchFolder {
 public:
  ScratchFolder() = default;
  ScratchFolder(ScratchFolder&& other) noexcept;
  ScratchFolder& operator=(ScratchFolder&& other) noexcept;
  ~ScratchFolder();

  /// In the system's folder for temporary files: `prefix`-XXXXXX. Errors: io, out_of_memory.
  static Result<ScratchFolder> make(const std::string& prefix);

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// Holds the lock, also for a child process that inherits it.
  [[nodiscard]] int lock() const noexcept { return lock_.get(); }

 private:
  std::string path_;
  UniqueFd lock_;
};

/// Removes a folder and all that is in it, also what a process that is ending adds meanwhile.
void remove_folder(const std::string& path) noexcept;

}  // namespace troupe::ipc
