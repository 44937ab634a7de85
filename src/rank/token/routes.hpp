#pragma once

#include "rank/token/channels.hpp"
#include "rank/token/foreign_slabs.hpp"
#include "rank/token/lendings.hpp"
#include "rank/token/maps.hpp"
#include "rank/token/others_requests.hpp"
#include "rank/token/own_requests.hpp"
#include "rank/token/pulls.hpp"
#include "rank/token/slab_sharing.hpp"
#include "rank/token/token_turn.hpp"

namespace troupe::rank_process {

/// The parts of a TokenActor. They call each other by this; what they hold is their own.
struct Routes {
  Routes(TokenParts& parts, Context<TokenActor> context)
      : turn(parts, context),
        world(parts.size),
        sharing(turn),
        foreign(turn),
        own(*this),
        others(*this),
        maps(*this),
        pulls(*this),
        lendings(*this),
        channels(*this) {}

  TokenTurn turn;
  TokenWorld world;
  SlabSharing sharing;    ///< slabs of this rank that others map
  ForeignSlabs foreign;   ///< slabs of others that this rank maps
  OwnRequests own;        ///< what this rank asks of others
  OthersRequests others;  ///< what others ask of this rank
  Maps maps;              ///< buffers of others that this rank's commands read
  Pulls pulls;            ///< transfers to this rank
  Lendings lendings;      ///< transfers from this rank
  Channels channels;      ///< the way of some of them
};

}  // namespace troupe::rank_process
