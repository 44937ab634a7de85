#include "rank/job_launch.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "common/ipc/system_error.hpp"
#include "rank/launch.hpp"
#include "rank/observe.hpp"

namespace troupe::rank_process {

std::string common_engine(const Settings& settings, const Session& mpi) {
  if (settings.engine != Engine::automatic) return settings.engine == Engine::cuda ? "cuda" : "cpu";
  const auto possible = mpi.everyone().gather_text(cuda_is_possible(settings) ? "yes" : "no");
  const bool all =
      std::all_of(possible.begin(), possible.end(), [](const auto& text) { return text == "yes"; });
  return all ? "cuda" : "cpu";
}

int own_cores(Session& mpi) {
  return core_share(mpi.gather_local_text(core_mask()), static_cast<std::size_t>(mpi.local_rank()));
}

namespace {

/// The device host that start_early_host() has started; the device takes it, or it ends.
std::shared_ptr<EarlyHost>& early_host() {
  static std::shared_ptr<EarlyHost> host;
  return host;
}

Result<DeviceCore::Options> options_at(const Session::Waiting& place, const Settings& settings,
                                       const std::string& engine) {
  auto options = device_options(settings, engine, place.local_rank, place.cores);
  if (!options) return options;
  // NCCL_HOSTID lets ranks of one host be on several for NCCL, and for the rendezvous.
  options->settings.launch.other_hosts = !place.one_node || std::getenv("NCCL_HOSTID") != nullptr;
  // To each other rank, and from each.
  if (settings.token_path == TokenWay::nccl)
    options->settings.launch.channels = 2 * (place.ranks - 1);
  return options;
}

}  // namespace

Result<DeviceCore::Options> device_options(const Settings& settings, const std::string& engine,
                                           const Session& mpi, int cores) {
  auto options = options_at({.local_rank = mpi.local_rank(),
                             .ranks = mpi.size(),
                             .cores = cores,
                             .one_node = mpi.has_one_node()},
                            settings, engine);
  if (options.ok()) options->early = std::exchange(early_host(), nullptr);
  return options;
}

void start_early_host(const Settings& settings) {
  const auto place = Session::waiting();
  if (!place || settings.standby == StandbyMode::off) return;
  const bool cuda = settings.engine == Engine::cuda ||
                    (settings.engine == Engine::automatic && cuda_is_possible(settings));
  const std::string engine = cuda ? "cuda" : "cpu";
  auto options = options_at(*place, settings, engine);
  if (!options.ok()) return;
  Observer::prepare(settings, engine, options->flight);
  auto started = EarlyHost::start(std::move(options->settings.launch), std::move(options->flight));
  if (started.ok()) early_host() = std::move(*started);
}

Result<void> become_keeper(const Settings& settings, char** argv) {
  if (settings.on_rank_loss != OnRankLoss::respawn || Session::has_keeper()) return {};
  if (Session::mpi_is_initialised()) {
    return Error{
        Errc::invalid, 0,
        "on-rank-loss = respawn: this program initialises MPI by itself, which ends the job "
        "with a rank"};
  }
  std::error_code error;
  auto program = std::filesystem::canonical("/proc/self/exe", error).string();
  if (error) return Error{Errc::io, error.value(), "/proc/self/exe: " + error.message()};
  auto keeper = keeper_program();
  // See keeper::Arguments.
  std::vector<std::string> numbers{std::to_string(settings.spares),
                                   std::to_string(settings.rank_silence.count()),
                                   std::to_string(settings.respawn_wait.count()),
                                   std::to_string(settings.restart_budget),
                                   std::to_string(settings.restart_window.count()),
                                   settings.standby == StandbyMode::off ? "0" : "1",
                                   settings.on_loss == OnLoss::shrink ? "1" : "0"};
  std::vector<char*> arguments{keeper.data()};
  for (auto& number : numbers) arguments.push_back(number.data());
  arguments.push_back(program.data());
  for (char** one = argv; *one != nullptr; ++one) arguments.push_back(*one);
  arguments.push_back(nullptr);
  ::execv(keeper.c_str(), arguments.data());
  return ipc::system_error("on-rank-loss = respawn: " + keeper);
}

}  // namespace troupe::rank_process
