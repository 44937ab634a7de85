#pragma once

#include <troupe/collectives.hpp>

namespace troupe {

/// Some of the world's ranks, with a communicator of their own: what Collectives::split makes. A
/// group may be split in turn.
///
/// Groups live in the world's epochs: they are formed again with it, and a rank that the world goes
/// on without (--on-loss shrink) is missing in its groups too, until it is back. Groups that all
/// others have let go meanwhile are gone then: such a group has no ranks, its collectives fail with
/// Errc::stale, and what exchanges host data throws that. A value: copies are the same group. Its
/// communicator is freed once all of its ranks have let go of all copies, with the next split of a
/// communicator that has all of them, or the next re-formation.
class Group : public Collectives {
 public:
  /// An empty one, which belongs to no world: its collectives throw Exception (invalid). Those of
  /// an empty group that split() makes fail with it.
  Group() : Collectives(nullptr, nullptr) {}
  [[nodiscard]] explicit operator bool() const noexcept { return group_ != nullptr; }

  /// As split() makes it.
  using Collectives::Collectives;
};

}  // namespace troupe
