#include "common/ipc/scratch_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <utility>

#include "common/ipc/system_error.hpp"

namespace troupe::ipc {
namespace {

namespace fs = std::filesystem;

constexpr int kMostTries = 100;

/// The folder, locked; nothing if it is not this user's, if another process has locked it, or if it
/// is gone.
UniqueFd locked(const fs::path& folder) {
  UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat opened {
  }, there{};
  if (!fd || ::fstat(fd.get(), &opened) != 0 || opened.st_uid != ::geteuid()) return {};
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) return {};
  if (::lstat(folder.c_str(), &there) != 0 || there.st_ino != opened.st_ino) return {};
  return fd;
}

void remove_abandoned(const fs::path& parent, const std::string& prefix) {
  std::error_code failed;
  for (fs::directory_iterator at(parent, failed), end; !failed && at != end; at.increment(failed)) {
    if (!at->path().filename().string().starts_with(prefix + "-")) continue;
    if (const auto abandoned = locked(at->path())) remove_folder(at->path().string());
  }
}

}  // namespace

void remove_folder(const std::string& path) noexcept {
  std::error_code failed;
  for (int tries = 0; tries < kMostTries; ++tries) {
    fs::remove_all(path, failed);
    if (failed != std::errc::directory_not_empty) return;
  }
}

Result<ScratchFolder> ScratchFolder::make(const std::string& prefix) {
  std::error_code failed;
  const auto parent = fs::temp_directory_path(failed);
  if (failed) return Error{Errc::io, failed.value(), "no folder for temporary files (TMPDIR)"};
  remove_abandoned(parent, prefix);
  ScratchFolder made;
  for (int tries = 0; tries < kMostTries; ++tries) {
    auto name = (parent / (prefix + "-XXXXXX")).string();
    if (::mkdtemp(name.data()) == nullptr) return system_error("mkdtemp " + name);
    made.lock_ = locked(name);  // unless another process has just taken it for abandoned
    if (!made.lock_) continue;
    made.path_ = name;
    return made;
  }
  return Error{Errc::io, 0, "no folder in " + parent.string() + " can be locked"};
}

ScratchFolder::ScratchFolder(ScratchFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})), lock_(std::move(other.lock_)) {}

ScratchFolder& ScratchFolder::operator=(ScratchFolder&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(lock_, other.lock_);
  return *this;
}

ScratchFolder::~ScratchFolder() {
  if (!path_.empty()) remove_folder(path_);
}

}  // namespace troupe::ipc
