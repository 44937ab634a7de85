// An engine that does none of the work that small operations ask for: what a command costs without
// its library and its kernel. For command_path, which finds it as the engine "null".
#include <algorithm>
#include <array>
#include <string_view>

#include "device_host/engine/cpu/cpu_engine.hpp"

namespace troupe::host {
namespace {

/// The cpu engine, but for the operations below: these are done at once, and nothing of theirs is
/// ever carried out. Everything else (allocations, copies, opening libraries) is as it is there.
class NullEngine final : public cpu::CpuEngine {
 public:
  using CpuEngine::CpuEngine;

  Result<void> run(const OperationInfo& info, const std::byte* op, const Call& call) override {
    if (is_skipped(info)) return {};
    real_work_ = true;
    return CpuEngine::run(info, op, call);
  }

  // Marks behind real work are the cpu engine's, the others are reached from the beginning.
  Result<Mark> mark(Queue queue) override {
    return real_work_ ? CpuEngine::mark(queue) : Mark{kNothing};
  }
  Result<void> wait(Queue queue, Mark mark) override {
    return mark.id == kNothing ? Result<void>() : CpuEngine::wait(queue, mark);
  }
  Result<bool> reached(Mark mark) override {
    if (mark.id == kNothing) return true;
    auto there = CpuEngine::reached(mark);
    if (there.ok() && *there) real_work_ = false;
    return there;
  }
  void release(Mark mark) override {
    if (mark.id != kNothing) CpuEngine::release(mark);
  }

 private:
  static constexpr std::uint32_t kNothing = ~0u;
  static bool is_skipped(const OperationInfo& info) {
    constexpr std::array<std::string_view, 6> kSkipped = {
        "memory.fill", "blas.axpy", "sparse.spmv", "kernel.launch", "kernel.launch_repeatable",
        "dnn.graph"};
    return std::find(kSkipped.begin(), kSkipped.end(), info.name) != kSkipped.end();
  }

  bool real_work_ = true;  ///< since the mark that was reached last
};

}  // namespace

Result<std::unique_ptr<Engine>> make_engine(const EngineOptions& options) {
  try {
    return std::unique_ptr<Engine>(std::make_unique<NullEngine>(options));
  } catch (const Exception& exception) {
    return exception.error();
  } catch (const std::exception& exception) {
    return Error{Errc::library, 0, exception.what()};
  }
}

Result<std::vector<DeviceInfo>> list_devices() {
  return std::vector<DeviceInfo>();
}

}  // namespace troupe::host
