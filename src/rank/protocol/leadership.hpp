#pragma once

#include <cstdint>
#include <vector>

#include "rank/protocol/message.hpp"

namespace troupe::rank_process {

/// Says which rank leads the world: rank 0, until its process dies; then the lowest rank whose
/// process has not died since the last epoch began. Pure.
///
/// Intuition: a process that was started in the place of a dead one says so to all others (Joined),
/// and is *unsettled* until an epoch begins with it. All ranks know who is unsettled, so all of
/// them find the same leader, each for itself; a rank that does not know yet hears it by the
/// orders. Where all have died there is nothing to go on with: rank 0 leads, and they begin anew.
///
/// Model: a process that is new knows of no other one's death but what it hears. So who is
/// unsettled himself answers a Joined with his own. A rank that has missed the begin of an epoch
/// may find another leader than the others do: of two that lead, the one of the older round resigns
/// as soon as it hears an order of the other (rounds of two leaders are never the same).
class Leadership {
 public:
  static constexpr std::uint32_t kUnknown = UINT32_MAX;

  class Actions {
   public:
    virtual ~Actions() = default;
    /// The process that the rank is, as far as is known here; kUnknown.
    [[nodiscard]] virtual std::uint32_t incarnation_of(int rank) const = 0;
    /// A process of this incarnation is that rank now. False: it is known.
    virtual bool learn(int rank, std::uint32_t incarnation) = 0;
    /// The rank has died, and this is its process now: whoever waits for the dead one must not go
    /// on waiting.
    virtual void died(const from_rank::Joined& joined) = 0;
    /// Straight to that rank.
    virtual void send(int rank, const from_rank::Joined& joined) = 0;
    /// The rank leads, as far as is known here. It may be this one.
    virtual void follow(int leader) = 0;
    /// The newest round, and the newest epoch that one was to begin, of which this rank has heard,
    /// by orders or by those that have joined.
    struct Heard {
      std::uint32_t round = 0, epoch = 0;
    };
    /// This rank leads from now on, beyond what it has heard of. `all`: the processes of the ranks
    /// that have died once or more; `joined`: those that are unsettled.
    virtual void lead(const Heard& heard, const std::vector<Incarnation>& all,
                      const std::vector<from_rank::Joined>& joined) = 0;
    /// This rank leads, and a process has joined.
    virtual void take_in(const from_rank::Joined& joined) = 0;
    /// The newest round that this rank has begun, while it leads.
    [[nodiscard]] virtual std::uint32_t round() const = 0;
    /// It leads no more.
    virtual void resign() = 0;
  };

  /// `incarnation`: of this process.
  Leadership(int rank, int size, std::uint32_t incarnation, Actions* actions);

  /// This rank may speak to the others now.
  void begin();
  void on(const from_rank::Joined& joined);
  /// An order of a round that is not over: who gives it leads, and it tells who has died. False: it
  /// is not to be followed, for this rank leads, and has begun a later round.
  [[nodiscard]] bool learn(const from_supervisor::Order& order);
  /// The epoch begins that the newest order was of. The ranks that had died and are in it, but for
  /// this one.
  std::vector<std::int32_t> settle();

  [[nodiscard]] int leader() const noexcept { return leader_; }

 private:
  /// False: it is known.
  bool learn(const from_rank::Joined& joined);
  void hear(const Actions::Heard& heard);
  [[nodiscard]] from_rank::Joined own() const;
  /// Leads, or follows another rank, if the one that led has died.
  void consider();
  [[nodiscard]] bool is_settled(int rank) const { return settled_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] std::uint32_t process_of(int rank) const;

  int rank_;
  std::uint32_t incarnation_;
  Actions* actions_;
  int leader_ = 0;
  bool leads_;
  std::vector<bool> settled_;  ///< by rank, as far as is known here
  Actions::Heard heard_;
  std::vector<std::uint32_t> in_round_;  ///< by rank: its process in the newest order's round
};

}  // namespace troupe::rank_process
