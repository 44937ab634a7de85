#include "local_device.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <utility>

#include <troupe/actor/production_scheduler.hpp>
#include <troupe/runtime.hpp>

#include "common/core/log.hpp"
#include "rank/launch.hpp"
#include "report_file.hpp"

namespace troupe::bench {

LocalDevice::LocalDevice(const Config& config, const std::string& engine) {
  log::init(Rank(0), config.text("log-level")).take();
  auto options =
      rank_process::device_options(Settings::of(config), engine, 0,
                                   rank_process::core_share({rank_process::core_mask()}, 0))
          .take();
  if (!config.given("standby")) options.settings.standby = false;
  actors_ = std::make_unique<ActorSystem>(ProductionScheduler::start({.workers = 2}).take());
  core_ = rank_process::DeviceCore::open(*actors_, std::move(options), 0).take();
  device_ = std::make_unique<Device>(core_);
}

LocalDevice::~LocalDevice() {
  if (core_) core_->shut_down();
  device_.reset();
  core_.reset();
}

int run_benchmark(int argc, char** argv, const std::string& name, const std::string& purpose,
                  std::span<const OptionSpec> options, int (*run)(const Config&)) {
  try {
    const auto config = Config::parse(argc, argv, options);
    auto usable = config.ok() ? Result<void>() : Result<void>(config.error());
    if (config.ok() && !config->wants_help()) usable = app::check_report_file(config->text("json"));
    if (!usable.ok()) {
      fmt::print(stderr, "{}: {}\n", name, usable.error().message);
      return kExitUsage;
    }
    if (!config->wants_help()) return run(*config);
    fmt::print("{}", config->help_text(name, purpose));
    return 0;
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}: {}\n", name, e.what());
    return 1;
  }
}

}  // namespace troupe::bench
