#pragma once

#include <vector>

#include "rank/protocol/leadership.hpp"

namespace troupe::rank_process {

struct WorldParts;

/// Carries out what a rank's Leadership decides: on the session's knowledge of processes, on the
/// status, and on the WorldLeader. The WorldActor's turns.
class Leading final : public Leadership::Actions {
 public:
  explicit Leading(WorldParts& parts) : parts_(parts) {}

  [[nodiscard]] std::uint32_t incarnation_of(int rank) const override;
  bool learn(int rank, std::uint32_t incarnation) override;
  void died(const from_rank::Joined& joined) override;
  void send(int rank, const from_rank::Joined& joined) override;
  void follow(int leader) override;
  void lead(const Heard& heard, const std::vector<Incarnation>& all,
            const std::vector<from_rank::Joined>& joined) override;
  void take_in(const from_rank::Joined& joined) override;
  [[nodiscard]] std::uint32_t round() const override;
  void resign() override;

 private:
  WorldParts& parts_;
};

}  // namespace troupe::rank_process
