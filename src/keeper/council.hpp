#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <troupe/clock.hpp>

#include "keeper/council_message.hpp"

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
    int places = 1;  ///< of the job: one for each rank, and the spare ones behind them
    int ranks = 1;
    std::chrono::nanoseconds silence{};
    std::chrono::nanoseconds wait{};
  };

  /// What the keeper does for its council.
  class Actions {
   public:
    virtual ~Actions() = default;
    /// To another keeper. What cannot be delivered is lost.
    virtual void send(int place, const CouncilMessage& message) = 0;
    /// The keepers have agreed on this roster.
    virtual void seat(const Roster& roster) = 0;
    /// There is no place for the rank that was to be released.
    virtual void keep_rank() = 0;
    /// The programs of all ranks have ended; the job's status.
    virtual void all_have_ended(int status) = 0;
    /// This keeper and its rank end at once: with the whole job, or alone. `why`: empty if others
    /// say it.
    enum class Ending { job, place };
    virtual void end(int status, const std::string& why, Ending ending) = 0;
  };

  static constexpr int kExitRequeue = 75;

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
  void note_death() { ++peer(options_.place).deaths; }
  /// The rank here cannot go on at this place. Answered by seat() or keep_rank().
  void release(TimePoint now);
  /// All ranks are to end at once, this one too.
  void abort(int status, const std::string& why, TimePoint now);

  /// The newest roster that the keepers have agreed on.
  [[nodiscard]] const Roster& roster() const noexcept { return applied_; }
  [[nodiscard]] bool leads() const noexcept { return role_ == Role::leading; }

 private:
  enum class Role { looking, attached, following, preparing, leading };
  struct Peer {
    TimePoint heard{};
    std::optional<TimePoint> closed{};
    std::optional<TimePoint> reported{};  ///< its newest Report to this keeper
    RankState state = RankState::none;
    int status = 0;
    std::uint32_t deaths = 0;
    bool promised = false;        ///< in the term that this keeper prepares
    std::uint64_t acknowledged = 0;  ///< the newest roster of the term that it has accepted
    bool releases = false;        ///< it has asked to be rid of its rank
  };

  void on(int from, const council::Report& said, TimePoint now);
  void on(int from, const council::Here& said, TimePoint now);
  void on(int from, const council::Elsewhere& said, TimePoint now);
  void on(int from, const council::Prepare& said, TimePoint now);
  void on(int from, const council::Promise& said, TimePoint now);
  void on(int from, const council::Refuse& said, TimePoint now);
  void on(int from, const council::Accept& said, TimePoint now);
  void on(int from, const council::Accepted& said, TimePoint now);
  void on(int from, const council::Release& said, TimePoint now);
  void on(int from, const council::NoSpare& said, TimePoint now);
  void on(int from, const council::Expelled& said, TimePoint now);
  void on(int from, const council::Abort& said, TimePoint now);
  void on(int from, const council::AllEnded& said, TimePoint now);

  // As one that leads, or might.

  /// Asks for promises if enough keepers report to this one.
  void try_to_lead(TimePoint now);
  /// Looks for places that are lost, and for ranks that want another one.
  void judge(TimePoint now);
  [[nodiscard]] bool ranks_are_replaceable(const Roster& roster) const;
  [[nodiscard]] int free_place(const Roster& roster, TimePoint now) const;
  void propose(Roster roster);
  void count_acceptances();
  void tell_all(const CouncilMessage& message);
  void look_for_the_end();

  // As one that follows.

  void report();
  [[nodiscard]] council::Report own_report(std::uint64_t term) const;
  void follow(int leader, std::uint64_t term);
  /// Turns to this keeper, which might lead.
  void look_at(int place, TimePoint now);
  /// Turns to the next one, or, behind all lower ones, waits for reports itself.
  void look_on(TimePoint now);
  void give_up_leading(TimePoint now);
  void apply();

  /// True if these are more than half of all keepers; `with_first`: place 0 is among them.
  [[nodiscard]] bool is_quorum(int count, bool with_first) const noexcept;
  template <class Condition>
  [[nodiscard]] bool quorum_of(const Condition& counts) const;
  [[nodiscard]] bool is_dead(const Peer& peer, TimePoint now) const;
  [[nodiscard]] Peer& peer(int place) { return peers_[static_cast<std::size_t>(place)]; }
  [[nodiscard]] const Peer& own() const { return peers_[static_cast<std::size_t>(options_.place)]; }
  [[nodiscard]] bool is_candidate() const noexcept {
    return role_ == Role::looking && leader_ == options_.place;
  }

  Options options_;
  Actions* actions_;
  std::chrono::nanoseconds beat_;
  std::vector<Peer> peers_;  ///< by place, this one too
  Role role_ = Role::looking;
  int leader_ = 0;  ///< the one that this keeper turns to; itself: it leads, or might
  std::uint64_t term_ = 0;      ///< preparing, leading, following
  std::uint64_t promised_ = 0;  ///< no roster of an earlier term is accepted
  std::uint64_t highest_ = 0;   ///< of all terms that it has heard of
  Roster accepted_, applied_;
  std::uint64_t committed_ = 0;  ///< leading: the newest roster of the term that counts
  TimePoint turned_{};           ///< when it turned to leader_, or began to prepare
  std::optional<TimePoint> without_;  ///< since when there is no leader with enough keepers
  TimePoint last_tick_{}, probed_{};
  std::string why_;  ///< the job ends
  bool over_ = false;
};

}  // namespace troupe::keeper
