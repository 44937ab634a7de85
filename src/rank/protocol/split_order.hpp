#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <troupe/clock.hpp>
#include <troupe/error.hpp>

#include "rank/protocol/message.hpp"

namespace troupe::rank_process {

/// Rank 0's part in splits of communicators, and in the other host collectives of a run: a rank
/// begins one only when all ranks of the communicator have said that they are about to, and ranks
/// that will never agree are found at once.
///
/// A rank that is about to split says so (Splitting) and waits. When all ranks of the communicator
/// have said the same, each is told to go on (SplitAgreed), and goes on whatever happens to device
/// hosts. A rank that a fault keeps from a host collective of its run therefore holds nobody up:
/// those that wait for it here give up (SplitGivenUp), and none has begun. So do they when the
/// world ends: a rank hears of that before others do, and goes on if these have been told to.
///
/// A rank that waits, waits for every rank of its communicator. So the ranks can never go on
/// - if they wait for one another in a circle: each in a call of a communicator which the next
///   one is in, while that waits in another call;
/// - if a rank has used up the same turn of the communicator (its host collectives are numbered)
///   for another host collective;
/// - if a rank has ended its program.
/// Rank 0 learns of the latter two by asking those that are missing where they are (AskCall,
/// AtCall), again and again while a split waits. What they answer is enough to judge: a rank
/// never goes back, and says that it splits before it does.
///
/// Pure, like the protocol: no I/O, no threads, time is passed in. `send` must not call back.
class SplitOrder {
 public:
  static constexpr std::chrono::milliseconds kFirstQuestion{100};
  static constexpr std::chrono::seconds kQuestionsApart{2};  ///< at most; at first less
  /// A rank that has ended with an error of its own ends the job with that, after a while.
  static constexpr std::chrono::seconds kEndedPatience{15};

  using Send = std::function<void(int rank, const SupervisorMessage& message)>;
  explicit SplitOrder(Send send) : send_(std::move(send)) {}

  /// What can never go on.
  struct Finding {
    Error error;
    bool in_mpi = false;  ///< some ranks wait in MPI, where they do not hear of the world's end
  };
  std::optional<Finding> receive(from_rank::Splitting splitting, TimePoint now);
  std::optional<Finding> receive(const from_rank::SplitGivenUp& given_up, TimePoint now);
  std::optional<Finding> receive(const from_rank::AtCall& answer, TimePoint now) const;
  /// To be called now and then: asks.
  void tick(TimePoint now);

 private:
  /// A call that ranks wait in.
  struct Call {
    HostCall call;
    std::size_t come = 0;  ///< ranks that wait in it
  };
  struct Waiting {
    std::list<Call>::iterator call;
    std::string name;  ///< as the rank calls it
    TimePoint since{};
  };
  [[nodiscard]] bool waits_in(int rank, const HostCall& call) const;
  std::list<Call>::iterator find(const HostCall& call);
  /// The rank waits no more.
  void leave(int rank);
  std::optional<Finding> begins(int rank, HostCall call, TimePoint now);
  [[nodiscard]] std::vector<int> circle_through(int rank) const;
  void answer(int rank, const HostCall& call, Errc code);

  Send send_;
  std::list<Call> calls_;
  std::map<int, Waiting> waiting_;  ///< by rank of the job
  TimePoint ask_at_{};
  std::chrono::nanoseconds pause_{};
};

}  // namespace troupe::rank_process
