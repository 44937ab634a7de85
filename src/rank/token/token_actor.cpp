#include "rank/token/token_actor.hpp"

#include <algorithm>

#include <troupe/lib/function.hpp>
#include <troupe/lib/kernel.hpp>

#include "common/core/log.hpp"
#include "common/wire/record.hpp"
#include "rank/token/token_execute.hpp"

// Requests: what this rank asks of others, what others ask of it, and in which order.

namespace troupe::rank_process {

using namespace token_message;

namespace {

/// Submits to this rank's own program order, without ever waiting.
class Guest final : public detail::Submitter {
 public:
  Guest(CommandPort& port, std::uint32_t epoch) : port_(&port), epoch_(epoch) {}
  Future<void> submit(const detail::CommandView& command) override {
    auto quiet = command;
    quiet.quiet = true;  // its failure is the affair of the rank that asked
    quiet.within = epoch_;
    return port_->try_submit(quiet);
  }
  Future<void> refuse(Error error) override { return Future<void>(std::move(error)); }
  Result<detail::ResultCell> result_cell(std::size_t bytes) override {
    return port_->result_cell(bytes);
  }

 private:
  CommandPort* port_;
  std::uint32_t epoch_;
};

/// What a token's operand names on this rank.
Result<Operand> translated(const Operand& named, int rank, const CommandPort& port) {
  if (named.region != (kTokenRegion | static_cast<std::uint32_t>(rank)))
    return Error{Errc::invalid, 0, "an operand is not a buffer of rank " + std::to_string(rank)};
  return port.buffers().translate(named);
}

}  // namespace

Result<Future<void>> submit_named(std::span<const std::byte> record, int rank, DeviceCore& device,
                                  detail::Submitter& submitter) {
  const auto& port = device.port();
  wire::Command command;
  if (auto decoded = command.decode(record); !decoded) return decoded.error();
  const auto& info = command.info();
  if (!info.traits.remote) {
    return Error{Errc::unsupported, 0, std::string(info.name) + " cannot be asked of another rank"};
  }
  alignas(8) std::array<std::byte, OperationInfo::kMaxBytes> here;
  std::memcpy(here.data(), command.op(), info.bytes);
  for (const auto& operand : info.operands) {
    auto& range = info.operand(here.data(), operand);
    if (!range.present()) continue;
    auto named = translated(range, rank, port);
    if (!named) return named.error();
    range = *named;
  }
  std::vector<TailOperand> tail(command.tail().begin(), command.tail().end());
  for (auto& part : tail) {
    auto named = translated(part.range, rank, port);
    if (!named) return named.error();
    part.range = *named;
  }
  const Parts parts{tail, command.parts().data};
  // What the program has made itself stands with its owner under other names.
  const bool repeatable = info.opcode == opcode_of<kernel::RepeatableLaunchThere>;
  if (repeatable || info.opcode == opcode_of<kernel::LaunchThere>)
    return device.launch_for_other(submitter, *reinterpret_cast<const kernel::Launch*>(here.data()),
                                   repeatable, parts);
  if (info.opcode == opcode_of<functions::CallThere>)
    return functions::submit_here(
        submitter, *reinterpret_cast<const functions::CallThere*>(here.data()), parts);
  return detail::submit(submitter, info, std::span(here).first(info.bytes), parts);
}

TokenActor::TokenActor(TokenParts* parts)
    : parts_(parts),
      excluded_(static_cast<std::size_t>(parts->size)),
      inbox_(static_cast<std::size_t>(parts->size)),
      outbox_(static_cast<std::size_t>(parts->size)) {
  parts_->under_way = [this] {
    return !pulls_.empty() || !lendings_.empty() || !requests_.empty();
  };
}

TokenActor::~TokenActor() {
  parts_->under_way = [] { return false; };
}

void TokenActor::on_start() {
  context().schedule(kLookEvery, Look{});
}

void TokenActor::send(int rank, TokenMessage head, std::span<const std::byte> payload) {
  head.from = parts_->rank;
  parts_->send(rank, encode(head, payload));
}

void TokenActor::send_outcome(int rank, Kind kind, const TransferKey& key,
                              const Result<void>& outcome) {
  parts_->send(rank, encode(TokenMessage{.kind = kind, .from = parts_->rank, .key = key}, outcome));
}

// What this rank asks

void TokenActor::request(int owner, const TransferKey& key, Outgoing outgoing) {
  outgoing.head.key = key;
  outbox_[static_cast<std::size_t>(owner)].push_back(std::move(outgoing));
  flush(owner);
}

void TokenActor::flush(int owner) {
  auto& box = outbox_[static_cast<std::size_t>(owner)];
  while (!box.empty() && box.front().ready) {
    send(owner, box.front().head, box.front().payload);
    box.pop_front();
  }
}

std::optional<Error> TokenActor::obstacle(std::uint32_t epoch, int owner) const {
  if (epoch <= ended_) return why_ended_;
  if (excluded_[static_cast<std::size_t>(owner)]) return gone(owner);
  return std::nullopt;
}

void TokenActor::on(Ask ask) {
  if (ask.head.kind == Kind::release) return request(ask.owner, ask.head.key, {ask.head, {}});
  const auto key = next_key(ask.epoch);
  if (const auto error = obstacle(ask.epoch, ask.owner)) {
    if (ask.done) ask.done(key, *error);
    return;
  }
  if (ask.done) requests_.emplace(key, Request{ask.owner, std::move(ask.done)});
  request(ask.owner, key, {ask.head, std::move(ask.payload)});
}

void TokenActor::on(Fetch fetch) {
  const auto key = next_key(fetch.epoch);
  const auto pull = expect(key, fetch.owner, fetch.destination, std::move(fetch.done));
  if (const auto error = obstacle(fetch.epoch, fetch.owner)) return fail(pull, *error);
  request(fetch.owner, key,
          {{.kind = Kind::fetch, .range = fetch.token, .behind = fetch.behind}, {}});
}

void TokenActor::on(Put put) {
  const auto key = next_key(put.epoch);
  const auto owner = put.owner;
  const auto lending = lend(key, owner, put.loan, put.source.bytes);
  requests_.emplace(
      key, Request{owner, [done = std::move(put.done)](
                              const TransferKey&, const Result<void>& outcome) { done(outcome); }});
  if (const auto error = obstacle(put.epoch, owner)) return answered(key, *error);
  // Takes its place among the requests now and leaves when its source is there.
  request(owner, key, {{.kind = Kind::put, .range = put.token, .behind = put.behind}, {}, false});
  at_once_or_then(put.loan->granted, [this, lending, owner, key](const Result<void>& granted) {
    auto& box = outbox_[static_cast<std::size_t>(owner)];
    const auto find = [&box, key] {
      return std::find_if(box.begin(), box.end(), [&](const auto& out) {
        return out.head.kind == Kind::put && out.head.key == key;
      });
    };
    if (find() == box.end()) return;
    if (!granted.ok()) {
      box.erase(find());
      flush(owner);
      return answered(key, granted);
    }
    make_offer(lending, [this, owner, find, &box](const Offer& offer) {
      const auto it = find();
      if (it == box.end()) return;
      it->head.offer = offer;
      it->ready = true;
      flush(owner);
    });
  });
}

void TokenActor::answered(const TransferKey& key, const Result<void>& outcome) {
  if (const auto it = lendings_.find(key); it != lendings_.end()) end_lending(it->second);
  const auto it = requests_.find(key);
  if (it == requests_.end()) return;
  const auto done = std::move(it->second.done);
  requests_.erase(it);
  done(key, outcome);
  own_request_ended(key);
}

// What others ask

void TokenActor::on(FromNetwork message) {
  auto packet = decode_token_message(message.bytes);
  if (!packet.ok()) return log::error("net", "{}", packet.error().to_string());
  const auto& head = packet->head;
  const auto from = static_cast<std::size_t>(head.from);
  if (from >= inbox_.size())
    return log::error("net", "a message of rank {}, which is none", head.from);
  // One that is out may be back in an epoch that this rank has yet to hear of: its requests wait.
  if (excluded_[from] && head.kind > Kind::release) return;
  const auto pull = pulls_.find(head.key);
  const auto lending = lendings_.find(head.key);
  if (pull != pulls_.end()) pull->second->progress = context().now();
  if (lending != lendings_.end()) lending->second->progress = context().now();
  switch (head.kind) {
    case Kind::fetch:
    case Kind::put:
    case Kind::execute:
    case Kind::hold:
    case Kind::release:
      inbox_[from].push_back({std::move(*packet), std::nullopt});
      return advance(head.from);
    case Kind::answer: return answered(head.key, packet->outcome());
    case Kind::offer:
      if (pull != pulls_.end() && pull->second->source == head.from)
        return offered(pull->second, head.offer);
      return send_outcome(head.from, Kind::taken, head.key,
                          Error{Errc::stopped, 0, "nobody waits for it"});
    case Kind::over:
      if (pull == pulls_.end() || pull->second->source != head.from) return;
      if (const auto outcome = packet->outcome(); !outcome.ok())
        return fail(pull->second, outcome.error());
      return finish(pull->second, {});
    case Kind::stream: return start_stream(head);
    case Kind::credit:
      if (lending == lendings_.end() || !lending->second->stream) return;
      lending->second->stream->credit =
          std::min(kStreamPieces, lending->second->stream->credit + head.value);
      return pump(lending->second);
    case Kind::taken: return taken(head.key, packet->outcome(), head.value == 1);
    case Kind::channel: return invitation_came(*packet);
    case Kind::joins: return other_end_joins(head);
    case Kind::ready: return send_next(head);
    case Kind::channel_gone: return channel_gone(*packet);
    case Kind::slab_gone: return unmap({head.from, head.count});
  }
}

void TokenActor::advance(int requester) {
  auto& box = inbox_[static_cast<std::size_t>(requester)];
  while (!box.empty()) {
    // Out of the box first: what is handled may end at once, and then those behind it are next.
    auto front = std::move(box.front());
    box.pop_front();
    if (handle(front.packet)) continue;
    if (!front.blocked_since) front.blocked_since = context().now();
    if (context().now() - *front.blocked_since < parts_->timeout)
      return box.push_front(std::move(front));
    const auto& head = front.packet.head;
    const auto me = "rank " + std::to_string(parts_->rank);
    refuse(head,
           {Errc::timeout, 0,
            head.key.epoch > epoch_ ? me + "'s program has not turned to epoch " +
                                          std::to_string(head.key.epoch) + " (World::wait_active)"
            : head.behind > committed_
                ? me + "'s program has not come to the commit behind which this was asked"
                : "on " + me + " another transfer of " + port().buffers().describe(head.range) +
                      " is in the way for too long"});
  }
}

void TokenActor::advance_all() {
  for (int rank = 0; rank < parts_->size; ++rank) advance(rank);
}

void TokenActor::refuse(const TokenMessage& request, const Error& error) {
  const auto kind = request.kind == Kind::fetch ? Kind::over : Kind::answer;
  if (request.kind != Kind::release) send_outcome(request.from, kind, request.key, error);
}

bool TokenActor::handle(const TokenPacket& packet) {
  const auto& key = packet.head.key;
  const bool used = pulls_.contains(key) || lendings_.contains(key) || holds_.contains(key);
  if (key.requester != packet.head.from || (used && packet.head.kind != Kind::release)) {
    send_outcome(packet.head.from, Kind::answer, key,
                 Error{Errc::invalid, 0, "a request under a number that is not its own"});
    return true;
  }
  if (packet.head.kind != Kind::release) {
    if (key.epoch <= ended_ || key.epoch < epoch_) {
      refuse(packet.head, {Errc::world_reformed, 0,
                           "rank " + std::to_string(parts_->rank) + " has left epoch " +
                               std::to_string(key.epoch) + ", in which this was asked"});
      return true;
    }
    if (key.epoch > epoch_ || packet.head.behind > committed_) return false;
    if (excluded_[static_cast<std::size_t>(packet.head.from)]) {
      refuse(packet.head, gone(parts_->rank));
      return true;
    }
  }
  switch (packet.head.kind) {
    case Kind::fetch: return handle_fetch(packet.head);
    case Kind::put: return handle_put(packet.head);
    case Kind::execute: return handle_execute(packet);
    case Kind::hold: handle_hold(packet.head); return true;
    default: handle_release(packet.head.key); return true;
  }
}

Result<Operand> TokenActor::translate(const Operand& named) const {
  return translated(named, parts_->rank, port());
}

bool TokenActor::handle_fetch(const TokenMessage& message) {
  const auto range = translate(message.range);
  auto loan = range.ok() ? parts_->device->loans().begin(*range)
                         : Result<std::shared_ptr<Loan>>(range.error());
  if (loan.code() == Errc::would_block) return false;
  if (!loan.ok()) {
    refuse(message, loan.error());
    return true;
  }
  const auto lending = lend(message.key, message.from, *loan, range->bytes);
  at_once_or_then((*loan)->granted, [this, lending](const Result<void>& granted) {
    if (lending->ended) return;
    if (!granted.ok()) return over(lending, granted);
    make_offer(lending, [this, lending](const Offer& offer) {
      if (lending->ended) return;
      send(lending->destination, {.kind = Kind::offer, .key = lending->key, .offer = offer});
    });
  });
  return true;
}

bool TokenActor::handle_put(const TokenMessage& message) {
  const auto range = translate(message.range);
  auto expected = range.ok() ? port().transfers().begin_write(*range) : Result<void>(range.error());
  if (expected.ok() && message.offer.bytes != range->bytes) {
    port().transfers().end_write(*range);
    expected =
        Error{Errc::invalid, 0,
              "a put of " + std::to_string(message.offer.bytes) + " bytes into " +
                  std::to_string(range->bytes) + " bytes of " + port().buffers().describe(*range)};
  }
  if (expected.code() == Errc::would_block) return false;
  if (!expected.ok()) {
    refuse(message, expected.error());
    return true;
  }
  const auto pull =
      expect(message.key, message.from, *range,
             [this, key = message.key, to = message.from](const Result<void>& outcome) {
               send_outcome(to, Kind::answer, key, outcome);
             });
  offered(pull, message.offer);
  return true;
}

bool TokenActor::handle_execute(const TokenPacket& packet) {
  Guest guest(port(), packet.head.key.epoch);
  const auto record = record_of(packet, parts_->rank);
  const auto submitted = record.ok() ? submit_named(*record, parts_->rank, *parts_->device, guest)
                                     : Result<Future<void>>(record.error());
  const auto& head = packet.head;
  if (!submitted.ok()) {
    send_outcome(head.from, Kind::answer, head.key, submitted.error());
    return true;
  }
  if (submitted->ready() && submitted->wait().code() == Errc::would_block) return false;
  then(*submitted, [this, to = head.from, key = head.key](const Result<void>& done) {
    send_outcome(to, Kind::answer, key, done);
  });
  return true;
}

void TokenActor::handle_hold(const TokenMessage& message) {
  const auto range = translate(message.range);
  const auto held = range.ok() ? port().buffers().hold(*range) : Result<void>(range.error());
  if (held.ok()) holds_.emplace(message.key, range->buffer);
  send_outcome(message.from, Kind::answer, message.key, held);
}

void TokenActor::handle_release(const TransferKey& key) {
  const auto it = holds_.find(key);
  if (it == holds_.end()) return;
  port().buffers().release(it->second);
  holds_.erase(it);
}

}  // namespace troupe::rank_process
