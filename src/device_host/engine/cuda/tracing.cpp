#include "device_host/engine/tracing.hpp"

#include <nvtx3/nvToolsExt.h>

#include <cstdlib>
#include <string>

#include "common/core/log.hpp"
#include "device_host/engine/cuda/gpu_activity.hpp"

namespace troupe::host {
namespace {

class CudaTracing final : public Tracing {
 public:
  explicit CudaTracing(std::unique_ptr<cuda::GpuActivity> activity)
      : activity_(std::move(activity)), domain_(nvtxDomainCreateA("troupe")) {}
  ~CudaTracing() override { nvtxDomainDestroy(domain_); }

  void begin(std::uint64_t ticket, std::string_view operation) noexcept override {
    char name[64];
    std::snprintf(name, sizeof name, "%.*s %llu", static_cast<int>(operation.size()),
                  operation.data(), static_cast<unsigned long long>(ticket));
    nvtxEventAttributes_t attributes{};
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
    attributes.message.ascii = name;
    nvtxDomainRangePushEx(domain_, &attributes);
    if (activity_) activity_->begin(ticket);
  }
  void end() noexcept override {
    if (activity_) activity_->end();
    nvtxDomainRangePop(domain_);
  }

 private:
  std::unique_ptr<cuda::GpuActivity> activity_;
  nvtxDomainHandle_t domain_;
};

}  // namespace

std::unique_ptr<Tracing> make_tracing(ActivitySink sink) {
  std::unique_ptr<cuda::GpuActivity> activity;
  if (sink) {
    auto watch = cuda::watch_gpu(std::move(sink));
    if (watch.ok()) {
      activity = std::move(*watch);
    } else {
      log::warn("engine", "the trace is without what the GPU does: {}", watch.error().message);
    }
  }
  // What a tool has injected is the only reader of ranges.
  const char* const tool = std::getenv("NVTX_INJECTION64_PATH");
  if (!activity && (tool == nullptr || *tool == '\0')) return nullptr;
  return std::make_unique<CudaTracing>(std::move(activity));
}

}  // namespace troupe::host
