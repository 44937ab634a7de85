#pragma once

#include <array>
#include <cstring>

#include "device_host/engine/cuda/cuda_engine.hpp"
#include "device_host/engine/cuda/status.hpp"

namespace troupe::host::cuda {

/// Calls f(float{}) or f(double{}), whichever the dtype names.
template <class F>
Result<void> for_real(DType dtype, F&& f) {
  if (dtype == DType::f32) return f(float{});
  if (dtype == DType::f64) return f(double{});
  return Error{Errc::unsupported, 0, std::string(to_string(dtype)) + " is neither f32 nor f64"};
}

/// The factors of one call as the libraries want them: all in host memory or all in device memory.
/// Where an operation mixes both, the values are written to the queue's scratch memory in stream
/// order, so an earlier call that still reads them there is not disturbed.
template <class T>
class Factors {
 public:
  static constexpr std::size_t kMaximum = 2;

  Result<void> resolve(const CudaEngine& engine, const Call& call,
                       std::initializer_list<const Scalar*> scalars) {
    std::size_t i = 0;
    for (const auto* scalar : scalars) {
      host_[i] = scalar->as<T>();
      device_[i] = scalar->device.present() ? call.at<const T>(scalar->device) : nullptr;
      if (device_[i] != nullptr) where_ = ScalarsAt::device;
      ++i;
    }
    if (where_ == ScalarsAt::host) return {};
    auto* const cells = static_cast<T*>(engine.queues_[call.queue().index()].scratch.get());
    for (i = 0; i < scalars.size(); ++i) {
      if (device_[i] != nullptr) continue;
      std::array<std::uint8_t, 16> pattern{};
      std::memcpy(pattern.data(), &host_[i], sizeof(T));
      TROUPE_CUDA_TRY(kernels::fill(engine.launch(call.queue()), cells + i, pattern, sizeof(T), 1));
      device_[i] = cells + i;
    }
    return {};
  }

  [[nodiscard]] ScalarsAt where() const noexcept { return where_; }
  [[nodiscard]] const T* operator[](std::size_t i) const noexcept {
    return where_ == ScalarsAt::host ? &host_[i] : device_[i];
  }

 private:
  std::array<T, kMaximum> host_{};
  std::array<const T*, kMaximum> device_{};
  ScalarsAt where_ = ScalarsAt::host;
};

}  // namespace troupe::host::cuda
