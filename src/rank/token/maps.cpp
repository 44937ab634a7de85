#include "rank/token/maps.hpp"

#include "rank/token/routes.hpp"
#include "rank/token/token_actor.hpp"

namespace troupe::rank_process {

using namespace token_message;

void Maps::on(Map map) {
  const auto& parts = routes_.turn.parts();
  const bool direct = parts.path == TokenPath::peer || parts.path == TokenPath::peer_or_network;
  if (!direct || !parts.fds || !parts.fds->reaches(map.owner)) {
    return map.done({}, Error{Errc::unsupported, 0,
                              "the memory of rank " + std::to_string(map.owner) +
                                  (direct ? " cannot be reached from here"
                                          : " is not mapped: --token-path says otherwise")});
  }
  routes_.own.on(
      Ask{map.epoch, map.owner, routed::Map{{}, map.behind, map.token},
          [this, done = std::move(map.done)](const TransferKey& key, const Result<void>& outcome) {
            const auto found = mapped_.extract(key);
            if (!outcome.ok()) return done(key, outcome.error());
            if (found) return done(key, found.mapped());
            done(key, Error{Errc::invalid, 0, "its owner does not say where it is"});
          }});
}

void Maps::refuse(int owner, const TransferKey& key, const Error& error) {
  routes_.own.on(Release{owner, key});
  routes_.own.on(owner, routed::Answer{key, error});
}

void Maps::on(int from, const routed::Located& located) {
  const auto& [key, offer] = located;
  if (!routes_.own.waits_for(key, from)) return routes_.own.on(Release{from, key});
  if (offer.bytes > offer.slab_bytes || offer.offset > offer.slab_bytes - offer.bytes)
    return refuse(from, key, {Errc::invalid, 0, "a buffer beyond the end of its slab"});
  const ForeignSlabs::Id id{from, offer.slab};
  routes_.foreign.map(
      id, offer.slab_bytes,
      [this, from, key = key, offer = offer, id](const Result<std::uint32_t>& region) {
        if (!routes_.own.waits_for(key, from)) return routes_.own.on(Release{from, key});
        if (!region.ok()) return refuse(from, key, region.error());
        routes_.foreign.begin_use(id);
        mapped_[key] = {id, {.region = *region, .offset = offer.offset, .bytes = offer.bytes}};
        routes_.own.on(from, routed::Answer{key, {}});
      });
}

void Maps::on(const Unmap& unmap) {
  const auto ended = routes_.turn.port().outcomes().fence().reached;
  routes_.turn.then(ended, [this, unmap](const Result<void>&) {
    routes_.foreign.end_use(unmap.slab);
    routes_.own.on(Release{unmap.owner, unmap.key});
  });
}

}  // namespace troupe::rank_process
