#pragma once

#include <cstdint>

#include "rank/device/commands/command_port.hpp"
#include "rank/device/flight/flight_collector.hpp"
#include "rank/post/actor_post.hpp"
#include "rank/token/token_client.hpp"
#include "rank/world/collective_check.hpp"

namespace troupe::rank_process {

/// What an epoch's end and begin close and open.
struct StatusParts {
  CommandPort* port = nullptr;
  TokenClient* tokens = nullptr;
  ActorPost* actors = nullptr;
  CollectiveCheck* check = nullptr;      ///< nullptr: collectives are not checked
  FlightCollector* collector = nullptr;  ///< traces commits; nullptr: nobody does
};

}  // namespace troupe::rank_process
