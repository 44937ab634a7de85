#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <troupe/checkpoint.hpp>
#include <troupe/corruption.hpp>

#include "rank/device/commands/buffers.hpp"
#include "rank/run/device_exchange.hpp"
#include "rank/world/world_core.hpp"

namespace troupe::rank_process {

/// Watches over device memory that no step writes (Checkpoint::add_constant). The program's thread.
class Constants {
 public:
  Constants(WorldCore& core, Checkpoint& checkpoint, DeviceExchange& exchange)
      : core_(&core), checkpoint_(&checkpoint), exchange_(&exchange) {}

  [[nodiscard]] bool any() const { return !checkpoint_->guarded().empty(); }
  /// Steps follow: what has been made or written since it was last seen is to stay as it is.
  void learn();
  /// Has what has changed during steps `first` to `last` written anew. All members call it and
  /// return the same: what has changed on each. Throws Exception: invalid (a step has had it
  /// written); corrupt (it cannot be written anew); those of the device.
  [[nodiscard]] std::vector<Corruption> mend(std::int64_t first, std::int64_t last);
  /// Their buffers.
  [[nodiscard]] std::vector<std::uint32_t> buffers() const;
  /// Changes one bit of one of them, chosen by the step. False: there is none.
  bool stray(std::int64_t step);

 private:
  /// A constant as it is to be.
  struct Known {
    Buffers::State state;
    std::uint64_t digest = 0;
    std::vector<std::byte> copy;  ///< where nobody else can write it anew
    bool mending = false;  ///< it is being written anew, which a fault may have kept from its end
  };
  /// A rank's account of the first of its constants that has changed.
  struct Told;

  /// The state of each constant's buffer; nullopt: its contents are not there.
  [[nodiscard]] std::vector<std::optional<Buffers::State>> states() const;
  [[nodiscard]] std::vector<std::uint64_t> digests();
  [[nodiscard]] std::vector<std::byte> download(const Operand& range) const;
  void upload(const std::vector<std::byte>& bytes, const Operand& range) const;
  /// Writes the constant anew.
  void mend_one(std::size_t index);

  WorldCore* core_;
  Checkpoint* checkpoint_;
  DeviceExchange* exchange_;
  std::vector<std::optional<Known>> known_;  ///< of each constant
  GpuRef<std::uint64_t> digests_;
  /// The account of a constant that was written anew, until the others know: a fault may keep it
  /// from them for a while.
  std::shared_ptr<const Told> untold_;
};

}  // namespace troupe::rank_process
