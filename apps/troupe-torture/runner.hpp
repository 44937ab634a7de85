#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include <troupe/troupe.hpp>

#include "hands.hpp"
#include "oracle.hpp"
#include "program.hpp"

namespace troupe::torture {

using Clock = std::chrono::steady_clock;

/// Something is wrong. Thrown on the rank that finds it; the job ends with it.
class Finding : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// How programs are carried out, beside what they are.
struct Conduct {
  std::chrono::nanoseconds deadline = std::chrono::seconds(60);  ///< of every future and recovery
  std::string folder;       ///< for saved states; empty: none are saved
  bool resume = false;      ///< runs go on from the states there
  bool disk_fails = false;  ///< states need not come to disk
  bool collectives = true;  ///< else ranks meet without
  std::int64_t spoil = -1;  ///< the download to be falsified, to show that it is found; -1: none
};

/// What was done so far, on this rank.
struct Tally {
  std::int64_t programs = 0, rounds = 0, operations = 0, downloads = 0, blows = 0, runs = 0;
  std::int64_t disturbances = 0;  ///< device hosts taken for dead by a clock, on a busy machine
};

/// What an outcome by a fault looks like to a program.
bool is_of_a_fault(Errc code);

/// Carries out programs, one after the other, and compares all that can be seen with the oracle.
class Runner {
 public:
  Runner(Runtime& runtime, const Conduct& conduct);

  /// Throws Finding. All ranks call it with the same program.
  void run(const Program& program);
  [[nodiscard]] const Tally& tally() const { return tally_; }
  [[nodiscard]] const RandomTable& random() const { return random_; }
  /// What this rank is at, for the watchdog; changes as long as there is progress.
  [[nodiscard]] std::string where() const;
  [[nodiscard]] std::int64_t progress() const { return progress_.load(); }

 private:
  /// What became of the operations of a round: an Errc per id, or kUnknown.
  class Codes {
   public:
    static constexpr std::uint8_t kUnknown = 0xff;
    Codes(std::uint32_t first, std::uint32_t end) : first_(first), codes_(end - first, kUnknown) {}
    void set(std::uint32_t id, Errc code) {
      if (id - first_ < codes_.size()) codes_[id - first_] = static_cast<char>(code);
    }
    [[nodiscard]] const std::string& text() const { return codes_; }
    void assign(std::string text) { codes_ = std::move(text); }
    [[nodiscard]] std::uint8_t of(std::uint32_t id) const {
      return id - first_ < codes_.size() ? static_cast<std::uint8_t>(codes_[id - first_])
                                         : kUnknown;
    }

   private:
    std::uint32_t first_;
    std::string codes_;
  };

  // runner.cpp: programs, and rounds in which faults are seen
  void begin(const Program& program);
  void play_free(const Round& round);
  void play_thread(const Round& round, std::size_t thread, Codes& codes);
  void play_script(const std::vector<Operation>& script, Hands::Thread& hands, Codes& codes);
  void note(const Operation& op, const Result<void>& outcome, Codes& codes);
  void check_outcome(const Operation& op, const Result<void>& outcome);
  Future<void> watch(const Operation& op, const Future<void>& future, Codes& codes);
  void look(std::vector<Seen>& seen, Codes& codes);
  void compare(const Operation& op, const std::vector<std::byte>& seen,
               const std::vector<std::byte>& expected);
  void exchange_tokens();
  void wait(const Future<void>& future, const std::string& what) const;
  void at(std::string where);
  void advance() { progress_.fetch_add(1, std::memory_order_relaxed); }

  // recovery.cpp: after faults, and what must be there then
  void settle();
  bool settled_now();
  void verify();
  bool try_verify();
  bool repair(const std::string& stale);
  [[nodiscard]] std::string stale_buffers();
  void check_recoveries();
  [[nodiscard]] bool any_rank(bool mine);
  [[nodiscard]] std::vector<std::byte> falsified(std::vector<std::byte> bytes);

  // blows.cpp
  /// What was submitted for it; may be empty.
  Future<void> strike(const Operation& op);
  void end_blows();

  // run_rounds.cpp: within World::run
  void play_run(const Round& round);
  void run_once(const Round& round, Checkpoint& state);
  [[nodiscard]] SaveOptions save_options(const Round& round) const;
  void play_step(const std::vector<Operation>& script);
  void exchange_tokens_on_device();
  void meet();
  void meet_by_puts();
  void fence();
  void play_failing(const Round& round);

  // scenes.cpp
  void play_versions(const Round& round);
  void play_slabs(const Round& round);
  void play_pieces(const Round& round);

  Runtime& runtime_;
  World& world_;
  Device& device_;
  Conduct conduct_;
  int rank_, ranks_;
  RandomTable random_;
  Tally tally_;

  // The program under way
  const Program* program_ = nullptr;
  std::unique_ptr<Hands> hands_;
  std::unique_ptr<Oracle> oracle_;
  std::uint64_t version_ = 0;
  bool stormy_ = false;                  ///< faults may show
  std::size_t known_ = 0;                ///< recoveries before the program
  std::atomic<bool> suspicious_{false};  ///< something failed as by a fault
  std::mutex mutex_;
  std::string suspicion_;              ///< the first such; under mutex_
  std::set<std::uint32_t> struck_;     ///< blows of a run that have been dealt
  std::vector<std::jthread> helpers_;  ///< that end a freeze
  std::vector<std::pair<std::uint32_t, std::vector<std::byte>>> looks_;  ///< of a run: id, expected
  GpuRef<double> meeting_;
  GpuRef<std::uint8_t> own_tokens_, all_tokens_;
  Epoch tokens_epoch_{};
  GpuRef<double> flags_;            ///< see meet_by_puts()
  std::vector<GpuToken> flags_of_;  ///< of all ranks
  std::int64_t meetings_ = 0;       ///< in this epoch
  bool meets_by_puts_ = false;
  bool stop_asked_ = false;
  bool saves_ = true;  ///< the run under way writes states

  std::atomic<std::int64_t> progress_{0}, downloads_{0};
  mutable std::mutex where_mutex_;
  std::string where_;
};

}  // namespace troupe::torture
