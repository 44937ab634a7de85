#include <troupe/launched_job.hpp>

#include <troupe/actor/production_scheduler.hpp>

#include "common/core/version.hpp"
#include "rank/job_launch.hpp"
#include "rank/net/session.hpp"

namespace troupe {

std::string troupe_version() {
  return std::string(kVersion);
}

LaunchedJob::LaunchedJob(int argc, char** argv) : mpi_(rank_process::Session::open(&argc, &argv)) {}
LaunchedJob::~LaunchedJob() = default;

int LaunchedJob::rank() const {
  return mpi_->rank();
}
int LaunchedJob::size() const {
  return mpi_->size();
}
int LaunchedJob::local_rank() const {
  return mpi_->local_rank();
}
int LaunchedJob::node() const {
  return mpi_->node();
}
std::vector<std::string> LaunchedJob::gather_text(const std::string& text) const {
  return mpi_->everyone().gather_text(text);
}

Result<DeviceInfo> LaunchedJob::try_device(const Config& config) {
  const auto settings = Settings::of(config);
  const auto engine = rank_process::common_engine(settings, *mpi_);
  auto options =
      rank_process::device_options(settings, engine, *mpi_, rank_process::own_cores(*mpi_));
  if (!options) return options.error();
  options->settings.standby = false;
  options->settings.restart_budget = 0;
  options->flight.rank = mpi_->rank();
  auto scheduler = ProductionScheduler::start({.workers = 1, .runs_continuations = false});
  if (!scheduler.ok()) return scheduler.error();
  ActorSystem actors(std::move(*scheduler));
  auto device = rank_process::DeviceCore::open(actors, std::move(*options), mpi_->rank());
  if (!device) return device.error();
  auto info = (*device)->info();
  (*device)->shut_down();
  return info;
}

}  // namespace troupe
