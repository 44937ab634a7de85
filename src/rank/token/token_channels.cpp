#include <algorithm>
#include <cstring>

#include <troupe/lib/channel.hpp>

#include "common/core/log.hpp"
#include "rank/token/token_actor.hpp"

// Transfers by channels, from device host to device host: see <troupe/lib/channel.hpp>.
//
// The destination decides what goes over a channel next: it tells the source so when it has
// submitted the receive, and the source then submits the send, whose bytes have been there since
// the offer. So the two ends agree on the order without a number, a send never waits for anything
// but the data's way, and neither end ever waits for a program.

namespace troupe::rank_process {

using namespace token_message;

namespace {

/// A receive occupies part of the GPU until its data have come: more of them wait here.
constexpr std::size_t kMostReceives = 8;

}  // namespace

std::uint64_t TokenActor::add_channel(Channel channel) {
  const auto number = next_channel_++;
  if (channel.sends) channel.of_source = number;
  channels_.emplace(number, std::move(channel));
  return number;
}

// The source's end

std::uint64_t TokenActor::channel_to(int destination, std::uint32_t epoch) {
  for (const auto& [number, channel] : channels_) {
    if (channel.sends && channel.peer == destination && channel.epoch == epoch &&
        channel.state != Channel::State::lost)
      return number;
  }
  const auto number = add_channel({.peer = destination, .sends = true, .epoch = epoch});
  const auto cell = port().result_cell(sizeof(channel::Invitation));
  auto deliveries = port().deliveries(epoch);
  const auto invited =
      cell.ok() ? detail::submit(deliveries, channel::Invite{DType::u8, number, cell->where})
                : Future<void>(Result<void>(cell.error()));
  then(invited, [this, number, cell](const Result<void>& outcome) {
    const auto it = channels_.find(number);
    if (it == channels_.end()) return;
    if (!outcome.ok()) return channel_failed(number, outcome.error());
    channel::Invitation invitation;
    std::memcpy(&invitation, cell->data, sizeof invitation);
    const auto& channel = it->second;
    send(channel.peer,
         {.kind = Kind::channel, .key = {parts_->rank, channel.epoch, 0}, .count = number},
         std::span(invitation.bytes).first(invitation.length));
  });
  return number;
}

void TokenActor::offer_by_channel(const LendingPtr& lending,
                                  const std::function<void(const Offer&)>& made) {
  lending->channel = channel_to(lending->destination, lending->key.epoch);
  made({.bytes = lending->bytes, .channel = lending->channel});
}

/// Not before: what it invites to may never have anything to carry, and the command would wait.
void TokenActor::other_end_joins(const TokenMessage& joins) {
  const auto it = channels_.find(joins.count);
  const bool invites = it != channels_.end() && it->second.sends && it->second.peer == joins.from;
  if (!invites || it->second.state != Channel::State::begun) return;
  connect_channel(joins.count, channel::Connect{DType::u8, joins.count});
}

void TokenActor::send_next(const TokenMessage& ready) {
  const auto it = channels_.find(ready.count);
  if (it == channels_.end() || !it->second.sends || it->second.peer != ready.from) return;
  const auto lending = lendings_.find(ready.key);
  if (lending == lendings_.end() || lending->second->channel != ready.count)
    return give_up_channel(ready.count, {Errc::stopped, 0, "a transfer has ended"}, true);
  it->second.waiting.push_back(ready.key);
  advance_channel(ready.count);
}

void TokenActor::send_by_channel(std::uint64_t number, const LendingPtr& lending) {
  const auto& loans = parts_->device->loans();
  const auto location = loans.location(lending->loan);
  lending->offered_copy = location.saved && location.there.ready() && location.there.wait().ok();
  const auto sent = loans.read_whole(lending->loan, [&](const Operand& range) {
    auto deliveries = port().deliveries(lending->key.epoch);
    return detail::submit(deliveries, channel::Send{DType::u8, number, range});
  });
  then(sent, [this, number, lending](const Result<void>& outcome) {
    lending->progress = context().now();
    end_under_way(number);
    if (!outcome.ok()) channel_failed(number, outcome.error());
    advance_channel(number);
  });
}

// The destination's end

void TokenActor::receive_by_channel(const PullPtr& pull) {
  const auto of_source = pull->offer.channel;
  if (gone_channels_.contains({pull->key.epoch, pull->source, of_source}))
    return fail(pull, {Errc::library, 0, "the channel of the transfer is given up"});
  pull->channel = channel_from(pull->source, pull->key.epoch, of_source);
  ++pull->copying;
  auto deliveries = port().deliveries(pull->key.epoch);
  then(detail::submit(deliveries, channel::Settle{DType::u8, pull->destination}),
       [this, pull](const Result<void>& outcome) {
         --pull->copying;
         pull->progress = context().now();
         if (pull->failed) return fail(pull, *pull->failed);
         if (!outcome.ok()) return fail(pull, outcome.error());
         channels_.at(pull->channel).waiting.push_back(pull->key);
         advance_channel(pull->channel);
       });
}

std::uint64_t TokenActor::channel_from(int source, std::uint32_t epoch, std::uint64_t of_source) {
  const auto known = find_channel(source, false, of_source);
  return known ? *known : add_channel({.peer = source, .epoch = epoch, .of_source = of_source});
}

void TokenActor::invitation_came(const TokenPacket& packet) {
  const auto& head = packet.head;
  if (head.key.epoch <= ended_ || gone_channels_.contains({head.key.epoch, head.from, head.count}))
    return;
  const auto number = channel_from(head.from, head.key.epoch, head.count);
  channels_.at(number).invitation = packet.payload;
  advance_channel(number);
}

void TokenActor::receive_next(std::uint64_t number, const PullPtr& pull) {
  ++receiving_;
  ++pull->copying;
  pull->touched = true;
  pull->progress = context().now();
  auto deliveries = port().deliveries(pull->key.epoch);
  const auto received =
      detail::submit(deliveries, channel::Receive{DType::u8, number, pull->destination});
  send(pull->source, {.kind = Kind::ready, .key = pull->key, .count = pull->offer.channel});
  then(received, [this, number, pull](const Result<void>& outcome) {
    --receiving_;
    --pull->copying;
    pull->progress = context().now();
    end_under_way(number);
    if (outcome.ok() && !pull->failed) send_outcome(pull->source, Kind::taken, pull->key, {});
    if (!outcome.ok()) channel_failed(number, outcome.error());
    // What has lost its connection waits for the end of its epoch, which tells why.
    if (!outcome.ok() && outcome.code() != Errc::peer_lost) fail(pull, outcome.error());
    if (pull->failed) fail(pull, *pull->failed);
    for (auto it = channels_.begin(); it != channels_.end();) advance_channel((it++)->first);
  });
}

// Both ends

std::optional<std::uint64_t> TokenActor::find_channel(int peer, bool sends,
                                                      std::uint64_t of_source) const {
  for (const auto& [number, channel] : channels_) {
    if (channel.peer == peer && channel.sends == sends && channel.of_source == of_source)
      return number;
  }
  return std::nullopt;
}

template <class Op>
void TokenActor::connect_channel(std::uint64_t number, const Op& op,
                                 std::span<const std::byte> data) {
  auto& channel = channels_.at(number);
  channel.state = Channel::State::connecting;
  auto deliveries = port().deliveries(channel.epoch);
  const Parts parts(std::span<const TailOperand>(), data);
  then(detail::submit(deliveries, op, parts), [this, number](const Result<void>& outcome) {
    const auto it = channels_.find(number);
    if (it == channels_.end()) return;
    if (!outcome.ok()) return channel_failed(number, outcome.error());
    it->second.state = Channel::State::open;
    advance_channel(number);
  });
}

void TokenActor::advance_channel(std::uint64_t number) {
  const auto it = channels_.find(number);
  if (it == channels_.end() || it->second.waiting.empty()) return;
  auto& channel = it->second;
  // Only now, because what its epoch wants done is refused before this rank has turned to it.
  if (channel.state == Channel::State::begun && !channel.invitation.empty()) {
    connect_channel(number, channel::Join{DType::u8, number}, channel.invitation);
    return send(
        channel.peer,
        {.kind = Kind::joins, .key = {parts_->rank, channel.epoch, 0}, .count = channel.of_source});
  }
  if (channel.state != Channel::State::open || channel.under_way) return;
  if (!channel.sends && receiving_ == kMostReceives) return;
  const auto key = channel.waiting.front();
  channel.waiting.pop_front();
  channel.under_way = key;
  channel.sends ? send_by_channel(number, lendings_.at(key)) : receive_next(number, pulls_.at(key));
}

void TokenActor::end_under_way(std::uint64_t number) {
  if (const auto it = channels_.find(number); it != channels_.end()) it->second.under_way.reset();
}

bool TokenActor::is_under_way(std::uint64_t number, const TransferKey& key) const {
  const auto it = channels_.find(number);
  return it != channels_.end() && it->second.under_way == key;
}

void TokenActor::leave_channel(std::uint64_t number, const TransferKey& key, const Error& error) {
  const auto it = channels_.find(number);
  if (it == channels_.end()) return;
  auto& channel = it->second;
  std::erase(channel.waiting, key);
  const bool lost = channel.state == Channel::State::lost && error.code == Errc::timeout;
  // The other end does its part, or has done it: without this one they are no longer in step.
  if (lost || (channel.under_way == key && !channel.sends)) give_up_channel(number, error, true);
}

void TokenActor::channel_failed(std::uint64_t number, const Error& error) {
  const auto it = channels_.find(number);
  if (it == channels_.end()) return;
  log::debug("net", "the channel {} rank {}: {}", it->second.sends ? "to" : "from", it->second.peer,
             error.to_string());
  // What has befallen a device host ends the epoch, and that ends the transfers.
  it->second.state = Channel::State::lost;
  if (error.code != Errc::peer_lost && !OutcomeLog::is_loss(error.code))
    give_up_channel(number, error, true);
}

void TokenActor::give_up_channel(std::uint64_t number, const Error& error, bool tell) {
  const auto it = channels_.find(number);
  if (it == channels_.end()) return;
  const auto channel = std::move(it->second);
  channels_.erase(it);
  if (!channel.sends) gone_channels_.insert({channel.epoch, channel.peer, channel.of_source});
  auto deliveries = port().deliveries(channel.epoch);
  (void)detail::submit(deliveries, channel::Drop{DType::u8, number});
  const auto lendings = lendings_;
  for (const auto& [key, lending] : lendings) {
    if (lending->channel == number) over(lending, error);
  }
  const auto pulls = pulls_;
  for (const auto& [key, pull] : pulls) {
    if (pull->channel == number) fail(pull, error);
  }
  if (!tell) return;
  const TokenMessage gone{.kind = Kind::channel_gone,
                          .from = parts_->rank,
                          .key = {parts_->rank, channel.epoch, 0},
                          .count = channel.of_source,
                          .value = channel.sends ? 1u : 0u};
  parts_->send(channel.peer, encode(gone, Result<void>(error)));
}

void TokenActor::channel_gone(const TokenPacket& packet) {
  const auto& head = packet.head;
  const bool by_source = head.value != 0;
  const auto outcome = packet.outcome();
  const auto number = find_channel(head.from, !by_source, head.count);
  if (number)
    return give_up_channel(*number, outcome.ok() ? gone(head.from) : outcome.error(), false);
  if (by_source) gone_channels_.insert({head.key.epoch, head.from, head.count});
}

void TokenActor::end_channels() {
  std::erase_if(channels_, [this](const auto& entry) { return entry.second.epoch <= ended_; });
  std::erase_if(gone_channels_, [this](const auto& gone) { return std::get<0>(gone) <= ended_; });
}

}  // namespace troupe::rank_process
