#pragma once

#include <cutensor.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include <troupe/lib/tensor.hpp>

#include "device_host/engine/cuda/library.hpp"

namespace troupe::host::cuda {

/// Which function of cuTENSOR's carries a call out.
enum class PlanKind : std::uint32_t {
  contract,
  contract_trinary,
  reduce,
  permute,
  elementwise_binary,
  elementwise_trinary
};

/// Everything that a plan depends on beside the GPU and the version of cuTENSOR: its recipe.
struct PlanKey {
  static constexpr std::size_t kInputs = 3;

  PlanKind kind{};
  std::uint32_t inputs = 0;                         ///< tensors that are read, beside what is added
  std::array<std::uint32_t, kInputs + 1> dtypes{};  ///< of the inputs and the result
  tensor::Compute compute{};
  std::uint32_t reserved = 0;
  tensor::Algorithm algorithm{};                       ///< of a contraction
  std::array<tensor::Unary, kInputs + 1> unary{};      ///< of the inputs, of what is added
  std::array<tensor::Binary, 2> functions{};           ///< of a reduction the first
  std::array<std::uint32_t, kInputs + 1> alignment{};  ///< bytes, of the inputs and the result
  tensor::Loops<kInputs + 1> loops;                    ///< of the inputs, and of the result

  [[nodiscard]] DType dtype(std::size_t tensor) const noexcept {
    return static_cast<DType>(dtypes[tensor]);
  }
  bool operator==(const PlanKey& other) const noexcept {
    return std::memcmp(this, &other, sizeof *this) == 0;
  }
};
static_assert(std::has_unique_object_representations_v<PlanKey>);

struct CutensorTraits {
  using Type = cutensorHandle_t;
  static constexpr Type invalid() { return nullptr; }
  static void destroy(Type handle) { (void)cutensorDestroy(handle); }
};
struct CutensorPlanTraits {
  using Type = cutensorPlan_t;
  static constexpr Type invalid() { return nullptr; }
  static void destroy(Type plan) { (void)cutensorDestroyPlan(plan); }
};

/// The GPU and the version of cuTENSOR that plans, choices and kernels are for: what stands before
/// them where they are kept.
struct PlanHeader {
  std::uint64_t magic = 0;  ///< which of them it is
  std::uint64_t version = 0;
  std::uint32_t compute_capability = 0;
  std::uint32_t multiprocessors = 0;

  /// That of the current device.
  static PlanHeader here(std::uint64_t magic, int multiprocessors);
  bool operator==(const PlanHeader&) const = default;
};
static_assert(std::has_unique_object_representations_v<PlanHeader>);

/// Where the tensors of a call are, and its factors in the order of cuTENSOR's arguments.
struct PlanOperands {
  std::array<const void*, PlanKey::kInputs> inputs{};
  const void* addend = nullptr;  ///< nullptr: nothing is added
  void* result = nullptr;
  std::array<Scalar, 3> factors{};
};

/// How cuTENSOR carries out one shape of an operation: a kernel that its model chooses, always the
/// same one for a key, so that a plan that is made again gives the same bits. What measurements
/// have found is part of the key.
class Plan {
 public:
  /// Takes up to milliseconds, and seconds if a kernel is compiled. Errors: unsupported (cuTENSOR
  /// has no such operation or algorithm), library.
  static Result<Plan> make(cutensorHandle_t handle, const PlanKey& key);

  /// What another process needs to make the plan of a key.
  static std::vector<std::byte> recipe(const PlanKey& key, int multiprocessors);
  /// The key of such bytes; nothing if they are of another version of cuTENSOR or another model of
  /// GPU than the current device.
  static std::optional<PlanKey> key_in(std::span<const std::byte> bytes, int multiprocessors);

  [[nodiscard]] std::size_t workspace_bytes() const noexcept { return workspace_bytes_; }
  /// Errors: those of cuTENSOR.
  Result<void> execute(cutensorHandle_t handle, PlanKind kind, const PlanOperands& operands,
                       void* workspace, cudaStream_t stream) const;

 private:
  Handle<CutensorPlanTraits> plan_;
  std::size_t workspace_bytes_ = 0;
};

}  // namespace troupe::host::cuda
