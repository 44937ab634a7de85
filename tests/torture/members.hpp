#pragma once

#include <map>
#include <memory>
#include <vector>

#include <troupe/troupe.hpp>

#include "account.hpp"
#include "hands.hpp"
#include "oracle.hpp"
#include "player.hpp"
#include "runner.hpp"

namespace troupe::torture {

/// Which parts a member has: `rank` of `size` members, of `parts` parts, in blocks.
struct Share {
  int first = 0, end = 0;
  static Share of(int rank, int size, int parts) {
    return {parts * rank / size, parts * (rank + 1) / size};
  }
  /// The member that has the part.
  static int owner(int part, int size, int parts);
};

/// Carries out programs in a world that loses ranks for good and gets them back (--on-loss shrink),
/// or whose ranks die and come back at once (--on-rank-loss respawn).
///
/// A program has as many parts as the job has ranks. Part p does what rank p does in other
/// programs: it has buffers, scripts and a place in collectives. The members of the world share the
/// parts out; so what all parts hold after a step is the same whoever is a member, and the oracle
/// of other programs knows it. After each change all of it is looked at.
class Members {
 public:
  Members(Runtime& runtime, const Conduct& conduct, Account& account, const RandomTable& random,
          const OwnCode& own, const Calls& calls);

  /// Throws Finding. All ranks call it with the same program, spectators too.
  void run(const Program& program);

 private:
  // The program's shares, see RunOptions
  void share_out(Checkpoint& state);
  void share_out_at_last(Checkpoint& state);
  void take_over(const SavedState& state);

  void play_round(const Round& round);
  [[nodiscard]] SaveOptions save_options(const Round& round) const;
  Step step(const Round& round, std::int64_t number);
  [[nodiscard]] int may_be_back() const;
  /// The first step begins with this.
  void write_first();
  /// Looks at all that this member has, as it must be before a step.
  void check(const Round& round, std::int64_t number);
  void exchange_tokens();
  void play(const Round& round, std::int64_t number);
  void play_thread(const Round& round, std::int64_t number, std::size_t thread);
  void collective(const std::vector<const Operation*>& mine, const Listener& listener);
  Future<void> all_reduce(const std::vector<const Operation*>& mine);
  Future<void> broadcast(const std::vector<const Operation*>& mine);
  void strike(const Round& round, std::int64_t number);
  /// The process before this one has died of this blow.
  [[nodiscard]] bool is_past(const Round& round, const Operation& blow) const;
  void meet();
  void fence();
  void demand(const Operation& op, const Result<void>& outcome) const;

  [[nodiscard]] const BufferSpec& spec(int buffer) const {
    return program_->buffers[static_cast<std::size_t>(buffer)];
  }

  static constexpr int kTokens = 64;  ///< room for those of a part's buffers

  Runtime& runtime_;
  World& world_;
  Device& device_;
  Conduct conduct_;
  Account& account_;
  Blows blows_;
  Player player_;
  const RandomTable& random_;
  const OwnCode& own_;
  const Calls& calls_;
  const int job_rank_;
  const bool respawns_;

  // The program under way
  const Program* program_ = nullptr;
  std::size_t round_ = 0;
  std::unique_ptr<Oracle> before_;                         ///< of the round
  std::map<std::uint32_t, std::vector<std::byte>> looks_;  ///< by operation: what it has to see
  std::map<int, std::unique_ptr<Hands>> hands_;            ///< by part: those of this member
  Epoch checked_{};                                        ///< the epoch of the last check()

  GpuRef<double> meeting_, sum_;
  GpuRef<float> narrow_sum_;
  GpuRef<std::uint8_t> own_tokens_, all_tokens_;
};

}  // namespace troupe::torture
