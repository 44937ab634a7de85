#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include <troupe/error.hpp>

#include "common/ipc/unique_fd.hpp"

namespace troupe::rank_process {

/// This process, to those that run another job in the same folder.
std::string this_process();

/// The sole right to write the saved states of a folder: one job has it at a time.
///
/// It is a lock on the file FOLDER/lock. The kernel lets it go with its process, however that ends,
/// so a file that is left behind means nothing.
class FolderLock {
 public:
  FolderLock() = default;

  /// Makes the folder if it is not there, and takes the lock. Where the file system has no locks a
  /// line of log says so, and nothing is held. `holder` tells others who has it. Errors: io, each
  /// naming the folder: another job has it (and who that is), the folder cannot be written.
  /// `option`: the one that names the folder.
  static Result<FolderLock> take(const std::filesystem::path& folder, const std::string& holder,
                                 const std::string& option);

 private:
  explicit FolderLock(UniqueFd fd) : fd_(std::move(fd)) {}

  UniqueFd fd_;
};

/// Whether states of `bytes` bytes find room in the folder, beside the one or two that are there
/// already. A line of log says so if there is room for some states and not for all three that there
/// are at times: the newest two, and the one being written. Errors: io, if not even one more fits.
/// `option`: the one that names the folder.
Result<void> check_room(const std::filesystem::path& folder, std::uint64_t bytes,
                        const std::string& option);

/// A number of bytes: "12.3 MiB".
std::string in_words(std::uint64_t bytes);

}  // namespace troupe::rank_process
