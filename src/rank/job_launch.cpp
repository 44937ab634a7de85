#include "rank/job_launch.hpp"

#include <algorithm>
#include <cstdlib>

#include "rank/launch.hpp"

namespace troupe::rank_process {

std::string common_engine(const Config& config, const MpiSession& mpi) {
  if (config.text("engine") != "auto") return config.text("engine");
  const auto possible = mpi.everyone().gather_text(cuda_is_possible(config) ? "yes" : "no");
  const bool all =
      std::all_of(possible.begin(), possible.end(), [](const auto& text) { return text == "yes"; });
  return all ? "cuda" : "cpu";
}

Result<DeviceCore::Options> device_options(const Config& config, const std::string& engine,
                                           MpiSession& mpi) {
  auto options = device_options(
      config, engine, mpi.local_rank(),
      core_share(mpi.gather_local_text(core_mask()), static_cast<std::size_t>(mpi.local_rank())));
  if (!options) return options;
  // NCCL_HOSTID lets ranks of one host be on several for NCCL, and for the rendezvous.
  options->settings.launch.other_hosts =
      mpi.local_size() < mpi.size() || std::getenv("NCCL_HOSTID") != nullptr;
  // To each other rank, and from each.
  if (config.text("token-path") == "nccl") options->settings.launch.channels = 2 * (mpi.size() - 1);
  return options;
}

}  // namespace troupe::rank_process
