#pragma once

#include <memory>
#include <span>
#include <string>

#include <troupe/actor/actor_system.hpp>
#include <troupe/config.hpp>
#include <troupe/device.hpp>

#include "rank/device/device_core.hpp"

namespace troupe::bench {

/// A device of this process alone, opened as a rank opens its own: no MPI, no world.
class LocalDevice {
 public:
  /// `engine` is "cpu" or "cuda". Without --standby there is none: it would start up in the middle
  /// of a measurement. Throws Exception with what keeps the device host from starting.
  LocalDevice(const Config& config, const std::string& engine);
  ~LocalDevice();
  LocalDevice(const LocalDevice&) = delete;
  LocalDevice& operator=(const LocalDevice&) = delete;

  [[nodiscard]] Device& operator*() noexcept { return *device_; }
  [[nodiscard]] Device* operator->() noexcept { return device_.get(); }

 private:
  std::unique_ptr<ActorSystem> actors_;
  std::shared_ptr<rank_process::DeviceCore> core_;
  std::unique_ptr<Device> device_;
};

/// The main() of a benchmark of one device: reads the options, or tells them for --help, and runs
/// it. Options or a file for --json that cannot be used are one line on standard error and status
/// 2, asked for first; what `run` throws is one line and status 1.
int run_benchmark(int argc, char** argv, const std::string& name, const std::string& purpose,
                  std::span<const OptionSpec> options, int (*run)(const Config&));

}  // namespace troupe::bench
