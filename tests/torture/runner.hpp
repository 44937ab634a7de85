#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include <troupe/troupe.hpp>

#include "account.hpp"
#include "blows.hpp"
#include "calls.hpp"
#include "hands.hpp"
#include "oracle.hpp"
#include "own_code.hpp"
#include "player.hpp"
#include "program.hpp"

namespace troupe::torture {

/// How programs are carried out, beside what they are.
struct Conduct {
  std::chrono::nanoseconds deadline = std::chrono::seconds(60);  ///< of every future and recovery
  std::string folder;       ///< for saved states; empty: none are saved
  bool resume = false;      ///< runs go on from the states there
  bool disk_fails = false;  ///< states need not come to disk
  bool collectives = true;  ///< else ranks meet without
  bool rejoins = false;     ///< ranks that are lost for good come back after a while
  std::int64_t verify = 0;  ///< as --verify has it
  bool guarded = false;     ///< --check writes
};

/// Carries out programs, one after the other, and compares all that can be seen with the oracle.
class Runner {
 public:
  Runner(Runtime& runtime, const Conduct& conduct, Account& account);

  /// Throws Finding. All ranks call it with the same program.
  void run(const Program& program);
  [[nodiscard]] const RandomTable& random() const { return random_; }
  [[nodiscard]] const OwnCode& own_code() const { return own_; }
  [[nodiscard]] const Calls& calls() const { return calls_; }

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
  /// Draws what the oracle has to know of random numbers, in quiet. False: a device host was lost
  /// meanwhile, which a busy machine kept silent.
  [[nodiscard]] bool learn_random_numbers();
  void begin(const Program& program);
  [[nodiscard]] bool make_buffers();
  void play_free(const Round& round);
  void play_thread(const Round& round, std::size_t thread, Codes& codes);
  /// Waits until others' devices have done what the script asks of them.
  void wait_for_others(const std::vector<Operation>& script);
  void check_outcome(const Operation& op, const Result<void>& outcome);
  void check_told(const Round& round, const Codes& codes, const Result<void>& told) const;
  void compare(const Operation& op, const std::vector<std::byte>& seen,
               const std::vector<std::byte>& expected);
  void exchange_tokens();
  void wait(const Future<void>& future, const std::string& what) const {
    player_.wait(future, what);
  }

  // recovery.cpp: after faults, and what must be there then
  void settle();
  bool settled_now();
  void verify();
  bool try_verify();
  /// For each buffer of this rank, kLost or not.
  [[nodiscard]] std::string lost_buffers();
  /// Gives these buffers of this rank contents anew, and tells the oracle of all ranks' ones.
  void write_anew(const std::string& lost);
  bool try_write(const std::string& lost);
  static constexpr char kLost = 'l', kThere = 't';
  /// Those since the program began, as text.
  [[nodiscard]] std::string recoveries() const;
  void check_recoveries();
  [[nodiscard]] bool any_rank(bool mine);

  // run_rounds.cpp: within World::run
  void play_run(const Round& round);
  void add_to(Checkpoint& state);
  void prepare(Checkpoint& state, const std::vector<std::vector<std::byte>>& contents, bool struck);
  void check_sums();
  [[nodiscard]] std::vector<double> fixed_values() const;
  void flip_a_bit(std::int64_t step);
  void check_corruptions(std::size_t known) const;
  void run_once(const Round& round, Checkpoint& state,
                const std::vector<std::vector<std::byte>>& contents);
  [[nodiscard]] SaveOptions save_options(const Round& round) const;
  void play_step(const std::vector<std::vector<Operation>>& scripts);
  void demand(const Operation& op, const Result<void>& outcome) const;
  void exchange_tokens_on_device();
  void meet();
  void meet_by_puts();
  void fence();
  void play_failing(const Round& round);

  // scenes.cpp
  void play_versions(const Round& round);
  void play_slabs(const Round& round);
  void play_pieces(const Round& round);

  // recorded_rounds.cpp
  void play_recorded(const Round& round);

  // distributed_rounds.cpp
  void play_distributed(const Round& round);

  // helped_rounds.cpp
  void play_helped(const Round& round);

  Runtime& runtime_;
  World& world_;
  Device& device_;
  Conduct conduct_;
  int rank_, ranks_;
  RandomTable random_;
  Account& account_;
  Blows blows_;
  Player player_;
  const OwnCode own_;
  const Calls calls_;

  // The program under way
  const Program* program_ = nullptr;
  std::unique_ptr<Hands> hands_;
  std::unique_ptr<Oracle> oracle_;
  std::size_t round_ = 0;  ///< the one under way
  std::uint64_t version_ = 0;
  std::set<std::int64_t> flipped_;       ///< steps of a run behind which a bit was flipped
  bool stormy_ = false;                  ///< faults may show
  std::size_t known_ = 0;                ///< recoveries before the program
  std::atomic<bool> suspicious_{false};  ///< something failed as by a fault
  std::mutex mutex_;
  std::string suspicion_;  ///< the first such; under mutex_
  /// By operation: in a run what it has to see, else what it has seen; under mutex_ then.
  std::map<std::uint32_t, std::vector<std::byte>> looks_;
  GpuRef<double> meeting_;
  GpuRef<double> sums_;   ///< see prepare()
  GpuRef<double> fixed_;  ///< see fixed_values()
  GpuRef<std::uint8_t> own_tokens_, all_tokens_;
  Epoch tokens_epoch_{};
  GpuRef<double> flags_;            ///< see meet_by_puts()
  std::vector<GpuToken> flags_of_;  ///< of all ranks
  std::int64_t meetings_ = 0;       ///< in this epoch
  bool meets_by_puts_ = false;
  bool stop_asked_ = false;
  bool saves_ = true;  ///< the run under way writes states
};

}  // namespace troupe::torture
