#include <thread>

#include "common/core/log.hpp"
#include "rank/token/token_actor.hpp"

// The destination's side of a transfer: maps or asks for a stream, copies, tells the source.

namespace troupe::rank_process {

using namespace token_message;

TokenActor::PullPtr TokenActor::expect(const TransferKey& key, int source,
                                       const Operand& destination, Done done) {
  auto pull = std::make_shared<Pull>();
  pull->key = key;
  pull->source = source;
  pull->destination = destination;
  pull->done = std::move(done);
  pull->progress = context().now();
  pulls_.emplace(key, pull);
  return pull;
}

void TokenActor::offered(PullPtr pull, const Offer& offer) {
  if (pull->copying != 0 || pull->stream || offer.bytes != pull->destination.bytes)
    return fail(pull, {Errc::invalid, 0, "an offer that was not asked for"});
  pull->offer = offer;
  if (offer.bytes == 0) return send_outcome(pull->source, Kind::taken, pull->key, {});
  if (offer.channel != 0) return receive_by_channel(pull);
  if (offer.slab == 0 || parts_->path == TokenPath::network || !parts_->fds) {
    if (parts_->path != TokenPath::peer) return ask_for_stream(pull);
    return fail(pull, {Errc::unsupported, 0, "the rank's memory cannot be reached directly"});
  }
  if (offer.bytes > offer.slab_bytes || offer.offset > offer.slab_bytes - offer.bytes)
    return fail(pull, {Errc::invalid, 0, "an offer beyond the end of its slab"});
  const MappingId id{pull->source, offer.slab};
  map(id, offer.slab_bytes, [this, pull, id](const Result<std::uint32_t>& region) {
    if (pull->failed) return;
    if (region.ok()) return copy(pull, id, *region);
    log::debug("net", "memory of rank {} cannot be mapped: {}", id.first,
               region.error().to_string());
    if (parts_->path == TokenPath::peer) return fail(pull, region.error());
    ask_for_stream(pull);
  });
}

void TokenActor::copy(const PullPtr& pull, const MappingId& id, std::uint32_t region) {
  const Operand from{.region = region, .offset = pull->offer.offset, .bytes = pull->offer.bytes};
  ++mappings_.at(id).users;
  ++pull->copying;
  pull->touched = true;
  auto deliveries = port().deliveries(pull->key.epoch);
  const auto copied = detail::submit(deliveries, memory::Copy{DType::u8, from, pull->destination});
  then(copied, [this, pull, id](const Result<void>& outcome) {
    auto& mapping = mappings_.at(id);
    --mapping.users;
    if (mapping.gone) unmap(id);
    --pull->copying;
    pull->progress = context().now();
    if (pull->failed) return fail(pull, *pull->failed);
    if (outcome.ok()) return all_copied(pull);
    if (outcome.code() == Errc::peer_lost && !std::exchange(pull->remapped, true)) {
      unmap(id);  // the previous device host had mapped it, this one cannot
      return offered(pull, Offer(pull->offer));
    }
    fail(pull, outcome.error());
  });
}

void TokenActor::all_copied(const PullPtr& pull) {
  const auto board = parts_->boards.find(pull->source);
  if (board == parts_->boards.end() ||
      !board->second->take({pull->offer.place, pull->offer.version}))
    return send_outcome(pull->source, Kind::taken, pull->key, {});
  // The answer to a put tells its source as much.
  if (pull->key.requester == parts_->rank)
    send(pull->source, {.kind = Kind::taken, .key = pull->key, .value = 1});
  finish(pull, {});
}

void TokenActor::ask_for_stream(const PullPtr& pull) {
  auto slots = StreamSlots::make(*parts_->device, pull->destination.bytes);
  if (!slots.ok()) return fail(pull, slots.error());
  const auto piece = slots->piece();
  pull->stream = std::make_shared<InStream>(std::move(*slots), pull->key, pull->destination.bytes);
  const auto self = context().self();
  const bool added = parts_->streams.add(
      pull->source, pull->stream,
      [this, self, weak = std::weak_ptr(pull)](std::uint32_t slot, std::uint64_t bytes) {
        const Happened landed{[this, weak, slot, bytes] {
          if (const auto living = weak.lock()) arrived(living, slot, bytes);
        }};
        while (self.tell(landed).code() == Errc::would_block)
          std::this_thread::sleep_for(std::chrono::microseconds(100));
      });
  if (!added) {
    pull->stream.reset();
    return fail(pull, {Errc::would_block, 0, "too many transfers over the network"});
  }
  parts_->bulk->attend(1);
  send(pull->source,
       {.kind = Kind::stream, .key = pull->key, .count = piece, .value = pull->stream->number});
}

void TokenActor::arrived(const PullPtr& pull, std::uint32_t slot, std::uint64_t bytes) {
  if (pull->failed || !pull->stream) return;
  const auto piece = pull->stream->accept(slot, bytes);
  if (!piece.ok()) return fail(pull, piece.error());
  Operand to = pull->destination;
  to.offset += piece->offset;
  to.bytes = piece->bytes;
  ++pull->copying;
  pull->touched = true;
  auto deliveries = port().deliveries(pull->key.epoch);
  const auto copied = detail::submit(
      deliveries, memory::Copy{DType::u8, pull->stream->slots().operand(slot, to.bytes), to});
  then(copied, [this, pull, slot, bytes = to.bytes](const Result<void>& outcome) {
    --pull->copying;
    pull->progress = context().now();
    if (pull->failed) return fail(pull, *pull->failed);
    if (!outcome.ok()) return fail(pull, outcome.error());
    pull->stream->release(slot);
    pull->copied += bytes;
    if (pull->copied == pull->destination.bytes)
      return send_outcome(pull->source, Kind::taken, pull->key, {});
    send(pull->source, {.kind = Kind::credit, .key = pull->key, .value = 1});
  });
}

void TokenActor::fail(PullPtr pull, const Error& error) {
  if (!pull->failed) {
    pull->failed = error;
    send_outcome(pull->source, Kind::taken, pull->key, error);
    leave_channel(pull->channel, pull->key, error);
  }
  if (pull->copying == 0) finish(pull, *pull->failed);
}

void TokenActor::finish(PullPtr pull, const Result<void>& outcome) {
  if (pulls_.erase(pull->key) == 0) return;
  if (pull->stream) {
    parts_->streams.remove(pull->stream->number);
    parts_->bulk->attend(-1);
  }
  if (!outcome.ok() && pull->touched)
    port().transfers().lose(pull->destination, outcome.error(), pull->key.epoch);
  port().transfers().end_write(pull->destination);
  if (!outcome.ok() && !pull->failed) pull->failed = outcome.error();
  pull->done(outcome);
  if (pull->key.requester == parts_->rank) own_request_ended(pull->key);
  advance_all();
}

// Other ranks' slabs

void TokenActor::map(const MappingId& id, std::uint64_t bytes,
                     std::function<void(Result<std::uint32_t>)> mapped) {
  if (const auto it = mappings_.find(id); it != mappings_.end() && !it->second.gone) {
    if (it->second.bytes != bytes)
      return mapped(Error{Errc::invalid, 0, "a slab of another size than before"});
    if (it->second.ready) return mapped(it->second.region);
    it->second.waiting.push_back(std::move(mapped));
    return;
  }
  if (mappings_.contains(id)) return mapped(Error{Errc::stale, 0, "the slab is gone"});
  constexpr std::uint32_t kMaxMappings = 1u << 22;  // a device host has a table of them
  if (next_foreign_ == kMaxMappings)
    return mapped(Error{Errc::out_of_memory, 0, "too many slabs of other ranks were mapped"});
  auto fd = parts_->fds->take(id.first, id.second);
  if (!fd.ok()) return mapped(fd.error());
  const auto region = kForeignRegion | next_foreign_++;  // never used again
  auto& mapping = mappings_[id];
  mapping.region = region;
  mapping.bytes = bytes;
  mapping.waiting.push_back(std::move(mapped));
  auto promise = std::make_shared<Promise<void>>();
  const auto there = promise->future();
  parts_->device->tell(device_message::MapForeign{
      region, std::make_shared<UniqueFd>(std::move(*fd)), bytes, std::move(promise)});
  then(there, [this, id](const Result<void>& outcome) {
    auto& made = mappings_.at(id);
    made.ready = true;
    const auto waiting = std::exchange(made.waiting, {});
    const Result<std::uint32_t> answer =
        outcome.ok() ? Result<std::uint32_t>(made.region) : Result<std::uint32_t>(outcome.error());
    if (!outcome.ok()) mappings_.erase(id);
    for (const auto& tell : waiting) tell(answer);
    if (const auto it = mappings_.find(id); it != mappings_.end() && it->second.gone) unmap(id);
  });
}

void TokenActor::unmap(const MappingId& id) {
  const auto it = mappings_.find(id);
  if (it == mappings_.end()) return;
  it->second.gone = true;
  if (!it->second.ready || it->second.users != 0) return;  // comes back here
  parts_->device->tell(device_message::DropRegion{it->second.region});
  mappings_.erase(it);
}

}  // namespace troupe::rank_process
