#include "rank/store/state_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cctype>

#include "common/core/log.hpp"
#include "rank/store/part_file.hpp"

namespace troupe::rank_process {

namespace fs = std::filesystem;

namespace {

/// Takes a lock that works between the nodes of a network file system as well as its locks do, and
/// that no other descriptor of this process lets go of.
bool lock(int fd) {
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  return ::fcntl(fd, F_OFD_SETLK, &whole) == 0;
}

/// What the holder of a lock has written of itself; foreign text.
std::string holder_in(int fd) {
  std::array<char, 200> text{};
  const auto count = ::pread(fd, text.data(), text.size(), 0);
  std::string holder;
  for (ssize_t i = 0; i < count && text[static_cast<std::size_t>(i)] != '\n'; ++i) {
    const char c = text[static_cast<std::size_t>(i)];
    holder += std::isprint(static_cast<unsigned char>(c)) != 0 ? c : '?';
  }
  return holder;
}

/// Bytes of all files in the folder and those below it.
std::uint64_t held_by(const fs::path& folder) {
  std::uint64_t bytes = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code none;
    const auto size = it->is_regular_file(none) ? it->file_size(none) : 0;
    if (!none) bytes += size;
  }
  return bytes;
}

}  // namespace

std::string this_process() {
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  return "process " + std::to_string(::getpid()) + " on " + host;
}

Result<FolderLock> FolderLock::take(const fs::path& folder, const std::string& holder,
                                    const std::string& option) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return file_error(folder, error.value());
  const auto path = folder / "lock";
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!fd) {
    auto failed = file_error(folder);
    failed.message += "; states cannot be saved there (see --" + option + ")";
    return failed;
  }
  if (lock(fd.get())) {
    // For others to read; the lock holds without it, on a full disk too.
    const auto text = holder + "\n";
    (void)(::ftruncate(fd.get(), 0) == 0 && ::pwrite(fd.get(), text.data(), text.size(), 0) > 0);
    return FolderLock(std::move(fd));
  }
  if (errno != EAGAIN && errno != EACCES) {
    log::warn("checkpoint", "{}; another job that saves its states there goes unnoticed",
              file_error(path).message);
    return FolderLock();
  }
  const auto who = holder_in(fd.get());
  return Error{Errc::io, 0,
               folder.string() + ": another job" +
                   (option == "checkpoint-local" ? ", or another node of this one," : "") +
                   " saves its states there" + (who.empty() ? "" : " (" + who + ")") +
                   "; wait for its end, or choose another --" + option};
}

Result<void> check_room(const fs::path& folder, std::uint64_t bytes, const std::string& option) {
  struct statvfs status {};
  if (::statvfs(folder.c_str(), &status) != 0) return file_error(folder);
  const auto free = static_cast<std::uint64_t>(status.f_bavail) * status.f_frsize;
  if (free < bytes) {
    return Error{Errc::io, 0,
                 fmt::format("{}: a state takes {}, and there is room for {} (see --{})",
                             folder.string(), in_words(bytes), in_words(free), option)};
  }
  const auto room = free + held_by(folder);
  if (room / 3 < bytes) {
    log::warn("checkpoint",
              "{}: the newest two states and one being written take {}, and there is room for {}",
              folder.string(), in_words(3 * bytes), in_words(room));
  }
  return {};
}

std::string in_words(std::uint64_t bytes) {
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

}  // namespace troupe::rank_process
