#include "common/ipc/trusted_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "common/ipc/system_error.hpp"

namespace troupe::ipc {
namespace {

constexpr int kCareful = O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

Error refused(const std::string& path, const std::string& why, int error = 0) {
  return {Errc::invalid, error, path + " is not used: it " + why};
}

/// Why open() with O_NOFOLLOW, or with O_NONBLOCK on a FIFO, has failed.
Error open_error(const std::string& path) {
  if (errno == ELOOP) return refused(path, "is a symbolic link", ELOOP);
  if (errno == ENXIO) return refused(path, "is no regular file", ENXIO);
  return system_error("open " + path);
}

std::string owned_by(uid_t user) {
  return "belongs to user " + std::to_string(user);
}

}  // namespace

Result<void> check_trusted(int fd, const std::string& path, const TrustOptions& options) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return system_error("fstat " + path);
  if (!S_ISREG(info.st_mode)) return refused(path, "is no regular file");
  if (!options.any_owner && info.st_uid != ::geteuid() && info.st_uid != 0)
    return refused(path, owned_by(info.st_uid));
  if ((info.st_mode & S_IWOTH) != 0) return refused(path, "may be written by everybody");
  if ((info.st_mode & S_IWGRP) != 0 && !options.group_may_write)
    return refused(path, "may be written by its group");
  return {};
}

Result<UniqueFd> open_trusted(const std::string& path, const TrustOptions& options) {
  const int links = options.follows_links ? 0 : O_NOFOLLOW;
  UniqueFd fd(::open(path.c_str(), O_RDONLY | kCareful | links));
  if (!fd) return open_error(path);
  if (auto trusted = check_trusted(fd.get(), path, options); !trusted) return trusted.error();
  return fd;
}

Result<UniqueFd> create_trusted(const std::string& path, mode_t mode) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | kCareful, mode));
  if (!fd) return open_error(path);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return system_error("fstat " + path);
  if (!S_ISREG(info.st_mode)) return refused(path, "is no regular file");
  if (info.st_uid != ::geteuid()) return refused(path, owned_by(info.st_uid));
  if (info.st_nlink != 1) return refused(path, "has a second name (a hard link)");
  if (::ftruncate(fd.get(), 0) != 0) return system_error("ftruncate " + path);
  return fd;
}

}  // namespace troupe::ipc
