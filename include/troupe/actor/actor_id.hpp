#pragma once

#include <cstdint>

#include <troupe/error.hpp>
#include <troupe/ids.hpp>

namespace troupe {

/// One actor of one ActorSystem, from 1. It stays the same over restarts and is never reused.
using ActorId = StrongId<struct ActorTag, std::uint64_t>;

/// What a watcher is told when an actor has ended: exactly once per watch.
struct Down {
  ActorId id;
  Error reason;  ///< Errc::stopped if it ended as planned, otherwise what it died of
};

}  // namespace troupe
