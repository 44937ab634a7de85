#pragma once

#include "device_host/engine/cuda/library.hpp"
#include "device_host/engine/cuda/stream_memory.hpp"
#include "lib/fft/looks/checked_transform.hpp"
#include "lib/fft/looks/kernels.cuh"

/// The looks at Fourier transforms on the cuda engine: see sums.hpp.
namespace troupe::host::cuda {

/// A look at a batch of transforms, on its stream.
class FftLook {
 public:
  FftLook(const CheckedTransform& transform, DType dtype, std::byte* input, std::byte* output,
          const Call& call, const Services& services)
      : transform_(transform),
        launch_(services.launch(call.queue())),
        number_(number_of(dtype)),
        input_(input),
        output_(output) {}

  Result<void> before() {
    if (auto placed = place(); !placed) return placed;
    if (transform_.destroys_input) {
      const auto saved = saved_.reserve(transform_.input_bytes, launch_.stream);
      if (!saved) return saved.error();
      TROUPE_CUDA_TRY(copy(*saved, input_));
    }
    TROUPE_CUDA_TRY(kernels::add_elements(launch_, of_input_, input_sums_));
    return {};
  }

  Result<WrongProduct> after(bool wrong) {
    if (wrong) TROUPE_CUDA_TRY(kernels::spoil(launch_, number_, output_, middle()));
    TROUPE_CUDA_TRY(cudaMemsetAsync(output_sums_, 0, bytes_of_sums(), launch_.stream));
    TROUPE_CUDA_TRY(kernels::add_elements(launch_, of_output_, output_sums_));
    constexpr kernels::FftVerdict kRight;
    TROUPE_CUDA_TRY(
        cudaMemcpyAsync(verdict_, &kRight, sizeof kRight, cudaMemcpyHostToDevice, launch_.stream));
    TROUPE_CUDA_TRY(
        kernels::judge(launch_,
                       {input_sums_, output_sums_, transform_.batch, transform_.volume,
                        transform_.input.half, transform_.lopsided, transform_.rounding},
                       verdict_));
    kernels::FftVerdict verdict;
    TROUPE_CUDA_TRY(cudaMemcpyAsync(&verdict, verdict_, sizeof verdict, cudaMemcpyDeviceToHost,
                                    launch_.stream));
    TROUPE_CUDA_TRY(cudaStreamSynchronize(launch_.stream));
    if (verdict.first == kernels::FftVerdict::kNothingWrong) return WrongProduct();
    return WrongProduct(
        describe(transform_, static_cast<std::int64_t>(verdict.first), verdict.judged));
  }

  Result<void> restore() {
    if (transform_.destroys_input) TROUPE_CUDA_TRY(copy(input_, saved_.get()));
    return {};
  }

 private:
  static kernels::FftNumber number_of(DType dtype) {
    switch (dtype) {
      case DType::f16: return kernels::FftNumber::f16;
      case DType::bf16: return kernels::FftNumber::bf16;
      case DType::c64: return kernels::FftNumber::f32;
      default: return kernels::FftNumber::f64;
    }
  }
  [[nodiscard]] std::size_t bytes_of_sums() const {
    return static_cast<std::size_t>(transform_.batch) * sizeof(sums::FftSums);
  }

  /// Gives each part its place, and writes the weights.
  Result<void> place() {
    std::size_t weights = 0;
    for (const auto* const side : {&transform_.input, &transform_.output}) {
      for (const auto& dimension : side->weights) weights += static_cast<std::size_t>(dimension.n);
    }
    const auto bytes =
        sizeof(kernels::FftVerdict) + 2 * bytes_of_sums() + weights * sizeof(sums::Number);
    const auto memory = memory_.reserve(bytes, launch_.stream);
    if (!memory) return memory.error();
    verdict_ = static_cast<kernels::FftVerdict*>(*memory);
    input_sums_ = reinterpret_cast<sums::FftSums*>(verdict_ + 1);
    output_sums_ = input_sums_ + transform_.batch;
    TROUPE_CUDA_TRY(cudaMemsetAsync(input_sums_, 0, bytes_of_sums(), launch_.stream));
    auto* next = reinterpret_cast<sums::Number*>(output_sums_ + transform_.batch);
    TROUPE_CUDA_PROPAGATE(place_side(transform_.input, input_, of_input_, next));
    return place_side(transform_.output, output_, of_output_, next);
  }
  Result<void> place_side(const CheckedSide& from, const std::byte* data, kernels::FftSide& to,
                          sums::Number*& next) {
    to.data = data, to.number = number_;
    to.complex = from.complex, to.half = from.half;
    to.last = static_cast<int>(from.layout.rank) - 1;
    to.batch = transform_.batch, to.distance = from.layout.distance;
    for (std::size_t i = 0; i < fft::kMaxRank; ++i) {
      to.extents[i] = from.layout.extents[i], to.pitch[i] = from.layout.pitch[i];
      to.full[i] = from.weights[i].n, to.weights[i] = next;
      TROUPE_CUDA_TRY(kernels::write_weights(launch_, from.weights[i], next));
      next += from.weights[i].n;
    }
    return {};
  }
  /// A number in the middle of the last transform of the output.
  [[nodiscard]] std::int64_t middle() const {
    const auto& layout = transform_.output.layout;
    auto place = (transform_.batch - 1) * layout.distance;
    for (std::size_t i = 0; i < fft::kMaxRank; ++i)
      place += layout.extents[i] / 2 * layout.pitch[i];
    return transform_.output.complex ? 2 * place : place;
  }
  cudaError_t copy(void* to, const void* from) const {
    return cudaMemcpyAsync(to, from, transform_.input_bytes, cudaMemcpyDeviceToDevice,
                           launch_.stream);
  }

  const CheckedTransform& transform_;
  const kernels::Launch launch_;
  const kernels::FftNumber number_;
  std::byte *const input_, *const output_;
  StreamMemory memory_, saved_;
  kernels::FftVerdict* verdict_ = nullptr;
  sums::FftSums *input_sums_ = nullptr, *output_sums_ = nullptr;
  kernels::FftSide of_input_, of_output_;
};

}  // namespace troupe::host::cuda
