#include "rank/token/lendings.hpp"

#include <algorithm>

#include "rank/token/routes.hpp"
#include "rank/token/token_actor.hpp"

namespace troupe::rank_process {

LendingPtr Lendings::lend(const TransferKey& key, int destination, std::shared_ptr<Loan> loan,
                          std::uint64_t bytes) {
  auto lending = std::make_shared<Lending>();
  lending->key = key;
  lending->destination = destination;
  lending->loan = std::move(loan);
  lending->bytes = bytes;
  lending->progress = routes_.turn.now();
  lendings_.add(lending);
  return lending;
}

void Lendings::make_offer(const LendingPtr& lending,
                          const std::function<void(const Offer&)>& made) {
  const auto& parts = routes_.turn.parts();
  const auto location = parts.device->loans().location(lending->loan);
  lending->progress = routes_.turn.now();
  lending->offered_copy = location.saved;
  const Offer network{.bytes = lending->bytes};
  if (parts.path == TokenPath::channel && lending->bytes != 0) {
    return routes_.turn.then(location.there, [this, lending, made](const Result<void>& there) {
      if (lending->ended) return;
      if (!there.ok()) return over(lending, there);
      lending->channel = routes_.channels.to(lending->destination, lending->key.epoch);
      made({.bytes = lending->bytes, .channel = lending->channel});
    });
  }
  if (parts.path == TokenPath::network || !parts.fds || !parts.fds->reaches(lending->destination))
    return made(network);
  routes_.turn.at_once_or_then(
      location.there, [this, lending, location, network, made](const Result<void>& there) {
        if (!there.ok()) return over(lending, there);
        const auto shared = [location, network, made](const SharedSlabs::Id& slab) {
          made(slab.serial == 0
                   ? network
                   : Offer{slab.serial, slab.bytes, location.where.offset, location.where.bytes,
                           location.entry.place, location.entry.version});
        };
        routes_.sharing.share(location.where.region, shared);
      });
}

void Lendings::offer(const LendingPtr& lending) {
  make_offer(lending, [this, lending](const Offer& offer) {
    if (lending->ended) return;
    routes_.turn.send(lending->destination, routed::Offered{lending->key, offer});
  });
}

void Lendings::on(int, const routed::Taken& taken) {
  const auto lending = lendings_.find(taken.key);
  if (!lending) return;
  // The other side has ended it already, well or not.
  if (!taken.outcome.ok() || taken.settled) return end(lending);
  const auto location = routes_.turn.device().loans().location(lending->loan);
  if (!location.saved) return over(lending, {});
  if (lending->stream || lending->offered_copy) {  // right if the copy that was read is
    return routes_.turn.at_once_or_then(
        location.there, [this, lending](const Result<void>& there) { over(lending, there); });
  }
  // The range was written while it was read: what was read may be a mixture.
  offer(lending);
}

void Lendings::over(const LendingPtr& lending, const Result<void>& outcome) {
  if (lending->ended) return;
  routes_.turn.send(lending->destination, routed::Over{lending->key, outcome});
  end(lending);
  if (outcome.ok()) return;
  routes_.channels.leave(lending->channel, lending->key, outcome.error());
  if (lending->key.requester == routes_.turn.rank())
    routes_.own.withdraw(lending->key, lending->destination, outcome.error());
}

void Lendings::end(const LendingPtr& lending) {
  if (std::exchange(lending->ended, true)) return;
  routes_.channels.leave(lending->channel, lending->key, {});
  routes_.turn.device().loans().end(lending->loan);
  lendings_.remove(lending->key);
}

// Over the network

void Lendings::on(int from, const routed::Stream& message) {
  const auto lending = lendings_.find(message.key);
  if (!lending || lending->destination != from || lending->stream) return;
  auto slots = StreamSlots::make(routes_.turn.device(), lending->bytes);
  if (!slots.ok()) return over(lending, slots.error());
  if (message.piece_bytes != slots->piece() || message.stream == 0 ||
      message.stream >= Bulk::kStreams)
    return over(lending, Error{Errc::invalid, 0, "the ends of a stream do not agree"});
  lending->stream = std::make_unique<OutStream>();
  lending->stream->slots = std::move(*slots);
  lending->stream->number = message.stream;
  for (std::uint32_t slot = 0; slot < kStreamPieces; ++slot) lending->stream->free.push_back(slot);
  pump(lending);
}

void Lendings::on(int, const routed::Credit& message) {
  const auto lending = lendings_.find(message.key);
  if (!lending || !lending->stream) return;
  auto& credit = lending->stream->credit;
  credit = std::min(kStreamPieces, credit + std::min(kStreamPieces, message.pieces));
  pump(lending);
}

void Lendings::pump(const LendingPtr& lending) {
  auto& stream = *lending->stream;
  lending->progress = routes_.turn.now();
  while (!lending->ended && stream.credit > 0 && !stream.free.empty() &&
         stream.next < lending->bytes) {
    const auto slot = stream.free.back();
    stream.free.pop_back();
    --stream.credit;
    const auto bytes = std::min(stream.slots.piece(), lending->bytes - stream.next);
    const PieceLabel piece{lending->key, stream.next, bytes};
    const auto read = routes_.turn.device().loans().read(lending->loan, stream.next,
                                                         stream.slots.operand(slot, bytes));
    stream.next += bytes;
    // The lending, and with it the pinned memory, stays until the last of these is done. They come
    // in any order: futures that resolve together are answered by whatever thread gets to them.
    routes_.turn.then(read, [this, lending, slot, piece](const Result<void>& there) {
      piece_read(lending, slot, piece, there);
    });
  }
}

void Lendings::piece_read(const LendingPtr& lending, std::uint32_t slot, const PieceLabel& piece,
                          const Result<void>& outcome) {
  if (lending->ended) return;
  if (!outcome.ok()) return over(lending, outcome);
  const auto sent = std::make_shared<Promise<void>>();
  routes_.turn.then(sent->future(), [this, lending, slot](const Result<void>&) {
    lending->stream->free.push_back(slot);
    if (!lending->ended) pump(lending);
  });
  const auto& slots = lending->stream->slots;
  routes_.turn.parts().bulk->send(lending->destination, lending->stream->number, slots.data(slot),
                                  slots.label(slot, piece), [lending, sent] { sent->resolve({}); });
}

// Ends

void Lendings::fail_on_channel(std::uint64_t channel, const Error& error) {
  lendings_.for_each([&](const LendingPtr& lending) {
    if (lending->channel == channel) over(lending, error);
  });
}

void Lendings::fail_of_ended_epochs() {
  const auto& world = routes_.world;
  lendings_.for_each([&](const LendingPtr& lending) {
    if (lending->key.epoch <= world.ended) over(lending, world.why_ended);
  });
}

void Lendings::exclude(int rank) {
  lendings_.for_each([&](const LendingPtr& lending) {
    if (lending->destination == rank) end(lending);
  });
}

void Lendings::look() {
  lendings_.for_each([this](const LendingPtr& lending) {
    if (routes_.turn.now() - lending->progress <= routes_.turn.parts().timeout ||
        routes_.channels.is_under_way(lending->channel, lending->key))
      return;
    over(lending, Error{Errc::timeout, 0,
                        "rank " + std::to_string(lending->destination) + " does not take " +
                            std::to_string(lending->bytes) + " bytes of rank " +
                            std::to_string(routes_.turn.rank())});
  });
}

void Lendings::end_all() {
  lendings_.for_each([this](const LendingPtr& lending) { end(lending); });
}

}  // namespace troupe::rank_process
