#pragma once

#include <cuComplex.h>
#include <library_types.h>

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "device_host/engine/cuda/handles.hpp"
#include "device_host/engine/cuda/kernels.hpp"
#include "device_host/engine/cuda/launch.hpp"
#include "device_host/engine/cuda/status.hpp"
#include "device_host/engine/library.hpp"

namespace troupe::host {
class ProductChecks;
}

/// What a library's half for the cuda engine stands on. Whenever the engine calls a half, its
/// device is current on the calling thread. (The reactor calls a CollectiveHalf by itself.)
namespace troupe::host::cuda {

/// What a half may ask of the engine, for queues that are open or being opened. Outlives the half,
/// streams and scratch memory included. Any thread.
class Services {
 public:
  /// The device's ordinal.
  [[nodiscard]] virtual int device() const noexcept = 0;
  /// See EngineOptions.
  [[nodiscard]] virtual bool other_hosts() const noexcept = 0;
  [[nodiscard]] virtual bool reproducible() const noexcept = 0;
  [[nodiscard]] virtual bool in_process() const noexcept = 0;
  /// Makes the device current on the calling thread, which costs nothing if it is: for what is not
  /// called by the engine.
  virtual void enter() const = 0;
  /// Does what takes device memory of its own, and counts that as the cause's, instead of what the
  /// cause had before.
  virtual Result<void> count_memory(const std::string& cause,
                                    const std::function<Result<void>()>& work) = 0;
  [[nodiscard]] virtual cudaStream_t stream(Queue queue) const = 0;
  [[nodiscard]] virtual int multiprocessors() const noexcept = 0;
  /// kScratchBytes of device memory of the queue's own, all zeros when the queue is being opened.
  /// The first kPartBytes are for ScalarValues, the others for WarmUp.
  [[nodiscard]] virtual std::byte* scratch(Queue queue) const = 0;
  /// Whether this thread records a graph: nothing may be queued then but what can be part of it,
  /// and no memory be taken or given back.
  [[nodiscard]] virtual bool records() const noexcept = 0;
  /// What operations of earlier calls may use has been given back, in the order of its queue:
  /// memory, plans, modules. Graphs that were made before are void.
  virtual void note_given_back() noexcept = 0;
  static constexpr std::size_t kScratchBytes = std::size_t{64} << 10, kPartBytes = 8192;
  /// Queues what repeats the first `size` (1, 2, 4, 8 or 16) bytes of the pattern `count` times.
  virtual Result<void> fill(Queue queue, void* destination,
                            const std::array<std::uint8_t, 16>& pattern, std::size_t size,
                            std::uint64_t count) const = 0;

  /// Queues what writes the addresses of a batch's operands to device memory.
  virtual Result<void> write_addresses(Queue queue, void** destination,
                                       std::span<void* const> addresses) const = 0;
  /// The same of `count` operands that lie in one buffer; adds those that do not to *outside, in
  /// device memory.
  virtual Result<void> write_addresses(Queue queue, void** destination,
                                       const kernels::Places& places, std::int64_t count,
                                       std::int64_t* outside) const = 0;

  /// For the launch of a kernel.
  [[nodiscard]] kernels::Launch launch(Queue queue) const {
    return {stream(queue), multiprocessors()};
  }
  /// Device memory, in the order of the stream: it waits for nothing else that runs. To give it
  /// back does wait; a half keeps it until its end.
  [[nodiscard]] Result<DeviceMemory> reserve(Queue queue, std::size_t bytes) const {
    if (records()) return not_recorded("more memory");
    DeviceMemory memory;
    TROUPE_CUDA_TRY(cudaMallocAsync(memory.out(), bytes, stream(queue)));
    return memory;
  }

  [[nodiscard]] virtual ProductChecks& product_checks() noexcept = 0;

  /// The error of a call that needs what it has not prepared, while a graph is recorded.
  static Error not_recorded(std::string_view needed) {
    return {Errc::unsupported, 0, "it needs " + std::string(needed)};
  }

 protected:
  ~Services() = default;
};

/// What a half works in beside its operands: device memory of one queue, which only grows.
class Workspace {
 public:
  /// Makes room for so many bytes, in the order of the stream: what still uses the old memory is
  /// not disturbed. What stood there is lost. Errors: out_of_memory.
  Result<void> reserve(Services& services, Queue queue, std::size_t bytes) {
    if (bytes <= bytes_) return {};
    if (services.records()) return Services::not_recorded("more memory");
    if (void* const old = memory_.release(); old != nullptr) {
      services.note_given_back();
      TROUPE_CUDA_TRY(cudaFreeAsync(old, services.stream(queue)));
    }
    bytes_ = 0;
    auto reserved = services.reserve(queue, bytes);
    if (!reserved) return reserved.error();
    memory_ = std::move(*reserved);
    bytes_ = bytes;
    return {};
  }
  [[nodiscard]] void* get() const noexcept { return memory_.get(); }

 private:
  DeviceMemory memory_;
  std::size_t bytes_ = 0;
};

/// Plans that are no longer cached, until what was queued with them has ended.
template <class Plan>
class RetiredPlans {
 public:
  /// The plan's last use has been queued on the stream.
  Result<void> add(Plan plan, cudaStream_t stream) {
    Event end;
    TROUPE_CUDA_TRY(cudaEventCreateWithFlags(end.out(), cudaEventDisableTiming));
    TROUPE_CUDA_TRY(cudaEventRecord(end.get(), stream));
    retired_.push_back({std::move(end), std::move(plan)});
    return {};
  }
  /// Destroys those that have ended; waits for one if there are too many. May block.
  Result<void> destroy_ended() {
    while (!retired_.empty()) {
      const auto end = retired_.front().end.get();
      auto status = cudaEventQuery(end);
      if (status == cudaErrorNotReady) {
        (void)cudaGetLastError();  // else a later call trips over it
        if (retired_.size() < kMost) return {};
        status = cudaEventSynchronize(end);
      }
      if (status != cudaSuccess) return failure(status, "cudaEventQuery");
      retired_.pop_front();
    }
    return {};
  }

 private:
  static constexpr std::size_t kMost = 32;
  struct Retired {
    Event end;
    Plan plan;
  };
  std::deque<Retired> retired_;
};

/// A library by its function that gives MAJOR_VERSION and its like: "13.1.0".
template <class Status>
Dependency dependency(std::string name, Status (*get_property)(libraryPropertyType, int*)) {
  int major = 0, minor = 0, patch = 0;
  (void)get_property(MAJOR_VERSION, &major);
  (void)get_property(MINOR_VERSION, &minor);
  (void)get_property(PATCH_LEVEL, &patch);
  const auto version =
      std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
  return {std::move(name), version, get_property};
}

/// Calls f(float{}) or f(double{}), whichever the dtype names.
template <class F>
Result<void> with_real(DType dtype, F&& f) {
  if (dtype == DType::f32) return f(float{});
  if (dtype == DType::f64) return f(double{});
  return Error{Errc::unsupported, 0, std::string(to_string(dtype)) + " is neither f32 nor f64"};
}

/// Calls f(T{}) for the number that the dtype names: f32, f64, c64 or c128.
template <class F>
Result<void> with_number(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32: return f(float{});
    case DType::f64: return f(double{});
    case DType::c64: return f(std::complex<float>{});
    case DType::c128: return f(std::complex<double>{});
    default:
      return Error{Errc::unsupported, 0,
                   std::string(to_string(dtype)) + " is none of f32, f64, c64 and c128"};
  }
}

/// A number as CUDA's libraries name it.
template <class T>
struct NativeNumber {
  using type = T;
};
template <>
struct NativeNumber<std::complex<float>> {
  using type = cuComplex;
};
template <>
struct NativeNumber<std::complex<double>> {
  using type = cuDoubleComplex;
};
template <class T>
using Native = typename NativeNumber<T>::type;

/// A scalar of an operation, for a kernel of troupe's own.
template <class T>
kernels::ScalarValue<T> scalar(const Scalar& scalar, const Call& call) {
  return {scalar.device.present() ? call.at<const T>(scalar.device) : nullptr, scalar.as<T>()};
}

/// Where a library looks for alpha and beta. Setting it costs a call, so it is remembered.
enum class ScalarsAt : std::uint8_t { host, device };

/// The scalars of one call as the libraries want them: all in host memory or all in device memory.
/// Where an operation mixes both, the values are written to the queue's scratch memory in stream
/// order, so an earlier call that still reads them there is not disturbed.
template <class T>
class ScalarValues {
 public:
  static constexpr std::size_t kMaximum = 2;

  Result<void> resolve(const Services& services, const Call& call,
                       std::initializer_list<const Scalar*> scalars) {
    std::size_t i = 0;
    for (const auto* scalar : scalars) {
      host_[i] = scalar->as<T>();
      device_[i] = scalar->device.present() ? call.at<const T>(scalar->device) : nullptr;
      if (device_[i] != nullptr) where_ = ScalarsAt::device;
      ++i;
    }
    if (where_ == ScalarsAt::host) return {};
    auto* const cells = reinterpret_cast<T*>(services.scratch(call.queue()));
    for (i = 0; i < scalars.size(); ++i) {
      if (device_[i] != nullptr) continue;
      std::array<std::uint8_t, 16> pattern{};
      std::memcpy(pattern.data(), &host_[i], sizeof(T));
      TROUPE_CUDA_PROPAGATE(services.fill(call.queue(), cells + i, pattern, sizeof(T), 1));
      device_[i] = cells + i;
    }
    return {};
  }

  [[nodiscard]] ScalarsAt where() const noexcept { return where_; }
  [[nodiscard]] const T* operator[](std::size_t i) const noexcept {
    return where_ == ScalarsAt::host ? &host_[i] : device_[i];
  }

 private:
  // As the libraries read it; std::complex<double> itself asks for 8.
  alignas(16) std::array<T, kMaximum> host_{};
  std::array<const T*, kMaximum> device_{};
  ScalarsAt where_ = ScalarsAt::host;
};

/// Finds a function of the driver's. `version`: of CUDA, in which it came to be as it is declared,
/// 12000 for 12.0. Errors: unsupported (the driver does not have it).
template <class Function>
Result<void> find_in_driver(const char* name, unsigned version, Function& function) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  TROUPE_CUDA_TRY(
      cudaGetDriverEntryPointByVersion(name, &found, version, cudaEnableDefault, &result));
  if (result != cudaDriverEntryPointSuccess || found == nullptr)
    return Error{Errc::unsupported, 0, std::string("NVIDIA driver too old: no ") + name};
  function = reinterpret_cast<Function>(found);
  return {};
}

/// What a half runs its operations on when it opens a queue. Libraries load their kernels when
/// these are first launched, which takes milliseconds. So each operation runs once, on zeros,
/// before the lane's own queue is in use; its detour launches the same kernels.
///
/// No memory is given back on the way but in the order of the stream: to free it at once would wait
/// for all that runs, such as a collective whose peers have yet to come.
class WarmUp {
 public:
  static constexpr DType kReals[] = {DType::f32, DType::f64};

  WarmUp(const Services& services, Queue queue) : queue_(queue) {
    (void)add(kScratchRegion, services.scratch(queue), Services::kScratchBytes);
  }

  /// For any number of operations, as long as this lives.
  [[nodiscard]] Call call() const { return Call(queue_, addresses_, {}).for_preparation(); }
  /// The i-th part of the scratch memory, 1 to 7, or the beginning of it.
  [[nodiscard]] static Operand part(std::uint64_t i, std::uint64_t bytes = Services::kPartBytes) {
    return {kScratchRegion, 0, 0, 0, i * Services::kPartBytes, bytes};
  }
  /// The scalar 0, in device memory: the beginning of part 7.
  [[nodiscard]] static Scalar scalar_in_memory(DType dtype) {
    return {part(7, size_of(dtype)), {}};
  }
  /// Other memory, as a region of any number but 1.
  Operand add(std::uint32_t region, void* memory, std::uint64_t bytes) {
    addresses_.set(region, static_cast<std::byte*>(memory), bytes);
    return {region, 0, 0, 0, 0, bytes};
  }

 private:
  static constexpr std::uint32_t kScratchRegion = 1;

  Queue queue_;
  AddressMap addresses_;
};

}  // namespace troupe::host::cuda
