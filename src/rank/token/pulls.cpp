#include "rank/token/pulls.hpp"

#include <troupe/actor/patient_tell.hpp>

#include "common/core/log.hpp"
#include "rank/token/routes.hpp"
#include "rank/token/token_actor.hpp"

namespace troupe::rank_process {
namespace {

/// Bytes a second: a channel that is slower is taken for broken, after the timeout.
constexpr std::uint64_t kSlowestChannel = 64u << 20;

}  // namespace

PullPtr Pulls::expect(const TransferKey& key, int source, const Operand& destination, Done done) {
  auto pull = std::make_shared<Pull>();
  pull->key = key;
  pull->source = source;
  pull->destination = destination;
  pull->done = std::move(done);
  pull->progress = routes_.turn.now();
  pulls_.add(pull);
  return pull;
}

void Pulls::on(int from, const routed::Offered& message) {
  const auto pull = pulls_.find(message.key);
  if (pull && pull->source == from) return offered(pull, message.offer);
  routes_.turn.send(from,
                    routed::Taken{message.key, Error{Errc::stopped, 0, "nobody waits for it"}});
}

void Pulls::on(int from, const routed::Over& over) {
  const auto pull = pulls_.find(over.key);
  if (!pull || pull->source != from) return;
  if (!over.outcome.ok()) return fail(pull, over.outcome.error());
  finish(pull, {});
}

void Pulls::offered(const PullPtr& pull, const Offer& offer) {
  const auto& parts = routes_.turn.parts();
  if (pull->copying != 0 || pull->stream || offer.bytes != pull->destination.bytes)
    return fail(pull, {Errc::invalid, 0, "an offer that was not asked for"});
  pull->offer = offer;
  if (offer.bytes == 0) return tell_taken(pull, {});
  if (offer.channel != 0) return routes_.channels.receive(pull);
  if (offer.slab == 0 || parts.path == TokenPath::network || !parts.fds) {
    if (parts.path != TokenPath::peer) return ask_for_stream(pull);
    return fail(pull, {Errc::unsupported, 0, "the rank's memory cannot be reached directly"});
  }
  if (offer.bytes > offer.slab_bytes || offer.offset > offer.slab_bytes - offer.bytes)
    return fail(pull, {Errc::invalid, 0, "an offer beyond the end of its slab"});
  const ForeignSlabs::Id id{pull->source, offer.slab};
  routes_.foreign.map(id, offer.slab_bytes, [this, pull, id](const Result<std::uint32_t>& region) {
    if (pull->failed) return;
    if (region.ok()) return copy(pull, id, *region);
    log::debug("net", "memory of rank {} cannot be mapped: {}", id.first,
               region.error().to_string());
    if (routes_.turn.parts().path == TokenPath::peer) return fail(pull, region.error());
    ask_for_stream(pull);
  });
}

void Pulls::copy(const PullPtr& pull, const ForeignSlabs::Id& id, std::uint32_t region) {
  const Operand from{.region = region, .offset = pull->offer.offset, .bytes = pull->offer.bytes};
  routes_.foreign.begin_use(id);
  ++pull->copying;
  pull->touched = true;
  auto deliveries = routes_.turn.port().deliveries(pull->key.epoch);
  const auto there = detail::submit(deliveries, memory::Copy{DType::u8, from, pull->destination});
  routes_.turn.then(there,
                    [this, pull, id](const Result<void>& outcome) { copied(pull, id, outcome); });
}

void Pulls::copied(const PullPtr& pull, const ForeignSlabs::Id& id, const Result<void>& outcome) {
  routes_.foreign.end_use(id);
  --pull->copying;
  pull->progress = routes_.turn.now();
  if (pull->failed) return fail(pull, *pull->failed);
  if (outcome.ok()) return all_copied(pull);
  if (outcome.code() == Errc::peer_lost && !std::exchange(pull->remapped, true)) {
    routes_.foreign.unmap(id);  // the previous device host had mapped it, this one cannot
    return offered(pull, Offer(pull->offer));
  }
  fail(pull, outcome.error());
}

void Pulls::all_copied(const PullPtr& pull) {
  const auto& boards = routes_.turn.parts().boards;
  const auto board = boards.find(pull->source);
  if (board == boards.end() || !board->second->take({pull->offer.place, pull->offer.version}))
    return tell_taken(pull, {});
  finish(pull, {});
  // The answer to a put tells its source as much.
  if (pull->key.requester == routes_.turn.rank()) tell_taken(pull, {}, true);
}

void Pulls::tell_taken(const PullPtr& pull, const Result<void>& outcome, bool settled) {
  routes_.turn.send(pull->source, routed::Taken{pull->key, outcome, settled});
}

void Pulls::ask_for_stream(const PullPtr& pull) {
  auto& parts = routes_.turn.parts();
  auto slots = StreamSlots::make(*parts.device, pull->destination.bytes);
  if (!slots.ok()) return fail(pull, slots.error());
  const auto piece = slots->piece();
  pull->stream = std::make_shared<InStream>(std::move(*slots), pull->key, pull->destination.bytes);
  const bool added =
      parts.streams.add(pull->source, pull->stream,
                        [this, self = routes_.turn.self(), weak = std::weak_ptr(pull)](
                            std::uint32_t slot, std::uint64_t bytes) {
                          const token_message::Happened landed{[this, weak, slot, bytes] {
                            if (const auto living = weak.lock()) arrived(living, slot, bytes);
                          }};
                          (void)tell_patiently(self, landed);
                        });
  if (!added) {
    pull->stream.reset();
    return fail(pull, {Errc::would_block, 0, "too many transfers over the network"});
  }
  parts.bulk->attend(1);
  routes_.turn.send(pull->source, routed::Stream{pull->key, pull->stream->number, piece});
}

void Pulls::arrived(const PullPtr& pull, std::uint32_t slot, std::uint64_t bytes) {
  if (pull->failed || !pull->stream) return;
  const auto piece = pull->stream->accept(slot, bytes);
  if (!piece.ok()) return fail(pull, piece.error());
  Operand to = pull->destination;
  to.offset += piece->offset;
  to.bytes = piece->bytes;
  ++pull->copying;
  pull->touched = true;
  auto deliveries = routes_.turn.port().deliveries(pull->key.epoch);
  const auto there = detail::submit(
      deliveries, memory::Copy{DType::u8, pull->stream->slots().operand(slot, to.bytes), to});
  routes_.turn.then(there, [this, pull, slot, bytes = to.bytes](const Result<void>& outcome) {
    --pull->copying;
    pull->progress = routes_.turn.now();
    if (pull->failed) return fail(pull, *pull->failed);
    if (!outcome.ok()) return fail(pull, outcome.error());
    pull->stream->release(slot);
    pull->copied += bytes;
    if (pull->copied == pull->destination.bytes) return tell_taken(pull, {});
    routes_.turn.send(pull->source, routed::Credit{pull->key, 1});
  });
}

void Pulls::fail(const PullPtr& pull, const Error& error) {
  if (!pull->failed) {
    pull->failed = error;
    tell_taken(pull, error);
    routes_.channels.leave(pull->channel, pull->key, error);
  }
  if (pull->copying == 0) finish(pull, *pull->failed);
}

void Pulls::finish(const PullPtr& pull, const Result<void>& outcome) {
  if (!pulls_.remove(pull->key)) return;
  auto& parts = routes_.turn.parts();
  if (pull->stream) {
    parts.streams.remove(pull->stream->number);
    parts.bulk->attend(-1);
  }
  auto& transfers = routes_.turn.port().transfers();
  if (!outcome.ok() && pull->touched)
    transfers.lose(pull->destination, outcome.error(), pull->key.epoch);
  transfers.end_write(pull->destination);
  if (!outcome.ok() && !pull->failed) pull->failed = outcome.error();
  pull->done(outcome);
  if (pull->key.requester == parts.rank) routes_.own.fetched(pull->key);
  routes_.others.advance_all();
}

void Pulls::fail_on_channel(std::uint64_t channel, const Error& error) {
  pulls_.for_each([&](const PullPtr& pull) {
    if (pull->channel == channel) fail(pull, error);
  });
}

void Pulls::fail_of_ended_epochs() {
  const auto& world = routes_.world;
  pulls_.for_each([&](const PullPtr& pull) {
    if (pull->key.epoch <= world.ended) fail(pull, world.why_ended);
  });
}

void Pulls::exclude(int rank) {
  pulls_.for_each([&](const PullPtr& pull) {
    if (pull->source == rank) fail(pull, TokenWorld::gone(rank));
  });
}

void Pulls::look() {
  pulls_.for_each([this](const PullPtr& pull) {
    // Nothing is heard of what a channel brings before it is there.
    const bool received = routes_.channels.is_under_way(pull->channel, pull->key);
    const std::chrono::seconds more(received ? pull->destination.bytes / kSlowestChannel : 0);
    const bool late = routes_.turn.now() - (pull->progress + more) > routes_.turn.parts().timeout;
    if (!late || (pull->copying != 0 && !received)) return;
    fail(pull,
         {Errc::timeout, 0,
          "a transfer of " + std::to_string(pull->destination.bytes) + " bytes from rank " +
              std::to_string(pull->source) + " into " +
              routes_.turn.port().buffers().describe(pull->destination) + " makes no progress"});
  });
}

void Pulls::end_all(const Error& error) {
  pulls_.for_each([&](const PullPtr& pull) {
    pull->copying = 0;  // nobody will hear of them
    fail(pull, error);
  });
}

}  // namespace troupe::rank_process
