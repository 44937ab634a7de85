#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "keeper/colleagues.hpp"
#include "keeper/council_actions.hpp"

namespace troupe::keeper {

/// The work of the keeper that leads, for one term: finds the places that are lost, gives their
/// ranks other places, and has the others accept that; see Council.
class Reign {
 public:
  static constexpr int kExitRequeue = 75;

  /// `accepted`: the newest roster that this keeper has accepted, which is the first proposal.
  /// `committed` is called when one counts. All outlive this.
  struct Parts {
    Roster& accepted;
    Colleagues& colleagues;
    CouncilActions& actions;
    std::chrono::nanoseconds beat;  ///< how often keepers report
    std::function<void()> committed;
  };
  Reign(std::uint64_t term, Parts parts) : term_(term), parts_(std::move(parts)) {}

  void begin();
  /// A keeper reports; what it says of itself is noted already.
  void hear(int from, const council::Report& said);
  void hear(int from, const council::Accepted& said);
  /// A place wants to be rid of its rank.
  void release(int place, std::uint32_t moves, TimePoint now);
  /// Looks for places that are lost, and for ranks that want another one. False: not enough keepers
  /// are left for this one to lead.
  [[nodiscard]] bool judge(TimePoint now);
  /// The job's status, once the programs of all ranks have ended.
  [[nodiscard]] std::optional<int> end_of_job() const;
  void tell_all(const CouncilMessage& message);
  /// Why the job ends, if the roster says so.
  [[nodiscard]] const std::string& why() const noexcept { return why_; }

 private:
  void propose(Roster roster);
  void count_acceptances();
  /// The accepted roster counts.
  [[nodiscard]] bool is_committed() const noexcept { return committed_ == parts_.accepted.number; }
  [[nodiscard]] Roster with_the_lost(TimePoint now) const;
  void seat_anew(Roster& roster, TimePoint now);
  [[nodiscard]] bool ranks_are_replaceable(const Roster& roster) const;
  /// A spare place; for a rank that is lost otherwise a refuge, if there is no other. -1: none.
  [[nodiscard]] int free_place(const Roster& roster, bool is_lost, TimePoint now) const;

  std::uint64_t term_;
  Parts parts_;
  std::uint64_t committed_ = 0;  ///< the newest roster of the term that counts
  std::string why_;
};

}  // namespace troupe::keeper
