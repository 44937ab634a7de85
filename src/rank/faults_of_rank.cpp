#include <troupe/ordered_fault.hpp>
#include <troupe/runtime.hpp>

#include "common/core/log.hpp"
#include "rank/world/status/phase_faults.hpp"

namespace troupe {

FaultsOfRank::FaultsOfRank(Runtime& runtime, const std::vector<OrderedFault>& all)
    : device_(&runtime.device()) {
  auto& world = runtime.world();
  const auto& engine = device_->info().engine;
  auto past = world.deaths_of_rank();
  for (const auto& fault : all) {
    if (!fault.failing_gpu && !fault.death && !fault.silent && needs_gpu(fault.kind) &&
        engine != "cuda") {
      throw CollectiveException({Errc::invalid, 0,
                                 "--fault: " + std::string(to_string(fault.kind)) +
                                     " happens on GPUs only, and the engine is " + engine});
    }
    if (fault.rank != world.rank()) continue;
    // A GPU that is lost ends the process, too, where there is a spare place.
    const bool ends = fault.death || fault.failing_gpu || fault.silent == SilentFault::sick_gpu ||
                      (!fault.silent && fault.kind == memory::FaultKind::device_failure);
    if (ends && past > 0) {
      --past;
      continue;
    }
    if (fault.death && !fault.phase.empty()) {
      world.inject_death_in_phase(*fault.death, fault.phase);
    } else if (fault.phase.empty()) {
      waiting_.push_back(fault);
    } else {
      world.inject_in_phase(fault.kind, fault.phase);
    }
  }
}

FaultsOfRank::~FaultsOfRank() {
  for (const auto& fault : waiting_) {
    log::warn("world",
              "--fault {}@{}:{} has not struck: the program did not come to that iteration",
              fault.failing_gpu ? "failing-gpu"
              : fault.death     ? to_string(*fault.death)
              : fault.silent    ? to_string(*fault.silent)
                                : to_string(fault.kind),
              fault.iteration, fault.rank);
  }
}

bool FaultsOfRank::strike(std::int64_t first, std::int64_t count) {
  bool struck = false;
  std::erase_if(waiting_, [&](const OrderedFault& fault) {
    if (fault.iteration < first || fault.iteration >= first + count) return false;
    if (fault.death) {
      rank_process::suffer(*fault.death);
    } else if (fault.silent) {
      device_->inject(*fault.silent);
    } else if (fault.failing_gpu) {
      device_->inject_health(
          {0, HealthKind::other, "this GPU is failing, as --fault orders", true});
    } else {
      (void)device_->inject(fault.kind);
      struck = true;
    }
    return true;
  });
  return struck;
}

}  // namespace troupe
