#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include <troupe/lib/primitives.hpp>

#include "device_host/engine/cuda/library.hpp"
#include "lib/primitives/common/algorithms.cuh"
#include "lib/primitives/common/visit.hpp"
#include "lib/primitives/transforms/kernels.cuh"

namespace troupe::host::cuda {

/// What kernels that see the bits of elements know of them.
inline kernels::Meaning meaning(DType dtype) {
  switch (dtype) {
    case DType::f16: return {true, false, 0x7c00};
    case DType::bf16: return {true, false, 0x7f80};
    case DType::f32: return {true, false, 0x7f80'0000};
    case DType::f64: return {true, false, 0x7ff0'0000'0000'0000};
    default: return {false, dtype == DType::i32 || dtype == DType::i64};
  }
}
inline kernels::Keys keys_at(const Operand& keys, DType dtype, const Call& call) {
  const auto bits = meaning(dtype);
  const auto all = ~std::uint64_t{0} >> (64 - 8 * size_of(dtype));
  return {call.at<const std::byte>(keys), size_of(dtype), bits.floating ? all >> 1 : all,
          bits.infinity};
}

inline kernels::NarrowFloat narrow_float(DType dtype) {
  return dtype == DType::bf16 ? kernels::NarrowFloat::bf16 : kernels::NarrowFloat::f16;
}

/// Elements that are combined, or what an operator gives of them.
struct Combined {
  DType dtype;
  primitives::ReduceOp reduction;
  std::int64_t n;
  Operand x, result;
  bool applies = false;  ///< the operator
  primitives::Unary op{};
};

class Primitives final : public LibraryHalfOf<Primitives, primitives::Operations> {
 public:
  explicit Primitives(Services& its_services) : services(its_services) {}
  [[nodiscard]] Dependencies stands_on() const override;
  Result<void> open(Queue queue) override;

  // For its operations.
  struct State {
    static constexpr std::size_t kCountBytes = 256;  ///< keeps the rest aligned

    Workspace memory;

    /// On its way to a result cell.
    [[nodiscard]] std::int64_t* count() const { return static_cast<std::int64_t*>(memory.get()); }
    [[nodiscard]] void* temporary() const {
      return static_cast<std::byte*>(memory.get()) + kCountBytes;
    }
  };
  [[nodiscard]] State& state(Queue queue) { return states[queue.detour ? 1 : 0]; }
  /// Asks an algorithm how much memory it needs, then queues it. `name`: for errors.
  template <class Algorithm>
  Result<void> queue_algorithm(Queue queue, std::string_view name, Algorithm&& algorithm);
  Result<void> warm_up(Queue queue, void* memory);
  Result<void> warm_up(DType dtype, std::int64_t n, const std::array<Operand, 4>& ranges,
                       const Call& call);

  static constexpr std::uint64_t kWarmUpBytes = std::uint64_t{512} << 10;

  Services& services;
  std::array<State, 2> states;  ///< of the lane's own queue, of its detour
};
/// Queues a reduction by troupe's own kernels.
Result<void> combine(const Combined& combined, const Call& call, Primitives& library);
/// Queues the copy of a queue's own count to a result cell.
Result<void> give_count(const Operand& cell, const Call& call, Primitives& library);
template <class K>
Result<void> sort_segments(const primitives::SegmentedSort& op, const Call& call,
                           Primitives& library);
Result<void> warm_up_sorts(DType dtype, std::int64_t n, const std::array<Operand, 4>& ranges,
                           const Call& call, Primitives& library);
Result<void> warm_up_reductions(DType dtype, std::int64_t n, const std::array<Operand, 4>& ranges,
                                const Call& call, Primitives& library);
Result<void> warm_up_selections(DType dtype, std::int64_t n, const std::array<Operand, 4>& ranges,
                                const Call& call, Primitives& library);
Result<void> warm_up_scans(DType dtype, std::int64_t n, const std::array<Operand, 4>& ranges,
                           const Call& call, Primitives& library);
Result<void> warm_up_transforms(DType dtype, std::int64_t n, const std::array<Operand, 4>& ranges,
                                const Call& call, Primitives& library);
Result<void> warm_up_histograms(DType dtype, std::int64_t n, const std::array<Operand, 4>& ranges,
                                const Call& call, Primitives& library);
Result<void> warm_up_runs(std::int64_t n, const std::array<Operand, 4>& ranges, const Call& call,
                          Primitives& library);

template <class Algorithm>
Result<void> Primitives::queue_algorithm(Queue queue, std::string_view name,
                                         Algorithm&& algorithm) {
  (void)cudaGetLastError();  // CUB reports what others left there
  kernels::Temporary temporary;
  if (const auto status = algorithm(temporary); status != cudaSuccess) return failure(status, name);
  auto& own = state(queue);
  TROUPE_CUDA_PROPAGATE(own.memory.reserve(services, queue, State::kCountBytes + temporary.bytes));
  temporary.memory = own.temporary();
  if (const auto status = algorithm(temporary); status != cudaSuccess) return failure(status, name);
  return {};
}

}  // namespace troupe::host::cuda
