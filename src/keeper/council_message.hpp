#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <troupe/error.hpp>

/// The messages between keepers, one struct for each kind; see Council. The bytes on the network
/// are the fields of the struct, in order.
namespace troupe::keeper {

/// The place of a rank.
struct Seat {
  std::int32_t place = 0;
  std::uint32_t moves = 0;   ///< how often the rank has been given to another place
  std::uint32_t deaths = 0;  ///< of the rank's processes at its places before

  friend bool operator==(const Seat&, const Seat&) = default;
};

/// The place of each rank. The keepers agree on every change.
struct Roster {
  std::uint64_t term = 0;             ///< of the leader that has proposed it
  std::uint64_t number = 0;           ///< counts the rosters of a term
  std::vector<Seat> seats{};          ///< by rank
  std::vector<std::int32_t> lost{};   ///< places that are taken for lost, sorted
  std::vector<std::int32_t> spent{};  ///< places that live, and can have no rank any more, sorted
  std::int32_t over = -1;             ///< the job ends with this status; -1: it does not
  bool replaceable = false;  ///< all ranks are in the world, and none is past what can be repeated

  [[nodiscard]] bool is_lost(int place) const;
  [[nodiscard]] bool is_spent(int place) const;
  /// The rank at that place; -1: none.
  [[nodiscard]] int rank_at(int place) const;
  /// Later than another one.
  [[nodiscard]] bool is_after(const Roster& other) const;
  [[nodiscard]] bool says_the_same_as(const Roster& other) const;
};

/// The rank of a place, as its keeper knows it.
enum class RankState : std::uint32_t {
  none,           ///< a spare place
  starting,       ///< it is not in the world yet
  replaceable,    ///< it may be started again, here or at another place
  irreplaceable,  ///< there would be nothing for it to go on with
  ended           ///< its program has ended, together with all others
};

namespace council {

/// To the leader, or to a keeper that might lead: this keeper lives.
struct Report {
  std::uint64_t term = 0;  ///< of the leader that it follows; 0: it looks for one
  RankState state = RankState::none;
  std::int32_t status = 0;   ///< ended: the exit status
  std::uint32_t deaths = 0;  ///< of the rank's processes here
};
/// To all: this keeper leads. Term 0: it might lead, and wants to be told who else lives.
struct Here {
  std::uint64_t term = 0;
  std::uint64_t committed = 0;  ///< the roster of this term that all are to go by
};
/// This keeper does not lead; that one does, or might.
struct Elsewhere {
  std::int32_t place = 0;
};
/// Promise not to listen to a leader of an earlier term.
struct Prepare {
  std::uint64_t term = 0;
};
struct Promise {
  std::uint64_t term = 0;
  Roster accepted{};  ///< the newest that this keeper has accepted
};
/// It has promised to listen to no leader before this term.
struct Refuse {
  std::uint64_t promised = 0;
};
/// Keep this roster. It counts once more than half of the keepers have it.
struct Accept {
  Roster roster{};
};
struct Accepted {
  std::uint64_t term = 0;
  std::uint64_t number = 0;
};
/// To the leader: the rank here cannot go on at this place, and shall go to another one.
struct Release {
  std::uint32_t moves = 0;  ///< of its seat
};
/// There is no other place.
struct NoSpare {};
/// Others have taken this place for lost: it has no part in the job any more.
struct Expelled {};
/// All ranks are to end at once.
struct Abort {
  std::int32_t status = 0;
  std::int32_t place = 0;  ///< who wants that
};
/// The programs of all ranks have ended.
struct AllEnded {
  std::int32_t status = 0;  ///< of the job: of the first rank that has another one than 0
};

}  // namespace council

using CouncilMessage =
    std::variant<council::Report, council::Here, council::Elsewhere, council::Prepare,
                 council::Promise, council::Refuse, council::Accept, council::Accepted,
                 council::Release, council::NoSpare, council::Expelled, council::Abort,
                 council::AllEnded>;

std::vector<std::byte> encode(const CouncilMessage& message);
/// Errors: invalid for a malformed message, or one that does not fit a job of this size.
Result<CouncilMessage> decode_council_message(std::span<const std::byte> bytes, int places,
                                              int ranks);

}  // namespace troupe::keeper
