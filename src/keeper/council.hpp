#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <troupe/clock.hpp>

#include "keeper/reign.hpp"

namespace troupe::keeper {

/// One keeper's part in what all keepers of a job agree on: which places are lost, and which place
/// has which rank.
///
/// Intuition: one keeper leads, the lowest that lives; all others report to it now and then. A
/// keeper that the leader has not heard of for `silence`, or whose connection has been broken for
/// `wait`, is taken for lost, and its rank is given to a spare place. So that there are never two
/// leaders who give the same rank away, a change counts only once more than half of all keepers
/// have accepted it (of exactly half: those among which is place 0), and a leader begins by asking
/// as many what they have accepted before. This is Paxos over one register, the roster, with a
/// leader that stays (L. Lamport, "Paxos made simple", SIGACT News 32, 2001).
///
/// Model: messages from one keeper to another arrive in order or not at all; a connection that ends
/// is noticed (closed()), a cut cable is silence. A keeper that finds no leader with more than half
/// of the keepers behind it for twice `silence` and `wait` ends, and its rank with it: of a job
/// that falls apart, one part at most goes on. A keeper does not count time in which it did not run
/// itself. Keepers do not come back once they are lost.
///
///     looking --answer--> attached --Accept--> following --leader lost--> looking
///        '--more than half report--> preparing --promises--> leading --too few--> looking
class Council {
 public:
  struct Options {
    int place = 0;   ///< this one
    int places = 1;  ///< of the job: one for each rank, spare ones, refuges
    int ranks = 1;
    int refuges = 0;  ///< the last places
    std::chrono::nanoseconds silence{};
    std::chrono::nanoseconds wait{};
  };

  using Actions = CouncilActions;
  static constexpr int kExitRequeue = Reign::kExitRequeue;

  /// `actions` outlive it.
  Council(const Options& options, Actions& actions);

  void begin(TimePoint now);
  void receive(int from, const CouncilMessage& message, TimePoint now);
  /// A connection with that keeper has ended, or could not be made.
  void closed(int place, TimePoint now);
  /// To be called every tick_every().
  void tick(TimePoint now);
  [[nodiscard]] std::chrono::nanoseconds tick_every() const noexcept { return beat_; }

  /// The state of the rank here has changed.
  void set_state(RankState state, int status, TimePoint now);
  /// The process of the rank here has died, and another is started.
  void note_death() { ++colleagues_.own().deaths; }
  /// The rank here cannot go on at this place. Answered by seat() or keep_rank().
  void release(TimePoint now);
  /// All ranks are to end at once, this one too.
  void abort(int status, const std::string& why, TimePoint now);

  /// The newest roster that the keepers have agreed on.
  [[nodiscard]] const Roster& roster() const noexcept { return applied_; }
  [[nodiscard]] bool leads() const noexcept { return reign_.has_value(); }

 private:
  enum class Role { looking, attached, following, preparing, leading };

  void on(int from, const council::Report& said, TimePoint now);
  void on(int from, const council::Here& said, TimePoint now);
  void on(int from, const council::Elsewhere& said, TimePoint now);
  void on(int from, const council::Prepare& said, TimePoint now);
  void on(int from, const council::Promise& said, TimePoint now);
  void on(const council::Refuse& said, TimePoint now);
  void on(int from, const council::Accept& said);
  void on(int from, const council::Abort& said);

  /// Asks for promises if enough keepers report to this one.
  void try_to_lead(TimePoint now);
  /// Without enough of them it might lead again.
  void give_up_leading(TimePoint now);
  void end_if_all_have();
  /// To the leader: this keeper lives.
  void report();
  /// Turns to this keeper, which might lead.
  void look_at(int place, TimePoint now);
  /// Turns to the next one, or, behind all lower ones, waits for reports itself.
  void look_on(TimePoint now);
  /// The newest roster counts.
  void apply();
  [[nodiscard]] bool is_candidate() const noexcept {
    return role_ == Role::looking && leader_ == options_.place;
  }

  Options options_;
  Actions* actions_;
  std::chrono::nanoseconds beat_;
  Colleagues colleagues_;
  Role role_ = Role::looking;
  int leader_ = 0;              ///< the one that this keeper turns to; itself: it leads, or might
  std::uint64_t term_ = 0;      ///< preparing, leading, following
  std::uint64_t promised_ = 0;  ///< no roster of an earlier term is accepted
  std::uint64_t highest_ = 0;   ///< of all terms that it has heard of
  Roster accepted_, applied_;
  std::optional<Reign> reign_;        ///< while it leads
  TimePoint turned_{};                ///< when it turned to leader_, or began to prepare
  std::optional<TimePoint> without_;  ///< since when there is no leader with enough keepers
  TimePoint last_tick_{}, probed_{};
  bool over_ = false;
};

}  // namespace troupe::keeper
