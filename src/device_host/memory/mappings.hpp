#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "common/wire/control.hpp"
#include "device_host/core.hpp"
#include "device_host/requests.hpp"

namespace troupe::host {

/// The memory that operands name, as it is mapped in this process: slabs, pinned memory of the
/// rank, slabs of other ranks. The reactor's thread only.
class Mappings {
 public:
  Mappings(Core& core, Requests& requests) : core_(&core), requests_(&requests) {}

  void on(std::uint64_t request, const wire::to_host::MakeSlab& make);
  void on(std::uint64_t request, wire::to_host::MapSlab& map);
  void on(std::uint64_t request, wire::to_host::MapPinned& map);
  void on(std::uint64_t request, wire::to_host::MapForeign& map);
  void on(std::uint64_t request, const wire::to_host::DropRegion& drop);
  /// A request to map memory of this rank could not be carried out: a standby will not be promoted.
  void failed(const Error& error);
  /// Why a mapping of this standby has failed; nothing: none has.
  [[nodiscard]] const std::optional<Error>& failure() const noexcept { return failure_; }

  [[nodiscard]] const AddressMap& addresses() const noexcept { return addresses_; }
  /// True if the range is mapped, or is no memory of troupe's, or empty.
  [[nodiscard]] bool reaches(const Operand& range) const;
  /// False for a command that would write memory of another rank: nobody does but its owner.
  [[nodiscard]] static bool may_use(const wire::Command& command, const OperandUse& use);
  /// An error unless all operands are mapped and none is used as it may not be. Errors: internal.
  [[nodiscard]] Result<void> reaches_all(const wire::Command& command) const;

  /// To unmap pinned memory waits for all that runs (cudaHostUnregister does), so it is done only
  /// when nothing runs that waits for other ranks.
  [[nodiscard]] bool has_dropped() const noexcept { return !dropped_pinned_.empty(); }
  void unmap_dropped();

 private:
  using MapNow = std::function<Result<std::byte*>()>;
  /// `ours`: the memory is this rank's.
  void map(std::uint64_t request, std::uint32_t region, std::uint64_t bytes, bool ours,
           MapNow map_now);
  void mapped(std::uint64_t request, std::uint32_t region, std::uint64_t bytes, bool ours,
              const Result<std::byte*>& address);

  Core* core_;
  Requests* requests_;
  AddressMap addresses_;
  std::vector<std::pair<std::byte*, std::uint64_t>> dropped_pinned_;
  std::optional<Error> failure_;
};

}  // namespace troupe::host
