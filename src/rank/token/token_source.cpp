#include <algorithm>

#include "rank/token/token_actor.hpp"

// The source's side of a transfer: lends the range, offers it, streams it if need be.

namespace troupe::rank_process {

using namespace token_message;

TokenActor::LendingPtr TokenActor::lend(const TransferKey& key, int destination,
                                        std::shared_ptr<Loan> loan, std::uint64_t bytes) {
  auto lending = std::make_shared<Lending>();
  lending->key = key;
  lending->destination = destination;
  lending->loan = std::move(loan);
  lending->bytes = bytes;
  lending->progress = context().now();
  lendings_.emplace(key, lending);
  return lending;
}

void TokenActor::make_offer(const LendingPtr& lending,
                            const std::function<void(const Offer&)>& made) {
  const auto location = parts_->device->loans().location(lending->loan);
  lending->progress = context().now();
  lending->offered_copy = location.saved;
  const Offer network{.bytes = lending->bytes};
  if (parts_->path == TokenPath::channel && lending->bytes != 0) {
    return then(location.there, [this, lending, made](const Result<void>& there) {
      if (lending->ended) return;
      there.ok() ? offer_by_channel(lending, made) : over(lending, there);
    });
  }
  if (parts_->path == TokenPath::network || !parts_->fds ||
      !parts_->fds->reaches(lending->destination)) {
    return made(network);
  }
  at_once_or_then(
      location.there, [this, lending, location, network, made](const Result<void>& there) {
        if (!there.ok()) return over(lending, there);
        share(location.where.region, [location, network, made](const SharedSlabs::Id& slab) {
          made(slab.serial == 0
                   ? network
                   : Offer{slab.serial, slab.bytes, location.where.offset, location.where.bytes,
                           location.entry.place, location.entry.version});
        });
      });
}

void TokenActor::share(std::uint32_t region,
                       const std::function<void(const SharedSlabs::Id&)>& shared) {
  forget_dropped();
  if (const auto known = shared_.find(region)) return shared(*known);
  auto promise = std::make_shared<Promise<device_message::SharedSlab>>();
  const auto slab = promise->future();
  parts_->device->tell(device_message::ShareSlab{region, std::move(promise)});
  then(slab, [this, region, shared,
              asked = shared_.now()](const Result<device_message::SharedSlab>& given) {
    if (!given.ok()) return shared({});
    forget_dropped();
    const SharedSlabs::Id id{given->serial, given->bytes};
    if (!shared_.add(region, id, asked)) return share(region, shared);
    parts_->fds->offer(given->serial, given->fd);
    shared(id);
  });
}

void TokenActor::forget_dropped() {
  std::vector<std::uint32_t> regions;
  {
    const std::lock_guard lock(parts_->dropped_mutex);
    regions.swap(parts_->dropped_regions);
  }
  for (const auto region : regions) {
    const auto known = shared_.drop(region);
    if (!known) continue;
    parts_->fds->withdraw(known->serial);
    for (int rank = 0; rank < parts_->size; ++rank) {
      if (rank != parts_->rank && parts_->fds->reaches(rank))
        send(rank, {.kind = Kind::slab_gone, .count = known->serial});
    }
  }
}

void TokenActor::taken(const TransferKey& key, const Result<void>& outcome, bool settled) {
  const auto it = lendings_.find(key);
  if (it == lendings_.end()) return;
  const auto lending = it->second;
  // The other side has ended it already, well or not.
  if (!outcome.ok() || settled) return end_lending(lending);
  const auto location = parts_->device->loans().location(lending->loan);
  if (!location.saved) return over(lending, {});
  if (lending->stream || lending->offered_copy) {  // right if the copy that was read is
    return at_once_or_then(location.there,
                           [this, lending](const Result<void>& there) { over(lending, there); });
  }
  // The range was written while it was read: what was read may be a mixture.
  make_offer(lending, [this, lending](const Offer& offer) {
    if (lending->ended) return;
    send(lending->destination, {.kind = Kind::offer, .key = lending->key, .offer = offer});
  });
}

void TokenActor::over(LendingPtr lending, const Result<void>& outcome) {
  if (lending->ended) return;
  send_outcome(lending->destination, Kind::over, lending->key, outcome);
  end_lending(lending);
  if (!outcome.ok()) leave_channel(lending->channel, lending->key, outcome.error());
  if (!outcome.ok() && lending->key.requester == parts_->rank) {
    // A put that never left.
    auto& box = outbox_[static_cast<std::size_t>(lending->destination)];
    if (std::erase_if(box, [&](const auto& out) { return out.head.key == lending->key; }) != 0) {
      flush(lending->destination);
      answered(lending->key, outcome);
    }
  }
}

void TokenActor::end_lending(LendingPtr lending) {
  if (std::exchange(lending->ended, true)) return;
  leave_channel(lending->channel, lending->key, {});
  parts_->device->loans().end(lending->loan);
  lendings_.erase(lending->key);
}

// Over the network

void TokenActor::start_stream(const TokenMessage& message) {
  const auto it = lendings_.find(message.key);
  if (it == lendings_.end() || it->second->destination != message.from || it->second->stream)
    return;
  const auto lending = it->second;
  auto slots = StreamSlots::make(*parts_->device, lending->bytes);
  if (!slots.ok()) return over(lending, slots.error());
  if (message.count != slots->piece() || message.value == 0 || message.value >= MpiBulk::kStreams)
    return over(lending, Error{Errc::invalid, 0, "the ends of a stream do not agree"});
  lending->stream = std::make_unique<OutStream>();
  lending->stream->slots = std::move(*slots);
  lending->stream->number = message.value;
  for (std::uint32_t slot = 0; slot < kStreamPieces; ++slot) lending->stream->free.push_back(slot);
  pump(lending);
}

void TokenActor::pump(const LendingPtr& lending) {
  auto& stream = *lending->stream;
  lending->progress = context().now();
  while (!lending->ended && stream.credit > 0 && !stream.free.empty() &&
         stream.next < lending->bytes) {
    const auto slot = stream.free.back();
    stream.free.pop_back();
    --stream.credit;
    const auto bytes = std::min(stream.slots.piece(), lending->bytes - stream.next);
    const PieceLabel piece{lending->key, stream.next, bytes};
    const auto read =
        parts_->device->loans().read(lending->loan, stream.next, stream.slots.operand(slot, bytes));
    stream.next += bytes;
    // The lending, and with it the pinned memory, stays until the last of these is done. They come
    // in any order: futures that resolve together are answered by whatever thread gets to them.
    then(read, [this, lending, slot, piece](const Result<void>& there) {
      if (lending->ended) return;
      if (!there.ok()) return over(lending, there);
      Promise<void> sent;
      then(sent.future(), [this, lending, slot](const Result<void>&) {
        lending->stream->free.push_back(slot);
        if (!lending->ended) pump(lending);
      });
      const auto& slots = lending->stream->slots;
      parts_->bulk->send(lending->destination, lending->stream->number, slots.data(slot),
                         slots.label(slot, piece),
                         [lending, sent = std::make_shared<Promise<void>>(std::move(sent))] {
                           sent->resolve({});
                         });
    });
  }
}

}  // namespace troupe::rank_process
