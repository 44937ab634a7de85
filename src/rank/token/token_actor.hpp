#pragma once

#include <memory>
#include <vector>

#include <troupe/actor/actor.hpp>

#include "rank/token/own_requests.hpp"
#include "rank/token/routes.hpp"
#include "rank/token/token_parts.hpp"

namespace troupe::rank_process {

namespace token_message {
struct FromNetwork {
  std::vector<std::byte> bytes;
};
/// See TokenParts::dropped_regions.
struct SlabsDropped {};
/// The ranks that are out of the world, all of them.
struct SetExcluded {
  std::vector<std::int32_t> ranks;
};
/// Other processes are these ranks now.
struct Forget {
  std::vector<std::int32_t> ranks;
};
/// The program turns to this epoch.
struct EpochBegun {
  std::uint32_t epoch;
};
/// The copies of a commit are submitted; its number is commit_number()'s.
struct Committed {
  std::uint32_t epoch;
  std::uint64_t number;
};
/// What belongs to this epoch, or to one before, fails with that error. kNoMoreEpochs: whatever is
/// asked for, too.
struct EpochEnded {
  std::uint32_t epoch;
  Error why;
};
inline constexpr auto kNoMoreEpochs = UINT32_MAX;
struct Look {};
struct End {
  using Reply = bool;
};
}  // namespace token_message

/// Routes tokens: carries out what this rank asks of others and what others ask of it. The parts in
/// Routes do it; this gives them what they are told.
///
/// Every transfer is a *pull*: the destination's device host reads the source. On the source's side
/// the range is lent (see Loans): the transfer sees it as it was when the request was handled,
/// whatever the program writes meanwhile. On the destination's side the range is expected: the
/// program's commands that name it wait until it is there. So neither device host ever waits for
/// another rank, and a transfer cannot deadlock with a collective.
///
///     destination                                  source
///         Fetch      ------------------------>   lends the range, waits for its writers
///                    <------------------------   Offered: here it is (slab, offset | network)
///         maps the slab, copies; or
///         Stream     ------------------------>   pieces through pinned memory and MPI
///         Taken      ------------------------>   was the range written meanwhile? then
///                    <------------------------   Offered: there is a copy of it; else
///                    <------------------------   Over
///
/// By a channel (see <troupe/lib/channel.hpp>) the middle of it is
///
///                    <------------------------   Offered: by channel n
///         receives it
///         Ready      ------------------------>   sends it
///         Taken      ------------------------>   as above
///
/// Within a node the destination sees on the source's LoanBoard that the range was not written
/// meanwhile. Then it is done, says so with Taken, and nothing more comes. A put is the same,
/// opened by the source: its request to the owner is the offer. Requests of one rank to another are
/// handled in the order in which they were made.
///
/// A buffer that is mapped is a hold whose answer says where it lies. Commands of the reader's
/// program read it there; the ranks order them themselves.
///
/// Nobody but its owner's device host ever writes a rank's memory: all of these ways read. A read
/// by a device host that is being given up does no harm when it comes late; a write would.
///
/// A request belongs to the epoch that the program which makes it has acknowledged, and is handled
/// while the owner's program is in the same one. One of an epoch that the owner's program has yet
/// to turn to waits for that: ahead of the owner's rollback it would be undone, and nobody would
/// ask again. One of an epoch that has ended is refused: behind the rollback it would be done
/// twice. In the same way a request made behind a commit waits until the owner's program has made
/// its own: ahead of that it would be part of it, and be done again after a rollback. One that is
/// made ahead of a commit is done before the owner commits (World::run waits for that, see Flush):
/// behind it a rollback would undo it for good. Transfers end with their epoch. What this actor has
/// not yet been told of the end of an epoch does no harm, because the port knows it first: see
/// CommandView::within.
class TokenActor
    : public Actor<TokenActor, token_message::FromNetwork, token_message::Happened,
                   token_message::Fetch, token_message::Put, token_message::Ask, token_message::Map,
                   token_message::Unmap, token_message::Release, token_message::SlabsDropped,
                   token_message::SetExcluded, token_message::Forget, token_message::EpochBegun,
                   token_message::Committed, token_message::Flush, token_message::EpochEnded,
                   token_message::Look, token_message::End> {
 public:
  explicit TokenActor(TokenParts* parts) : parts_(parts) {}
  ~TokenActor() override;

  void on_start() override;
  void on(const token_message::FromNetwork& message);
  void on(token_message::Happened happened) { happened.what(); }
  void on(token_message::Fetch fetch) { routes_->own.on(std::move(fetch)); }
  void on(token_message::Put put) { routes_->own.on(std::move(put)); }
  void on(token_message::Ask ask) { routes_->own.on(std::move(ask)); }
  void on(token_message::Map map) { routes_->maps.on(std::move(map)); }
  void on(const token_message::Unmap& unmap) { routes_->maps.on(unmap); }
  void on(const token_message::Release& release) { routes_->own.on(release); }
  void on(const token_message::Flush& flush) { routes_->own.on(flush); }
  void on(token_message::SlabsDropped) { routes_->sharing.forget_dropped(); }
  void on(const token_message::SetExcluded& set);
  void on(const token_message::Forget& set);
  void on(const token_message::EpochBegun& begun);
  void on(const token_message::Committed& committed);
  void on(const token_message::EpochEnded& ended);
  void on(token_message::Look);
  bool on(token_message::End);

 private:
  /// Another rank says something: gives it to each part that has an on() for it.
  void hear(int from, TokenMessage message);
  /// The rank is out of the world.
  void exclude(int rank);

  TokenParts* parts_;
  std::unique_ptr<Routes> routes_;  ///< from on_start() on
};

}  // namespace troupe::rank_process
