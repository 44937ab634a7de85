#include "rank/net/links/start_log.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <troupe/error.hpp>

namespace troupe::rank_process {

bool StartLog::replays() const noexcept {
  struct stat about {};
  return is_open() && replay_ != Replay::nothing && ::fstat(fd_.get(), &about) == 0 &&
         static_cast<std::size_t>(about.st_size) > at_;
}

void StartLog::put(const void* data, std::size_t bytes) {
  const auto done = ::pwrite(fd_.get(), data, bytes, static_cast<off_t>(at_));
  check(done == static_cast<ssize_t>(bytes), "what ranks have said at the start can be kept");
  at_ += bytes;
}

void StartLog::get(void* data, std::size_t bytes) {
  const auto done = ::pread(fd_.get(), data, bytes, static_cast<off_t>(at_));
  check(done == static_cast<ssize_t>(bytes),
        "a rank that is started again starts as the one before");
  at_ += bytes;
}

void StartLog::write(const Parts& heard) {
  const std::uint64_t count = heard.size();
  put(&count, sizeof count);
  for (const auto& part : heard) {
    const std::uint64_t bytes = part.size();
    put(&bytes, sizeof bytes);
    if (bytes > 0) put(part.data(), bytes);
  }
}

StartLog::Parts StartLog::read() {
  std::uint64_t count = 0;
  get(&count, sizeof count);
  Parts heard(count);
  for (auto& part : heard) {
    std::uint64_t bytes = 0;
    get(&bytes, sizeof bytes);
    part.resize(bytes);
    if (bytes > 0) get(part.data(), bytes);
  }
  return heard;
}

}  // namespace troupe::rank_process
