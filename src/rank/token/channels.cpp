#include "rank/token/channels.hpp"

#include <algorithm>
#include <cstring>

#include <troupe/lib/channel.hpp>

#include "common/core/log.hpp"
#include "rank/token/routes.hpp"
#include "rank/token/token_actor.hpp"

namespace troupe::rank_process {
namespace {

/// A receive occupies part of the GPU until its data have come: more of them wait here.
constexpr std::size_t kMostReceives = 8;

}  // namespace

std::uint64_t Channels::add(Channel channel) {
  const auto number = next_++;
  if (channel.sends) channel.of_source = number;
  channels_.emplace(number, std::move(channel));
  return number;
}

Channels::Channel* Channels::at(std::uint64_t number) {
  const auto it = channels_.find(number);
  return it == channels_.end() ? nullptr : &it->second;
}

// The source's end

std::uint64_t Channels::to(int destination, std::uint32_t epoch) {
  for (const auto& [number, channel] : channels_) {
    if (channel.sends && channel.peer == destination && channel.epoch == epoch &&
        channel.state != Channel::State::lost)
      return number;
  }
  const auto number = add({.peer = destination, .sends = true, .epoch = epoch});
  auto& port = routes_.turn.port();
  const auto cell = port.result_cell(sizeof(channel::Invitation));
  auto deliveries = port.deliveries(epoch);
  const auto invited =
      cell.ok() ? detail::submit(deliveries, channel::Invite{DType::u8, number, cell->where})
                : Future<void>(Result<void>(cell.error()));
  routes_.turn.then(invited, [this, number, cell](const Result<void>& outcome) {
    const auto* const channel = at(number);
    if (channel == nullptr) return;
    if (!outcome.ok()) return failed(number, outcome.error());
    channel::Invitation invitation;
    std::memcpy(&invitation, cell->data, sizeof invitation);
    const auto bytes = std::span(invitation.bytes).first(invitation.length);
    routes_.turn.send(channel->peer,
                      routed::Invited{channel->epoch, number, {bytes.begin(), bytes.end()}});
  });
  return number;
}

/// Not before: what it invites to may never have anything to carry, and the command would wait.
void Channels::on(int from, const routed::Joins& joins) {
  const auto* const channel = at(joins.channel);
  const bool invites = channel != nullptr && channel->sends && channel->peer == from;
  if (!invites || channel->state != Channel::State::begun) return;
  connect(joins.channel, channel::Connect{DType::u8, joins.channel});
}

void Channels::on(int from, const routed::Ready& ready) {
  auto* const channel = at(ready.channel);
  if (channel == nullptr || !channel->sends || channel->peer != from) return;
  const auto lending = routes_.lendings.find(ready.key);
  if (!lending || lending->channel != ready.channel)
    return give_up(ready.channel, {Errc::stopped, 0, "a transfer has ended"}, true);
  channel->waiting.push_back(ready.key);
  advance(ready.channel);
}

void Channels::send_next(std::uint64_t number, const LendingPtr& lending) {
  const auto& loans = routes_.turn.device().loans();
  const auto location = loans.location(lending->loan);
  lending->offered_copy = location.saved && location.there.ready() && location.there.wait().ok();
  const auto sent = loans.read_whole(lending->loan, [&](const Operand& range) {
    auto deliveries = routes_.turn.port().deliveries(lending->key.epoch);
    return detail::submit(deliveries, channel::Send{DType::u8, number, range});
  });
  routes_.turn.then(sent, [this, number, lending](const Result<void>& outcome) {
    lending->progress = routes_.turn.now();
    end_under_way(number);
    if (!outcome.ok()) failed(number, outcome.error());
    advance(number);
  });
}

// The destination's end

void Channels::receive(const PullPtr& pull) {
  const auto of_source = pull->offer.channel;
  if (gone_.contains({pull->key.epoch, pull->source, of_source}))
    return routes_.pulls.fail(pull, {Errc::library, 0, "the channel of the transfer is given up"});
  pull->channel = from(pull->source, pull->key.epoch, of_source);
  ++pull->copying;
  auto deliveries = routes_.turn.port().deliveries(pull->key.epoch);
  routes_.turn.then(detail::submit(deliveries, channel::Settle{DType::u8, pull->destination}),
                    [this, pull](const Result<void>& outcome) {
                      --pull->copying;
                      pull->progress = routes_.turn.now();
                      if (pull->failed) return routes_.pulls.fail(pull, *pull->failed);
                      if (!outcome.ok()) return routes_.pulls.fail(pull, outcome.error());
                      channels_.at(pull->channel).waiting.push_back(pull->key);
                      advance(pull->channel);
                    });
}

std::uint64_t Channels::from(int source, std::uint32_t epoch, std::uint64_t of_source) {
  const auto known = find(source, false, of_source);
  return known ? *known : add({.peer = source, .epoch = epoch, .of_source = of_source});
}

void Channels::on(int source, const routed::Invited& invited) {
  if (invited.epoch <= routes_.world.ended ||
      gone_.contains({invited.epoch, source, invited.channel}))
    return;
  const auto number = from(source, invited.epoch, invited.channel);
  channels_.at(number).invitation = invited.invitation;
  advance(number);
}

void Channels::receive_next(std::uint64_t number, const PullPtr& pull) {
  ++receiving_;
  ++pull->copying;
  pull->touched = true;
  pull->progress = routes_.turn.now();
  auto deliveries = routes_.turn.port().deliveries(pull->key.epoch);
  const auto received =
      detail::submit(deliveries, channel::Receive{DType::u8, number, pull->destination});
  routes_.turn.send(pull->source, routed::Ready{pull->key, pull->offer.channel});
  routes_.turn.then(received, [this, number, pull](const Result<void>& outcome) {
    --receiving_;
    --pull->copying;
    pull->progress = routes_.turn.now();
    end_under_way(number);
    if (outcome.ok() && !pull->failed)
      routes_.turn.send(pull->source, routed::Taken{pull->key, {}});
    if (!outcome.ok()) failed(number, outcome.error());
    // What has lost its connection waits for the end of its epoch, which tells why.
    if (!outcome.ok() && outcome.code() != Errc::peer_lost)
      routes_.pulls.fail(pull, outcome.error());
    if (pull->failed) routes_.pulls.fail(pull, *pull->failed);
    for (auto it = channels_.begin(); it != channels_.end();) advance((it++)->first);
  });
}

// Both ends

std::optional<std::uint64_t> Channels::find(int peer, bool sends, std::uint64_t of_source) const {
  for (const auto& [number, channel] : channels_) {
    if (channel.peer == peer && channel.sends == sends && channel.of_source == of_source)
      return number;
  }
  return std::nullopt;
}

template <class Op>
void Channels::connect(std::uint64_t number, const Op& op, std::span<const std::byte> data) {
  auto& channel = channels_.at(number);
  channel.state = Channel::State::connecting;
  auto deliveries = routes_.turn.port().deliveries(channel.epoch);
  const Parts parts(std::span<const TailOperand>(), data);
  routes_.turn.then(detail::submit(deliveries, op, parts),
                    [this, number](const Result<void>& outcome) {
                      auto* const connected = at(number);
                      if (connected == nullptr) return;
                      if (!outcome.ok()) return failed(number, outcome.error());
                      connected->state = Channel::State::open;
                      advance(number);
                    });
}

void Channels::advance(std::uint64_t number) {
  auto* const channel = at(number);
  if (channel == nullptr || channel->waiting.empty()) return;
  // Only now, because what its epoch wants done is refused before this rank has turned to it.
  if (channel->state == Channel::State::begun && !channel->invitation.empty()) {
    connect(number, channel::Join{DType::u8, number}, channel->invitation);
    return routes_.turn.send(channel->peer, routed::Joins{channel->of_source});
  }
  if (channel->state != Channel::State::open || channel->under_way) return;
  if (!channel->sends && receiving_ == kMostReceives) return;
  const auto key = channel->waiting.front();
  channel->waiting.pop_front();
  channel->under_way = key;
  if (channel->sends) {
    send_next(number, routes_.lendings.find(key));
  } else {
    receive_next(number, routes_.pulls.find(key));
  }
}

void Channels::end_under_way(std::uint64_t number) {
  if (auto* const channel = at(number)) channel->under_way.reset();
}

bool Channels::is_under_way(std::uint64_t number, const TransferKey& key) const {
  const auto it = channels_.find(number);
  return it != channels_.end() && it->second.under_way == key;
}

void Channels::leave(std::uint64_t number, const TransferKey& key, const Error& error) {
  auto* const channel = at(number);
  if (channel == nullptr) return;
  std::erase(channel->waiting, key);
  const bool lost = channel->state == Channel::State::lost && error.code == Errc::timeout;
  // The other end does its part, or has done it: without this one they are no longer in step.
  if (lost || (channel->under_way == key && !channel->sends)) give_up(number, error, true);
}

void Channels::failed(std::uint64_t number, const Error& error) {
  auto* const channel = at(number);
  if (channel == nullptr) return;
  log::debug("net", "the channel {} rank {}: {}", channel->sends ? "to" : "from", channel->peer,
             error.to_string());
  // What has befallen a device host ends the epoch, and that ends the transfers.
  channel->state = Channel::State::lost;
  if (error.code != Errc::peer_lost && !OutcomeLog::is_loss(error.code))
    give_up(number, error, true);
}

void Channels::give_up(std::uint64_t number, const Error& error, bool tell) {
  const auto it = channels_.find(number);
  if (it == channels_.end()) return;
  const auto channel = std::move(it->second);
  channels_.erase(it);
  if (!channel.sends) gone_.insert({channel.epoch, channel.peer, channel.of_source});
  auto deliveries = routes_.turn.port().deliveries(channel.epoch);
  (void)detail::submit(deliveries, channel::Drop{DType::u8, number});
  routes_.lendings.fail_on_channel(number, error);
  routes_.pulls.fail_on_channel(number, error);
  if (!tell) return;
  routes_.turn.send(channel.peer,
                    routed::ChannelGone{channel.epoch, channel.of_source, channel.sends, error});
}

void Channels::on(int from, const routed::ChannelGone& gone) {
  const auto number = find(from, !gone.by_source, gone.channel);
  if (number) return give_up(*number, gone.why, false);
  if (gone.by_source) gone_.insert({gone.epoch, from, gone.channel});
}

void Channels::exclude(int rank) {
  std::vector<std::uint64_t> its;
  for (const auto& [number, channel] : channels_) {
    if (channel.peer == rank) its.push_back(number);
  }
  for (const auto number : its) give_up(number, TokenWorld::gone(rank), false);
}

void Channels::forget_ended_epochs() {
  const auto ended = routes_.world.ended;
  std::erase_if(channels_, [ended](const auto& entry) { return entry.second.epoch <= ended; });
  std::erase_if(gone_, [ended](const auto& gone) { return std::get<0>(gone) <= ended; });
}

}  // namespace troupe::rank_process
