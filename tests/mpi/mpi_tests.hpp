#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include <troupe/troupe.hpp>

#include "host_processes.hpp"

/// What the cases of troupe-mpi-tests share. A case runs on all ranks alike; what it expects and
/// does not find is printed and counted, and the program's exit status is the world's.
namespace troupe::test {

using Clock = std::chrono::steady_clock;

/// One rank's view of a case.
class Context {
 public:
  explicit Context(Runtime& runtime) : runtime_(&runtime), ranks_(&runtime.world()) {}

  [[nodiscard]] Runtime& runtime() const { return *runtime_; }
  [[nodiscard]] Device& device() const { return runtime_->device(); }
  [[nodiscard]] World& world() const { return runtime_->world(); }
  /// The communicator that the case is about: the world's, unless it was set.
  [[nodiscard]] Collectives& ranks() const { return *ranks_; }
  void set_ranks(Collectives& ranks) { ranks_ = &ranks; }
  [[nodiscard]] int rank() const { return ranks().rank(); }
  [[nodiscard]] int size() const { return ranks().size(); }
  [[nodiscard]] bool first() const { return rank() == 0; }

  void expect(bool holds, const std::string& what) {
    if (holds) return;
    if (++failures_ > 10) return;
    std::fprintf(stderr, "[rank %d] FAILED: %s\n", world().rank(), what.c_str());
  }
  /// As expect(); a case that cannot go on ends the whole job.
  void require(bool holds, const std::string& what) {
    expect(holds, what);
    if (!holds) throw Exception({Errc::internal, 0, "the case cannot go on: " + what});
  }
  /// A figure for the record: one line from rank 0.
  void report(const std::string& line) const {
    if (world().rank() == 0) std::printf("%s\n", line.c_str());
  }
  [[nodiscard]] int failures() const { return failures_; }

 private:
  Runtime* runtime_;
  Collectives* ranks_;
  int failures_ = 0;
};

/// Brings the world back after `faults` faults were ordered anywhere: until a collective is
/// verified on all ranks in one epoch and that many recoveries are known. Returns false past the
/// deadline.
inline bool settle(Context& c, std::size_t faults) {
  const auto end = Clock::now() + kDeadline;
  const auto data = c.device().alloc<std::int64_t>(64);
  for (;;) {
    const auto epoch = c.world().wait_active();
    if (!epoch.ok()) throw CollectiveException(epoch.error());
    // Everybody in the same epoch before anybody submits: a collective that only some have joined
    // would wait.
    const auto epochs = c.world().gather_values(epoch->value);
    bool good =
        std::all_of(epochs.begin(), epochs.end(), [&](auto e) { return e == epochs.front(); });
    if (good) {
      auto mine = data;
      if (!mine.valid()) mine.renew();
      c.device().fill<std::int64_t>(mine, c.rank() + 1);
      const auto reduced = c.world().all_reduce(mine, ReduceOp::sum);
      c.require(reduced.wait_for(kDeadline), "an all_reduce does not resolve");
      good = reduced.wait().ok();
      if (good) {
        try {
          const std::int64_t n = c.size(), expected = n * (n + 1) / 2;
          for (const auto value : c.device().download(mine))
            c.expect(value == expected, "a wrong sum after a recovery");
        } catch (const Exception&) {
          good = false;  // the next fault came in between
        }
      }
    }
    good = good && c.world().recoveries().size() >= faults;
    const auto all = c.world().gather_values(good);
    if (std::all_of(all.begin(), all.end(), [](bool yes) { return yes; })) return true;
    const auto late = c.world().gather_values(Clock::now() > end);
    if (std::any_of(late.begin(), late.end(), [](bool yes) { return yes; })) return false;
    std::this_thread::sleep_for(1ms);
  }
}

/// A folder that all ranks see, gone when rank 0 lets go of it.
class SharedFolder {
 public:
  explicit SharedFolder(Context& c) : first_(c.first()) {
    std::string mine;
    if (first_) {
      char name[] = "/tmp/troupe-mpi-test-XXXXXX";
      mine = ::mkdtemp(name);
    }
    path_ = c.world().gather_text(mine)[0];
  }
  ~SharedFolder() {
    std::error_code ignored;
    if (first_) std::filesystem::remove_all(path_, ignored);
  }
  SharedFolder(const SharedFolder&) = delete;
  SharedFolder& operator=(const SharedFolder&) = delete;
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  bool first_;
  std::filesystem::path path_;
};

void actors(Context& c);
void reproducible(Context& c);
void actor_faults(Context& c);
void actor_members(Context& c);
void sequences(Context& c);
void sequence_collectives(Context& c);
void sequence_first_use(Context& c);
void sequence_differences(Context& c);
void sequence_faults(Context& c);
void recorded_steps(Context& c);
/// A part of collectives().
void collective_limits(Context& c);
void collectives(Context& c);
void group_collectives(Context& c);
void splits(Context& c);
void split_disagreement(Context& c);
void split_counts(Context& c);
void split_interrupted(Context& c);
void split_faults(Context& c);
void group_faults(Context& c);
void groups_in_run(Context& c);
void group_members(Context& c);
void group_gone(Context& c);
void pgemm(Context& c);
void pgemm_refusals(Context& c);
void pgemm_faults(Context& c);
void pfft3(Context& c);
void pfft3_faults(Context& c);
void collective_check(Context& c);
void collective_differences(Context& c);
void reformation(Context& c);
void phases(Context& c);
void epochs(Context& c);
void checkpoint(Context& c);
void last_step(Context& c);
void failed_commit(Context& c);
void left_alone(Context& c);
void left_run(Context& c);
void last_error(Context& c);
void run_twice(Context& c);
void lost_before_run(Context& c);
void fault_in_prepare(Context& c);
void last_read(Context& c);
void full_ring(Context& c);
void early_return(Context& c);
void disagreement(Context& c);
void late_to_barrier(Context& c);
void late_to_recovery(Context& c);
void budget(Context& c);
void absent(Context& c);
void loss_after_absence(Context& c);
void hidden_fault(Context& c);
void stuck(Context& c);
void idle(Context& c);
void independence(Context& c);
void first_message(Context& c);
void first_use(Context& c);
void long_wait(Context& c);
void libraries(Context& c);
void saved_states(Context& c);
void saved_under_fire(Context& c);
void stop_requests(Context& c);
void rehearsal(Context& c);
void rehearsal_of_strides(Context& c);
void rehearsal_within(Context& c);
void shrink(Context& c);
void shrink_by_hand(Context& c);
void failing_gpu(Context& c);
void grow(Context& c);
void rejoin_after(Context& c);
void tokens(Context& c);
void remote_kernels(Context& c);
void token_order(Context& c);
void token_faults(Context& c);
void token_errors(Context& c);
void token_remote(Context& c);
void token_timeout(Context& c);
void token_pieces(Context& c);
void token_rollback(Context& c);
void token_spoilt(Context& c);
void token_commits(Context& c);
void kept_references(Context& c);
void token_epochs(Context& c);
void timelines(Context& c);
void late_errors(Context& c);
void host_calls(Context& c);
void host_calls_differ(Context& c);
void run_refusals(Context& c);
void argument_refusals(Context& c);
void many_entries(Context& c);
void saved_runs(Context& c);
void standing_still(Context& c);
void silent_rank(Context& c);
void silent_rank_in_run(Context& c);

}  // namespace troupe::test
