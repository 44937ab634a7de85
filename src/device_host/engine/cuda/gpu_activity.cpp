#include "device_host/engine/cuda/gpu_activity.hpp"

#include <cupti.h>
#include <cxxabi.h>
#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include <troupe/clock.hpp>

#include "device_host/engine/cuda/activity_join.hpp"

namespace troupe::host::cuda {
namespace {

constexpr std::size_t kBufferBytes = 1u << 20;
constexpr std::uint32_t kFlushPeriodMs = 100;

/// CUPTI's functions; the library is loaded when it is traced, and stays.
struct Cupti {
  decltype(&::cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
  decltype(&::cuptiActivityRegisterTimestampCallback) register_clock = nullptr;
  decltype(&::cuptiActivityEnable) enable = nullptr;
  decltype(&::cuptiActivityDisable) disable = nullptr;
  decltype(&::cuptiActivityFlushAll) flush_all = nullptr;
  decltype(&::cuptiActivityFlushPeriod) flush_period = nullptr;
  decltype(&::cuptiActivityGetNextRecord) next_record = nullptr;
  decltype(&::cuptiActivityPushExternalCorrelationId) push = nullptr;
  decltype(&::cuptiActivityPopExternalCorrelationId) pop = nullptr;
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
  find(cupti.flush_period, "cuptiActivityFlushPeriod");
  find(cupti.next_record, "cuptiActivityGetNextRecord");
  find(cupti.push, "cuptiActivityPushExternalCorrelationId");
  find(cupti.pop, "cuptiActivityPopExternalCorrelationId");
  find(cupti.text, "cuptiGetResultString");
  if (!complete) return Error{Errc::unsupported, 0, major + " is of another version"};
  return cupti;
}

std::uint64_t now() {
  return static_cast<std::uint64_t>(SteadyClock::time().count());
}

class Watch final : public GpuActivity {
 public:
  Watch(const Cupti& cupti, ActivitySink sink) : cupti_(cupti), join_(std::move(sink)) {}

  Result<void> start() {
    watching_.store(this);
    const auto demand = [this](CUptiResult result) -> Result<void> {
      if (result == CUPTI_SUCCESS) return {};
      return Error{Errc::unsupported, static_cast<int>(result), "CUPTI: " + cupti_.text_of(result)};
    };
    // The clock first: what is recorded then has its times.
    if (auto done = demand(cupti_.register_clock(&now)); !done) return done;
    if (auto done = demand(cupti_.register_callbacks(&give_buffer, &take_buffer)); !done)
      return done;
    for (const auto kind : kKinds) {
      if (auto done = demand(cupti_.enable(kind)); !done) return done;
    }
    return demand(cupti_.flush_period(kFlushPeriodMs));
  }
  ~Watch() override {
    (void)cupti_.flush_all(0);
    for (const auto kind : kKinds) (void)cupti_.disable(kind);
    (void)cupti_.flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    watching_.store(nullptr);
  }

  void begin(std::uint64_t ticket) noexcept override {
    (void)cupti_.push(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, ticket);
  }
  void end() noexcept override {
    std::uint64_t before = 0;
    (void)cupti_.pop(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &before);
  }

 private:
  static constexpr std::array kKinds{CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
                                     CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                     CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET};

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

  void read(std::uint8_t* buffer, std::size_t valid) {
    const std::lock_guard lock(mutex_);
    CUpti_Activity* record = nullptr;
    while (cupti_.next_record(buffer, valid, &record) == CUPTI_SUCCESS) {
      switch (record->kind) {
        case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
          const auto& of = *reinterpret_cast<const CUpti_ActivityExternalCorrelation*>(record);
          join_.launched(of.correlationId, of.externalId);
          break;
        }
        case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
          add(*reinterpret_cast<const Kernel*>(record), [&](const Kernel& kernel) {
            return kernel.name != nullptr ? name_of(kernel.name) : std::string("kernel");
          });
          break;
        case CUPTI_ACTIVITY_KIND_MEMCPY:
          add(*reinterpret_cast<const Copy*>(record),
              [](const Copy& copy) { return "copy of " + std::to_string(copy.bytes) + " bytes"; });
          break;
        case CUPTI_ACTIVITY_KIND_MEMSET:
          add(*reinterpret_cast<const Set*>(record),
              [](const Set& set) { return "fill of " + std::to_string(set.bytes) + " bytes"; });
          break;
        default: break;
      }
    }
    join_.settle();
  }

#if CUDA_VERSION >= 13000
  using Kernel = CUpti_ActivityKernel10;
  using Copy = CUpti_ActivityMemcpy6;
#else
  using Kernel = CUpti_ActivityKernel9;
  using Copy = CUpti_ActivityMemcpy5;
#endif
  using Set = CUpti_ActivityMemset4;

  template <class Record, class Name>
  void add(const Record& record, Name&& name) {
    join_.ran(record.correlationId,
              {static_cast<std::int64_t>(record.start), static_cast<std::int64_t>(record.end),
               record.streamId, name(record)});
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
  std::mutex mutex_;  ///< of what follows: buffers may come from several threads
  ActivityJoin join_;
  std::unordered_map<std::string, std::string> names_;
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
