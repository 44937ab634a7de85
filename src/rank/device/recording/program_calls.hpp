#pragma once

#include <utility>

#include <troupe/lib/submit.hpp>

#include "rank/device/recording/recorder.hpp"
#include "rank/device/recording/silent_faults.hpp"

namespace troupe::rank_process {

/// Where the program's calls go. Each call asks anew: into the recording of its thread, or to the
/// device. So an object of a library may be kept, and does the same wherever it was made. Any
/// thread.
class ProgramCalls final : public detail::Submitter {
 public:
  /// `device` takes what is not recorded. All outlive this.
  ProgramCalls(const CommandPort& port, detail::Submitter& device, SilentFaults& faults)
      : port_(&port), device_(&device), faults_(&faults) {}

  Future<void> submit(const detail::CommandView& command) override {
    auto future = target().submit(command);
    if (faults_->follows()) [[unlikely]]
      faults_->after(command, target());
    return future;
  }
  Future<void> refuse(Error error) override { return target().refuse(std::move(error)); }
  Future<void> refuse_collective(Error error, const detail::Scope& scope) override {
    return target().refuse_collective(std::move(error), scope);
  }
  [[nodiscard]] std::string name_of(const Operand& range) const override {
    return port_->name_of(range);
  }
  Result<detail::ResultCell> result_cell(std::size_t bytes) override {
    return target().result_cell(bytes);
  }
  void keep(std::shared_ptr<const void> what) override { target().keep(std::move(what)); }

 private:
  [[nodiscard]] detail::Submitter& target() const noexcept {
    if (auto* const recorder = Recorder::of(*port_)) [[unlikely]]
      return *recorder;
    return *device_;
  }

  const CommandPort* port_;
  detail::Submitter* device_;
  SilentFaults* faults_;
};

}  // namespace troupe::rank_process
