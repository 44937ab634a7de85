#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include <troupe/actor/actor.hpp>
#include <troupe/device.hpp>

#include "rank/device/device_core.hpp"
#include "rank/net/fd_exchange.hpp"
#include "rank/net/mpi_bulk.hpp"
#include "rank/token/shared_slabs.hpp"
#include "rank/token/token_message.hpp"
#include "rank/token/token_streams.hpp"

namespace troupe::rank_process {

/// How the bytes of a transfer go.
enum class TokenPath {
  peer_or_network,  ///< as `peer` within a node where the GPUs reach each other, else `network`
  peer,             ///< the reader maps the other rank's slab; only within a node
  network,          ///< through pinned memory and MPI
  channel           ///< from device host to device host: NCCL, or on the cpu engine Gloo's mesh
};

/// What a TokenActor works with; outlives it.
struct TokenParts {
  int rank = 0;
  int size = 1;
  TokenPath path = TokenPath::peer_or_network;
  std::chrono::nanoseconds timeout{};  ///< of a transfer that makes no progress
  std::shared_ptr<DeviceCore> device;
  std::unique_ptr<FdExchange> fds;                   ///< empty: no descriptors can be passed
  std::map<int, std::unique_ptr<LoanBoard>> boards;  ///< of other ranks of this node
  std::function<void(int rank, std::vector<std::byte> message)> send;  ///< to its TokenActor
  /// Whether the actor waits for anybody; between its turns, on its thread. Set by the actor.
  std::function<bool()> under_way = [] { return false; };
  std::unique_ptr<MpiBulk> bulk;
  InStreams streams;
  /// Regions whose slabs are no more, and may be another's soon: to be forgotten before the next
  /// offer.
  std::mutex dropped_mutex;
  std::vector<std::uint32_t> dropped_regions;
};

namespace token_message {
using Done = std::function<void(const Result<void>&)>;

struct FromNetwork {
  std::vector<std::byte> bytes;
};
/// Something that the actor waited for has happened.
struct Happened {
  std::function<void()> what;
};
struct Fetch {
  std::uint32_t epoch;
  std::uint64_t behind;  ///< this commit of the program
  Operand token;
  int owner;
  Operand destination;  ///< expected by the port already
  Done done;
};
struct Put {
  std::uint32_t epoch;
  std::uint64_t behind;  ///< this commit of the program
  std::shared_ptr<Loan> loan;
  Operand source;
  Operand token;
  int owner;
  Done done;
};
/// execute, hold or release.
struct Ask {
  std::uint32_t epoch;
  int owner;
  TokenMessage head;
  std::vector<std::byte> payload;
  std::function<void(const TransferKey&, const Result<void>&)> done;
};
/// See TokenParts::dropped_regions.
struct SlabsDropped {};
/// The ranks that are out of the world, all of them.
struct SetExcluded {
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
/// Resolves `answered` once all that this rank has asked for until now is answered.
struct Flush {
  std::shared_ptr<Promise<void>> answered;
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

/// Submits a command whose operands are named as tokens name them to this rank's device, in the
/// place of whoever asks. An error: it names what is not there, or cannot be asked for.
Result<Future<void>> submit_named(std::span<const std::byte> record, int rank, DeviceCore& device,
                                  detail::Submitter& submitter);

/// Routes tokens: carries out what this rank asks of others and what others ask of it.
///
/// Every transfer is a *pull*: the destination's device host reads the source. On the source's side
/// the range is lent (see Loans): the transfer sees it as it was when the request was handled,
/// whatever the program writes meanwhile. On the destination's side the range is expected: the
/// program's commands that name it wait until it is there. So neither device host ever waits for
/// another rank, and a transfer cannot deadlock with a collective.
///
///     destination                                  source
///         fetch      ------------------------>   lends the range, waits for its writers
///                    <------------------------   offer: here it is (slab, offset | network)
///         maps the slab, copies; or
///         stream     ------------------------>   pieces through pinned memory and MPI
///         taken      ------------------------>   was the range written meanwhile? then
///                    <------------------------   offer: there is a copy of it; else
///                    <------------------------   over
///
/// By a channel (see <troupe/lib/channel.hpp>) the middle of it is
///
///                    <------------------------   offer: by channel n
///         receives it
///         ready      ------------------------>   sends it
///         taken      ------------------------>   as above
///
/// Within a node the destination sees on the source's LoanBoard that the range was not written
/// meanwhile. Then it is done, says so with `taken`, and nothing more comes. A put is the same,
/// opened by the source: its request to the owner is the offer. Requests of one rank to another are
/// handled in the order in which they were made.
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
                   token_message::Fetch, token_message::Put, token_message::Ask,
                   token_message::SlabsDropped, token_message::SetExcluded,
                   token_message::EpochBegun, token_message::Committed, token_message::Flush,
                   token_message::EpochEnded, token_message::Look, token_message::End> {
 public:
  explicit TokenActor(TokenParts* parts);
  ~TokenActor() override;

  void on_start() override;
  void on(token_message::FromNetwork message);
  void on(token_message::Happened happened) { happened.what(); }
  void on(token_message::Fetch fetch);
  void on(token_message::Put put);
  void on(token_message::Ask ask);
  void on(token_message::SlabsDropped) { forget_dropped(); }
  void on(const token_message::SetExcluded& set);
  void on(const token_message::EpochBegun& begun);
  void on(const token_message::Committed& committed);
  void on(const token_message::Flush& flush);
  void on(const token_message::EpochEnded& ended);
  void on(token_message::Look);
  bool on(token_message::End);

 private:
  using Kind = TokenMessage::Kind;
  using Done = token_message::Done;

  /// A transfer at its destination.
  struct Pull {
    TransferKey key;
    int source = 0;
    Operand destination;
    Done done;
    TimePoint progress{};
    std::uint32_t copying = 0;  ///< copies under way on the device
    bool touched = false;       ///< the destination may hold part of it
    bool remapped = false;      ///< a mapping that was lost has been made anew
    Offer offer;
    std::shared_ptr<InStream> stream;
    std::uint64_t channel = 0;    ///< this rank's number of it; 0: it goes another way
    std::uint64_t copied = 0;     ///< bytes that came over the network and are in place
    std::optional<Error> failed;  ///< ends it once no copy is under way
  };
  /// A transfer at its source.
  struct Lending {
    TransferKey key;
    int destination = 0;
    std::shared_ptr<Loan> loan;
    std::uint64_t bytes = 0;
    TimePoint progress{};
    bool offered_copy = false;
    bool ended = false;
    std::unique_ptr<OutStream> stream;
    std::uint64_t channel = 0;  ///< this rank's number of it; 0: it goes another way
  };
  /// This rank's end of a channel. It belongs to an epoch, as its transfers do.
  struct Channel {
    enum class State {
      begun,
      connecting,
      open,
      lost  ///< the other end, or a device host, is: the end of the epoch is to come
    };
    int peer = 0;
    bool sends = false;
    std::uint32_t epoch = 0;
    std::uint64_t of_source = 0;  ///< the source's number of it, which messages have
    State state = State::begun;
    std::vector<std::byte> invitation{};  ///< the destination's, once it has come
    std::deque<TransferKey> waiting{};    ///< what can go over it
    std::optional<TransferKey> under_way{};
  };
  using PullPtr = std::shared_ptr<Pull>;
  using LendingPtr = std::shared_ptr<Lending>;
  struct Request {
    int owner;
    std::function<void(const TransferKey&, const Result<void>&)> done;
  };
  struct Waiting {
    TokenPacket packet;
    std::optional<TimePoint> blocked_since;
  };
  struct Outgoing {
    TokenMessage head;
    std::vector<std::byte> payload;
    bool ready = true;
  };
  struct Mapping {
    std::uint32_t region = 0;
    std::uint64_t bytes = 0;
    std::uint32_t users = 0;
    bool ready = false;
    bool gone = false;
    std::vector<std::function<void(Result<std::uint32_t>)>> waiting;
  };
  using MappingId = std::pair<int, std::uint64_t>;  ///< rank and serial

  // token_actor.cpp: requests
  [[nodiscard]] CommandPort& port() const { return parts_->device->port(); }
  [[nodiscard]] TransferKey next_key(std::uint32_t epoch) {
    return {parts_->rank, epoch, next_number_++};
  }
  /// Why nothing of this epoch can be asked of `owner`; nullopt: it can.
  [[nodiscard]] std::optional<Error> obstacle(std::uint32_t epoch, int owner) const;
  template <class T, class F>
  void then(const Future<T>& future, F f) {
    context().pipe(future, [f = std::move(f)](const Result<T>& outcome) {
      return token_message::Happened{[f, outcome] { f(outcome); }};
    });
  }
  /// As then(), without another turn for what has resolved already: `f` runs before this returns.
  template <class F>
  void at_once_or_then(const Future<void>& future, F f) {
    future.ready() ? f(future.wait()) : then(future, std::move(f));
  }
  void send(int rank, TokenMessage head, std::span<const std::byte> payload = {});
  void send_outcome(int rank, Kind kind, const TransferKey& key, const Result<void>& outcome);
  void request(int owner, const TransferKey& key, Outgoing outgoing);
  void flush(int owner);
  void answered(const TransferKey& key, const Result<void>& outcome);
  void advance(int requester);
  void advance_all();
  /// False: something is in the way, to be tried again.
  bool handle(const TokenPacket& packet);
  void refuse(const TokenMessage& request, const Error& error);
  bool handle_fetch(const TokenMessage& message);
  bool handle_put(const TokenMessage& message);
  bool handle_execute(const TokenPacket& packet);
  void handle_hold(const TokenMessage& message);
  void handle_release(const TransferKey& key);
  [[nodiscard]] Result<Operand> translate(const Operand& named) const;

  // token_ends.cpp
  /// Tells whoever waits for the last of them.
  void own_request_ended(const TransferKey& key);
  void exclude(int rank);
  [[nodiscard]] static Error gone(int rank);
  static constexpr auto kLookEvery = std::chrono::milliseconds(50);
  /// Bytes a second: a channel that is slower is taken for broken, after the timeout.
  static constexpr std::uint64_t kSlowestChannel = 64u << 20;

  // token_source.cpp
  LendingPtr lend(const TransferKey& key, int destination, std::shared_ptr<Loan> loan,
                  std::uint64_t bytes);
  /// Calls `made` with what the destination is to be told of where the bytes are.
  void make_offer(const LendingPtr& lending, const std::function<void(const Offer&)>& made);
  void forget_dropped();
  void share(std::uint32_t region, const std::function<void(const SharedSlabs::Id&)>& shared);
  /// `settled`: the other side knows by itself that what it has is right.
  void taken(const TransferKey& key, const Result<void>& outcome, bool settled);
  void over(LendingPtr lending, const Result<void>& outcome);
  void end_lending(LendingPtr lending);
  void start_stream(const TokenMessage& message);
  void pump(const LendingPtr& lending);

  // token_channels.cpp
  std::uint64_t add_channel(Channel channel);
  /// The channel to that rank in that epoch, new or not.
  std::uint64_t channel_to(int destination, std::uint32_t epoch);
  void offer_by_channel(const LendingPtr& lending, const std::function<void(const Offer&)>& made);
  void other_end_joins(const TokenMessage& joins);
  void send_next(const TokenMessage& ready);
  void send_by_channel(std::uint64_t number, const LendingPtr& lending);
  void receive_by_channel(const PullPtr& pull);
  std::uint64_t channel_from(int source, std::uint32_t epoch, std::uint64_t of_source);
  void invitation_came(const TokenPacket& packet);
  void receive_next(std::uint64_t number, const PullPtr& pull);
  [[nodiscard]] std::optional<std::uint64_t> find_channel(int peer, bool sends,
                                                          std::uint64_t of_source) const;
  template <class Op>
  void connect_channel(std::uint64_t number, const Op& op, std::span<const std::byte> data = {});
  /// Lets the next transfer begin, if it can.
  void advance_channel(std::uint64_t number);
  void end_under_way(std::uint64_t number);
  [[nodiscard]] bool is_under_way(std::uint64_t number, const TransferKey& key) const;
  /// A transfer has ended for another reason than that it was sent or received.
  void leave_channel(std::uint64_t number, const TransferKey& key, const Error& error);
  void channel_failed(std::uint64_t number, const Error& error);
  /// Ends its transfers. `tell`: the other end.
  void give_up_channel(std::uint64_t number, const Error& error, bool tell);
  void channel_gone(const TokenPacket& packet);
  /// Forgets those of epochs that have ended: the device hosts give them up by themselves.
  void end_channels();

  // token_pull.cpp
  PullPtr expect(const TransferKey& key, int source, const Operand& destination, Done done);
  void offered(PullPtr pull, const Offer& offer);
  void copy(const PullPtr& pull, const MappingId& id, std::uint32_t region);
  void all_copied(const PullPtr& pull);
  void ask_for_stream(const PullPtr& pull);
  void arrived(const PullPtr& pull, std::uint32_t slot, std::uint64_t bytes);
  void fail(PullPtr pull, const Error& error);
  void finish(PullPtr pull, const Result<void>& outcome);
  void map(const MappingId& id, std::uint64_t bytes,
           std::function<void(Result<std::uint32_t>)> mapped);
  void unmap(const MappingId& id);

  TokenParts* parts_;
  std::uint64_t next_number_ = 1;
  std::uint32_t epoch_ = 0;      ///< that the program has acknowledged
  std::uint64_t committed_ = 0;  ///< the newest commit of the program in that epoch
  std::uint32_t ended_ = 0;      ///< the newest epoch that has ended …
  Error why_ended_;              ///< … and why
  std::vector<bool> excluded_;
  std::vector<std::deque<Waiting>> inbox_;    ///< per rank, what it asks of this one
  std::vector<std::deque<Outgoing>> outbox_;  ///< per rank, what this one asks of it
  std::map<TransferKey, Request> requests_;   ///< of this rank, not answered
  struct Flushing {
    std::uint64_t end;  ///< waits for all numbers below …
    std::size_t left;   ///< … of which so many are open
    std::shared_ptr<Promise<void>> answered;
  };
  std::vector<Flushing> flushings_;
  std::map<TransferKey, PullPtr> pulls_;
  std::map<TransferKey, LendingPtr> lendings_;
  std::map<TransferKey, std::uint32_t> holds_;  ///< of others: the buffer
  SharedSlabs shared_;
  std::map<MappingId, Mapping> mappings_;
  std::uint32_t next_foreign_ = 1;
  std::map<std::uint64_t, Channel> channels_;  ///< by this rank's number
  std::uint64_t next_channel_ = 1;
  std::size_t receiving_ = 0;  ///< over all channels
  /// Of others to this rank, given up: epoch, source, the source's number.
  std::set<std::tuple<std::uint32_t, int, std::uint64_t>> gone_channels_;
};

}  // namespace troupe::rank_process
