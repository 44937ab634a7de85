#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rank/protocol/follower.hpp"

namespace troupe::rank_process {

struct WorldParts;

/// Carries out what WorldFollower wants of this rank: by its device, and by what its program sees
/// of the world (WorldStatus). The WorldActor's turns.
class MemberActions final : public FollowerActions {
 public:
  explicit MemberActions(WorldParts& parts) : parts_(parts) {}

  void send(const RankMessage& message) override;
  void close_world() override;
  void order(DeviceOrder order) override;
  void verify(std::uint32_t round, std::uint32_t epoch) override;
  void regroup(std::uint32_t round) override;
  void restore(std::uint32_t round, std::int64_t step) override;
  void activate(const from_supervisor::Activate& activate) override;
  [[nodiscard]] Keeping keeping() const override;
  void stable(std::int64_t step) override;
  void stopping(std::int64_t since) override;
  void all_finished(std::int64_t step) override;
  void retire() override;
  void strike(Phase phase) override;
  void pass_on(const SupervisorMessage& message) override;

  /// The device was given up.
  void note_failure(const Error& error) { failed_ = error; }
  /// Has a spectator's device tried again once it is time.
  void look();

 private:
  void on(const from_supervisor::AllFlushed& flushed);
  void on(const from_supervisor::Inquire& inquire);
  void on(const from_supervisor::HealthTold& told);
  void on(const from_supervisor::RunLeft& left);
  void on(const from_supervisor::Stop& stop);
  void on(const from_supervisor::SplitAgreed& agreed);
  void on(const from_supervisor::AskCall&);
  void on(const from_supervisor::Slow& slow);

  WorldParts& parts_;
  TimePoint revived_at_{};       ///< when a spectator's device was last tried, or its epoch began
  std::optional<Error> failed_;  ///< why the device was given up, until an epoch begins
  /// The device was given up because the GPU is failing: it is not tried again.
  bool left_gpu_ = false;
};

}  // namespace troupe::rank_process
