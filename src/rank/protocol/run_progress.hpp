#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rank/protocol/least_step.hpp"
#include "rank/protocol/message.hpp"

namespace troupe::rank_process {

/// How far the ranks of a world have come in a run: which commits are complete, and with which
/// step each rank has ended the run. Pure.
class RunProgress {
 public:
  /// What all ranks are to be told of it, if anything. An error: the ranks disagree, and the world
  /// is to end.
  using News = Result<std::optional<SupervisorMessage>>;

  explicit RunProgress(int size);

  News on(const from_rank::Flushed& flushed);
  News on(const from_rank::Committed& committed);
  News on(const from_rank::Finished& finished);
  News on(const from_rank::StopAsked&);

  /// The newest commit of `covered` ranks from `rank` on is that of this step.
  void set_newest(std::int32_t rank, std::int32_t covered, std::int64_t step);
  /// The newest commit that all ranks have; -1: none.
  [[nodiscard]] std::int64_t common() const;
  /// A round of a re-formation begins: ranks that have ended the run will do so again.
  void forget_ends();
  /// An epoch begins, with this commit on all ranks.
  void begin_at(std::int64_t step);
  [[nodiscard]] std::int64_t stable() const noexcept { return stable_; }

 private:
  /// Ranks that end a run with different steps, or go on behind the end of others, disagree.
  [[nodiscard]] Result<void> judge_ends() const;

  LeastStep flushed_;
  std::vector<std::int64_t> newest_;  ///< per rank, its newest commit
  std::int64_t stable_ = -1;
  std::vector<bool> finished_;
  /// The first and the last step with which a rank has ended the run; kAnyStep, -1: none has.
  RankStep first_end_{}, last_end_{};
  bool stopping_ = false;  ///< the run is to end at its next commit
};

}  // namespace troupe::rank_process
