#include "device_host/engine/cuda/gpu_activity.hpp"

#include <cupti.h>
#include <cxxabi.h>
#include <dlfcn.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include <troupe/clock.hpp>

#include "device_host/engine/cuda/activity_join.hpp"

namespace troupe::host::cuda {
namespace {

constexpr std::size_t kBufferBytes = 1u << 20;
/// How often CUPTI is asked for what it knows; of its own accord it tells only of full buffers.
constexpr std::chrono::milliseconds kFlushPeriod{100};

/// CUPTI's functions; the library is loaded when it is traced, and stays.
struct Cupti {
  decltype(&::cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
  decltype(&::cuptiActivityRegisterTimestampCallback) register_clock = nullptr;
  decltype(&::cuptiActivityEnable) enable = nullptr;
  decltype(&::cuptiActivityDisable) disable = nullptr;
  decltype(&::cuptiActivityFlushAll) flush_all = nullptr;
  decltype(&::cuptiActivityGetNextRecord) next_record = nullptr;
  decltype(&::cuptiSubscribe) subscribe = nullptr;
  decltype(&::cuptiUnsubscribe) unsubscribe = nullptr;
  decltype(&::cuptiEnableCallback) enable_callback = nullptr;
  decltype(&::cuptiGetResultString) text = nullptr;

  [[nodiscard]] std::string text_of(CUptiResult result) const {
    const char* words = nullptr;
    return text(result, &words) == CUPTI_SUCCESS && words != nullptr
               ? words
               : "error " + std::to_string(static_cast<int>(result));
  }
};

Result<Cupti> load() {
  const auto major = "libcupti.so." + std::to_string(CUDA_VERSION / 1000);
  void* library = nullptr;
  for (const auto& name : {major, TROUPE_CUPTI_FOLDER "/" + major, std::string("libcupti.so")}) {
    library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
  }
  if (library == nullptr) return Error{Errc::unsupported, 0, "there is no " + major};
  Cupti cupti;
  bool complete = true;
  const auto find = [&](auto& function, const char* name) {
    function =
        reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    complete = complete && function != nullptr;
  };
  find(cupti.register_callbacks, "cuptiActivityRegisterCallbacks");
  find(cupti.register_clock, "cuptiActivityRegisterTimestampCallback");
  find(cupti.enable, "cuptiActivityEnable");
  find(cupti.disable, "cuptiActivityDisable");
  find(cupti.flush_all, "cuptiActivityFlushAll");
  find(cupti.next_record, "cuptiActivityGetNextRecord");
  find(cupti.subscribe, "cuptiSubscribe");
  find(cupti.unsubscribe, "cuptiUnsubscribe");
  find(cupti.enable_callback, "cuptiEnableCallback");
  find(cupti.text, "cuptiGetResultString");
  if (!complete) return Error{Errc::unsupported, 0, major + " is of another version"};
  return cupti;
}

/// What makes the GPU do something. The runtime calls these too.
constexpr std::array kLaunches{
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch,
    CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyAsync,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyAsync_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoDAsync_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoDAsync_v2_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpy2DAsync_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpy2DAsync_v2_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpy3DAsync_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpy3DAsync_v2_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyPeerAsync,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyPeerAsync_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async,
    CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuMemsetD16Async,
    CUPTI_DRIVER_TRACE_CBID_cuMemsetD16Async_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuMemsetD32Async,
    CUPTI_DRIVER_TRACE_CBID_cuMemsetD32Async_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuMemsetD2D8Async,
    CUPTI_DRIVER_TRACE_CBID_cuMemsetD2D8Async_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuMemsetD2D32Async,
    CUPTI_DRIVER_TRACE_CBID_cuMemsetD2D32Async_ptsz,
};

/// The command whose work this thread gives to CUDA; 0: none.
thread_local std::uint64_t current_ticket = 0;

std::uint64_t now() {
  return static_cast<std::uint64_t>(SteadyClock::time().count());
}

class Watch final : public GpuActivity {
 public:
  Watch(const Cupti& cupti, ActivitySink sink) : cupti_(cupti), sink_(std::move(sink)) {}

  Result<void> start() {
    watching_.store(this);
    const auto demand = [this](CUptiResult result) -> Result<void> {
      if (result == CUPTI_SUCCESS) return {};
      return Error{Errc::unsupported, static_cast<int>(result), "CUPTI: " + cupti_.text_of(result)};
    };
    if (auto done = demand(cupti_.subscribe(&subscriber_, &on_call, this)); !done) return done;
    subscribed_ = true;
    for (const auto call : kLaunches) {
      const auto enabled = cupti_.enable_callback(1, subscriber_, CUPTI_CB_DOMAIN_DRIVER_API, call);
      if (auto done = demand(enabled); !done) return done;
    }
    // The clock before the kinds: what is recorded then has its times.
    if (auto done = demand(cupti_.register_clock(&now)); !done) return done;
    if (auto done = demand(cupti_.register_callbacks(&give_buffer, &take_buffer)); !done)
      return done;
    for (const auto kind : kKinds) {
      if (auto done = demand(cupti_.enable(kind)); !done) return done;
    }
    flusher_ = std::jthread([this](const std::stop_token& stop) { flush(stop); });
    return {};
  }
  ~Watch() override {
    if (subscribed_) {  // else another tool may have these kinds
      flusher_ = {};
      (void)cupti_.flush_all(0);
      for (const auto kind : kKinds) (void)cupti_.disable(kind);
      (void)cupti_.flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
      (void)cupti_.unsubscribe(subscriber_);
    }
    watching_.store(nullptr);
  }

  void begin(std::uint64_t ticket) noexcept override { current_ticket = ticket; }
  void end() noexcept override { current_ticket = 0; }

 private:
  static constexpr std::array kKinds{CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                     CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET};

  static void CUPTIAPI on_call(void* self, CUpti_CallbackDomain, CUpti_CallbackId,
                               const void* data) {
    const auto& call = *static_cast<const CUpti_CallbackData*>(data);
    if (call.callbackSite == CUPTI_API_ENTER && current_ticket != 0)
      static_cast<Watch*>(self)->join_.launched(call.correlationId, current_ticket);
  }
  static void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* most) {
    *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(64, kBufferBytes));
    *size = *buffer != nullptr ? kBufferBytes : 0;
    *most = 0;  // as many as fit
  }
  static void CUPTIAPI take_buffer(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t,
                                   std::size_t valid) {
    if (auto* const self = watching_.load(); self != nullptr) self->read(buffer, valid);
    std::free(buffer);
  }

  void flush(const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any never;
    std::unique_lock lock(mutex);
    while (!never.wait_for(lock, stop, kFlushPeriod, [] { return false; }) &&
           !stop.stop_requested())
      (void)cupti_.flush_all(0);
  }

  void read(std::uint8_t* buffer, std::size_t valid) {
    const std::lock_guard lock(mutex_);
    CUpti_Activity* record = nullptr;
    while (cupti_.next_record(buffer, valid, &record) == CUPTI_SUCCESS) {
      switch (record->kind) {
        case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
          tell(*reinterpret_cast<const Kernel*>(record), [&](const Kernel& kernel) {
            return kernel.name != nullptr ? name_of(kernel.name) : std::string("kernel");
          });
          break;
        case CUPTI_ACTIVITY_KIND_MEMCPY:
          tell(*reinterpret_cast<const Copy*>(record),
               [](const Copy& copy) { return "copy of " + std::to_string(copy.bytes) + " bytes"; });
          break;
        case CUPTI_ACTIVITY_KIND_MEMSET:
          tell(*reinterpret_cast<const Set*>(record),
               [](const Set& set) { return "fill of " + std::to_string(set.bytes) + " bytes"; });
          break;
        default: break;
      }
    }
  }

#if CUDA_VERSION >= 13000
  using Kernel = CUpti_ActivityKernel10;
  using Copy = CUpti_ActivityMemcpy6;
#else
  using Kernel = CUpti_ActivityKernel9;
  using Copy = CUpti_ActivityMemcpy5;
#endif
  using Set = CUpti_ActivityMemset4;

  /// Work that no command has launched, such as the warm-up of a library, is left out.
  template <class Record, class Name>
  void tell(const Record& record, Name&& name) {
    const auto ticket = join_.ticket_of(record.correlationId);
    if (ticket == 0) return;
    sink_(ticket, static_cast<std::int64_t>(record.start), static_cast<std::int64_t>(record.end),
          record.streamId, name(record));
  }

  /// The kernel's name as C++ has it. CUPTI keeps one string for each kernel.
  const std::string& name_of(const char* mangled) {
    const auto [known, fresh] = names_.try_emplace(mangled);
    if (fresh) {
      int status = 0;
      const std::unique_ptr<char, decltype(&std::free)> plain(
          abi::__cxa_demangle(mangled, nullptr, nullptr, &status), &std::free);
      known->second = status == 0 && plain ? plain.get() : mangled;
    }
    return known->second;
  }

  static inline std::atomic<Watch*> watching_{nullptr};

  const Cupti cupti_;
  const ActivitySink sink_;
  ActivityJoin join_;
  CUpti_SubscriberHandle subscriber_{};
  bool subscribed_ = false;
  std::mutex mutex_;  ///< of the names: buffers may come from several threads
  std::unordered_map<std::string, std::string> names_;
  std::jthread flusher_;
};

}  // namespace

Result<std::unique_ptr<GpuActivity>> watch_gpu(ActivitySink sink) {
  auto cupti = load();
  if (!cupti) return cupti.error();
  auto watch = std::make_unique<Watch>(*cupti, std::move(sink));
  if (auto started = watch->start(); !started) return started.error();
  return std::unique_ptr<GpuActivity>(std::move(watch));
}

}  // namespace troupe::host::cuda
