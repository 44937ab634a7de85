#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/ipc/unique_fd.hpp"

namespace troupe::rank_process {

/// The host data that ranks have exchanged before the first run, as one rank has heard them: they
/// lie with the keeper. A rank that is started again hears the same once more, in the place of the
/// others, which are long past that.
///
/// A rank that goes to another place gets another rank's log. So all that is written in it is the
/// same for all ranks, but for what ranks of one node have told one another: see are_others().
class StartLog {
 public:
  /// How much of what is in the file is for this rank.
  enum class Replay { nothing, own, others };
  StartLog(UniqueFd fd, Replay replay) : fd_(std::move(fd)), replay_(replay) {}

  using Parts = std::vector<std::vector<std::byte>>;
  [[nodiscard]] bool is_open() const noexcept { return static_cast<bool>(fd_); }
  /// This rank hears what its predecessor has heard.
  [[nodiscard]] bool replays() const noexcept;
  /// It was written at another place, among other neighbours.
  [[nodiscard]] bool are_others() const noexcept { return replay_ == Replay::others; }
  void write(const Parts& heard);
  Parts read();
  /// The first run begins: from now on all speak to one another.
  void close() { fd_.reset(); }

 private:
  void put(const void* data, std::size_t bytes);
  void get(void* data, std::size_t bytes);

  UniqueFd fd_;
  Replay replay_;
  std::size_t at_ = 0;
};

}  // namespace troupe::rank_process
