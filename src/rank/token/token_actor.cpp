#include "rank/token/token_actor.hpp"

#include <algorithm>

#include "common/core/log.hpp"

namespace troupe::rank_process {

using namespace token_message;

namespace {

constexpr auto kLookEvery = std::chrono::milliseconds(50);

template <class Part, class M>
concept Hears = requires(Part& part, M message) {
  part.on(0, std::move(message));
};

}  // namespace

TokenActor::~TokenActor() {
  parts_->under_way = [] { return false; };
}

void TokenActor::on_start() {
  routes_ = std::make_unique<Routes>(*parts_, context());
  parts_->under_way = [routes = routes_.get()] {
    return !routes->pulls.empty() || !routes->lendings.empty() || !routes->own.empty();
  };
  context().schedule(kLookEvery, Look{});
}

void TokenActor::on(const FromNetwork& message) {
  auto packet = decode_token_message(message.bytes);
  if (!packet.ok()) return log::error("net", "{}", packet.error().to_string());
  if (packet->from < 0 || packet->from >= parts_->size)
    return log::error("net", "a message of rank {}, which is none", packet->from);
  hear(packet->from, std::move(packet->message));
}

void TokenActor::hear(int from, TokenMessage message) {
  std::visit(
      [&]<class M>(M& said) {
        // One that is out may be back in an epoch that this rank has yet to hear of: its requests
        // wait.
        if (!kIsRequest<M> && routes_->world.is_out(from)) return;
        if constexpr (requires { said.key; }) {
          if (const auto pull = routes_->pulls.find(said.key)) pull->progress = context().now();
          if (const auto lending = routes_->lendings.find(said.key))
            lending->progress = context().now();
        }
        const auto give_to = [&]<class Part>(Part& part) {
          if constexpr (Hears<Part, M>) part.on(from, std::move(said));
        };
        give_to(routes_->others);
        give_to(routes_->own);
        give_to(routes_->maps);
        give_to(routes_->pulls);
        give_to(routes_->lendings);
        give_to(routes_->channels);
        give_to(routes_->foreign);
        constexpr int hearers = Hears<OthersRequests, M> + Hears<OwnRequests, M> + Hears<Maps, M> +
                                Hears<Pulls, M> + Hears<Lendings, M> + Hears<Channels, M> +
                                Hears<ForeignSlabs, M>;
        static_assert(hearers == 1, "a message that no part, or more than one, has an on() for");
      },
      message);
}

// What ends requests and transfers beside themselves: the epoch, a rank that leaves the world,
// time, the runtime.

void TokenActor::on(const EpochBegun& begun) {
  auto& world = routes_->world;
  if (begun.epoch <= world.epoch) return;
  world.epoch = begun.epoch;
  world.committed = 0;
  routes_->others.advance_all();
}

void TokenActor::on(const Committed& committed) {
  if (committed.epoch != routes_->world.epoch) return;
  routes_->world.committed = committed.number;
  routes_->others.advance_all();
}

void TokenActor::on(const EpochEnded& ended) {
  auto& world = routes_->world;
  if (ended.epoch <= world.ended) return;
  world.ended = ended.epoch;
  world.why_ended = ended.why;
  routes_->channels.forget_ended_epochs();
  routes_->lendings.fail_of_ended_epochs();
  routes_->pulls.fail_of_ended_epochs();
  routes_->others.advance_all();
  // Otherwise their owners answer: what they have done they have done.
  if (world.ended == kNoMoreEpochs) routes_->own.end_all(world.why_ended);
}

void TokenActor::on(const SetExcluded& set) {
  const auto is_out = [&](int rank) {
    return std::find(set.ranks.begin(), set.ranks.end(), rank) != set.ranks.end();
  };
  const bool alone = is_out(parts_->rank);  // out of the world itself
  for (int rank = 0; rank < parts_->size; ++rank) {
    const bool out = rank != parts_->rank && (alone || is_out(rank));
    const bool was_out = routes_->world.is_out(rank);
    routes_->world.excluded[static_cast<std::size_t>(rank)] = out;
    if (out && !was_out) exclude(rank);
  }
}

void TokenActor::on(const Forget& set) {
  for (const int rank : set.ranks) {
    exclude(rank);
    parts_->boards.erase(rank);  // its loans are settled by messages from now on
    parts_->forget(rank);
  }
}

void TokenActor::exclude(int rank) {
  routes_->others.exclude(rank);
  routes_->pulls.exclude(rank);
  routes_->lendings.exclude(rank);
  routes_->channels.exclude(rank);
  routes_->own.exclude(rank);
  routes_->foreign.unmap_all_of(rank);
}

void TokenActor::on(Look) {
  context().schedule(kLookEvery, Look{});
  routes_->others.advance_all();
  routes_->pulls.look();
  routes_->lendings.look();
}

bool TokenActor::on(End) {
  const Error ended{Errc::stopped, 0, "the runtime has ended"};
  routes_->channels.forget_all();
  routes_->lendings.end_all();
  routes_->pulls.end_all(ended);
  routes_->own.end_all(ended);
  routes_->others.release_all();
  return true;
}

}  // namespace troupe::rank_process
