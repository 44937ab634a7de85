#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/ipc/unique_fd.hpp"

namespace troupe::rank_process {

/// The host data that ranks have exchanged before the first run, as one rank has heard them: they
/// lie with the keeper. A rank that is started again hears the same once more, in the place of the
/// others, which are long past that.
class StartLog {
 public:
  StartLog(UniqueFd fd, bool replays) : fd_(std::move(fd)), replays_(replays) {}

  using Parts = std::vector<std::vector<std::byte>>;
  [[nodiscard]] bool is_open() const noexcept { return static_cast<bool>(fd_); }
  /// This rank hears what its predecessor has heard.
  [[nodiscard]] bool replays() const noexcept;
  void write(const Parts& heard);
  Parts read();
  /// The first run begins: from now on all speak to one another.
  void close() { fd_.reset(); }

 private:
  void put(const void* data, std::size_t bytes);
  void get(void* data, std::size_t bytes);

  UniqueFd fd_;
  bool replays_;
  std::size_t at_ = 0;
};

}  // namespace troupe::rank_process
