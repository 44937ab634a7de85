#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include <troupe/lib/channel.hpp>
#include <troupe/lib/memory.hpp>

#include "common/wire/control.hpp"
#include "device_host/core.hpp"
#include "device_host/formation/formation.hpp"
#include "device_host/intake/outcomes.hpp"
#include "device_host/intake/set_aside.hpp"
#include "device_host/libraries/libraries.hpp"
#include "device_host/libraries/preparations.hpp"
#include "device_host/memory/mappings.hpp"

namespace troupe::host {

/// The operations that the reactor carries out itself: no library's half has them. The reactor's
/// thread only.
class OwnOperations {
 public:
  /// A command, and where it comes from.
  struct Source {
    const wire::Command* command;
    std::span<const std::byte> record;
    bool from_ring;  ///< else it is set aside
  };

  OwnOperations(Core& core, Libraries& libraries, Preparations& preparations, Mappings& mappings,
                Formation& formation, Outcomes& outcomes, SetAside& set_aside)
      : core_(&core),
        libraries_(&libraries),
        preparations_(&preparations),
        mappings_(&mappings),
        formation_(&formation),
        outcomes_(&outcomes),
        set_aside_(&set_aside) {}

  /// Carries out a command that needs no lane. Nothing: it takes its lane.
  std::optional<Step> carry_out(const Source& source);
  /// Carries out a command on its lane. Nothing: it is for a library.
  std::optional<Result<void>> run(const wire::Command& command, const Call& call);

  /// Suffers a fault at once, on the device as soon as it gets there.
  void on(std::uint64_t request, const wire::to_host::Suffer& suffer);
  /// Whether a fault that was ordered has yet to show.
  [[nodiscard]] bool expects_fault() const noexcept { return behind_fault_.has_value(); }
  /// Errors: the fault has shown.
  Result<void> look_for_fault();

 private:
  Step carry_out(const Source& source, const memory::Nop&);
  /// The faults of a process come at once, those of a GPU when its stream gets there.
  std::optional<Step> carry_out(const Source& source, const memory::Fault& op);
  Step carry_out(const Source& source, const memory::LibraryFault& op);
  Step carry_out(const Source& source, const memory::Prepare&);
  Step carry_out(const Source& source, const channel::Invite& op);
  Step carry_out(const Source& source, const channel::Connect& op);
  Step carry_out(const Source& source, const channel::Join& op);
  Step carry_out(const Source& source, const channel::Send& op);
  Step carry_out(const Source& source, const channel::Receive& op);
  Step carry_out(const Source& source, const channel::Drop& op);
  template <class... Operations>
  std::optional<Step> carry_out_one_of(const Source& source);

  Step transfer(const Source& source, std::uint64_t number, const Operand& range);
  /// Has a thread of its own carry out a command for an end of a channel. `makes`: the end is made
  /// first; whether it receives.
  Step work_on_channel(const Source& source, std::uint64_t number, std::optional<bool> makes,
                       std::function<Result<void>(ChannelEnd&)> work);
  Result<void> make_channel_end(std::uint64_t number, bool receives);
  /// The part of a fault that is the process's.
  void suffer(memory::FaultKind kind);

  Core* core_;
  Libraries* libraries_;
  Preparations* preparations_;
  Mappings* mappings_;
  Formation* formation_;
  Outcomes* outcomes_;
  SetAside* set_aside_;
  std::optional<HeldMark> behind_fault_;  ///< of one that was ordered, until it shows
};

}  // namespace troupe::host
