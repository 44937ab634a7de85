#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include <troupe/future.hpp>

#include "rank/device/kernels/kernel_builder.hpp"

namespace troupe {
class Device;
class KernelModule;
struct Parts;
namespace detail {
class Submitter;
struct ModuleState;
}  // namespace detail
namespace kernel {
struct Launch;
}
}  // namespace troupe

namespace troupe::rank_process {

class DeviceCore;

/// The modules of kernels that a rank makes, and that other ranks may launch from. Any thread.
class KernelModules {
 public:
  KernelModules(DeviceCore& core, const KernelBuilder::Options& options)
      : core_(core), builder_(options) {}

  [[nodiscard]] KernelBuilder& builder() noexcept { return builder_; }
  /// Calls the function, which may block, beside the program.
  Future<KernelModule> make(
      std::function<Result<std::shared_ptr<detail::ModuleState>>(const Device&)> make);
  /// Carries out what another rank has asked for, with the module of this rank that was made from
  /// the same.
  Future<void> launch_for_other(detail::Submitter& submitter, const kernel::Launch& op,
                                bool repeatable, const Parts& parts);

 private:
  void remember(const std::shared_ptr<detail::ModuleState>& module);

  DeviceCore& core_;
  std::mutex mutex_;
  std::vector<std::weak_ptr<detail::ModuleState>> modules_;
  KernelBuilder builder_;
};

}  // namespace troupe::rank_process
