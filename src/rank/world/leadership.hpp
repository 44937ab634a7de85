#pragma once

#include <cstdint>
#include <vector>

#include "rank/protocol/message.hpp"

namespace troupe::rank_process {

struct WorldParts;

/// Says which rank leads (WorldLeader): rank 0, until its process dies; then the lowest rank whose
/// process has not died since the last epoch began. A rank that was started in the place of a dead
/// one tells all others, and follows whoever gives orders. The WorldActor's turns.
class Leadership {
 public:
  explicit Leadership(WorldParts& parts);

  /// This rank may speak to the others now: it tells them that it has joined, if it has.
  void begin();
  void on(const from_rank::Joined& joined);
  /// An order: who gives it leads, and it tells who has died.
  void learn(const from_supervisor::Order& order);
  /// The ranks that have died since an epoch began, but for this one. An epoch begins.
  std::vector<std::int32_t> settle();

 private:
  /// A process of this incarnation is the rank by now. False: it is known.
  bool learn(std::int32_t rank, std::uint32_t incarnation);
  /// The processes of the ranks that have died once or more, as far as is known here.
  [[nodiscard]] std::vector<Incarnation> incarnations() const;
  /// Leads, or follows another rank, if the one that led has died.
  void consider();

  WorldParts& parts_;
  std::vector<bool> settled_;  ///< by rank: its process is in the world, as far as is known here
};

}  // namespace troupe::rank_process
