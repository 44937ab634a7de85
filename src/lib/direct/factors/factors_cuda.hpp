#pragma once

#include <cudss.h>

#include <array>
#include <cstdint>
#include <string_view>

#include <troupe/lib/direct.hpp>

#include "device_host/engine/cuda/library.hpp"
#include "device_host/engine/cuda/stream_memory.hpp"
#include "lib/direct/schur/kernels.cuh"

/// Factors of sparse matrices, by cuDSS.
namespace troupe::host::cuda {

struct CudssTraits {
  using Type = cudssHandle_t;
  static constexpr Type invalid() { return nullptr; }
  static void destroy(Type handle) { (void)cudssDestroy(handle); }
};
struct CudssMatrixTraits {
  using Type = cudssMatrix_t;
  static constexpr Type invalid() { return nullptr; }
  static void destroy(Type matrix) { (void)cudssMatrixDestroy(matrix); }
};
struct CudssConfigTraits {
  using Type = cudssConfig_t;
  static constexpr Type invalid() { return nullptr; }
  static void destroy(Type config) { (void)cudssConfigDestroy(config); }
};
using CudssHandle = Handle<CudssTraits>;
using CudssMatrix = Handle<CudssMatrixTraits>;
using CudssConfig = Handle<CudssConfigTraits>;

/// What factors are made of, in device memory. Buffer and generation of its operands stand for what
/// is there: another matrix at the same address is another matrix.
struct Pattern {
  const void *row_begin = nullptr, *column = nullptr;
  std::uint64_t row_begin_contents = 0, column_contents = 0;
  std::int64_t n = 0, nonzeros = 0;
  DType dtype{}, index_dtype{};
  direct::Kind kind{};
  direct::View view{};
  bool matching = false;
  const void* order = nullptr;  ///< of all rows, from the caller
  std::uint64_t order_contents = 0;
  bool operator==(const Pattern&) const = default;
};
struct Values {
  const void* value = nullptr;
  std::uint64_t contents = 0;
  bool operator==(const Values&) const = default;
};

/// Systems to be solved, and how.
struct Systems {
  const std::byte* b = nullptr;
  std::byte* x = nullptr;
  std::int64_t columns = 0, ldb = 0, ldx = 0;
  blas::Transpose transpose{};
  std::uint32_t refinement = 0;
};

/// The factors of one matrix on one queue. The same matrix gives the same factors, whatever was
/// there before: so new values are factorised as those before, by CUDSS_PHASE_FACTORIZATION, and
/// analysed anew where the analysis depends on them. In cuDSS's deterministic mode, which takes one
/// right side at a time and does not refine: that is done here.
class Factorisation {
 public:
  Factorisation(Services& services, Queue queue, cudssHandle_t handle);
  /// Waits for the queue.
  ~Factorisation();
  Factorisation(const Factorisation&) = delete;
  Factorisation& operator=(const Factorisation&) = delete;

  /// What has been prepared from these is void.
  void pattern_overwritten() noexcept { analysed_ = factored_ = false; }
  void values_overwritten() noexcept {
    factored_ = false;
    if (pattern_.matching) analysed_ = false;
  }

  /// Analyses the pattern unless that has been done. Waits for the queue.
  Result<direct::Analysis> analyse(const Pattern& pattern, const Values& values);
  /// The same, then makes the factors unless they are there.
  Result<direct::Factors> factor(const Pattern& pattern, const Values& values);
  /// Makes what such a solve() needs beside the factors unless that is there. After factor(). Waits
  /// for the queue.
  Result<void> prepare(const Systems& systems);
  /// Whether nothing is left to be done before solve().
  [[nodiscard]] bool is_ready(const Pattern& pattern, const Values& values,
                              const Systems& systems) const noexcept;
  [[nodiscard]] const direct::Factors& factors() const noexcept { return factors_; }
  /// Queues the solution. After prepare(), where factors() are `ready` or have replaced pivots.
  Result<void> solve(const Systems& systems);

 private:
  [[nodiscard]] bool is_analysed(const Pattern& pattern, const Values& values) const noexcept;
  [[nodiscard]] bool is_factored(const Pattern& pattern, const Values& values) const noexcept;
  [[nodiscard]] bool needs_mirror(const Systems& systems) const noexcept;
  void drop();
  /// Whether this is a matrix, and one that may have factors.
  template <class I>
  Result<void> examine();
  template <class I>
  Result<void> set_order();
  Result<void> make_system();
  Result<void> configure();
  template <class Value>
  Result<void> set(cudssConfigParam_t parameter, Value value);
  Result<void> factorise();
  Result<void> execute(int phase, std::string_view name);
  Result<void> solve_for(const void* b, void* x);
  template <class T, class I>
  Result<void> solve_as(const Systems& systems);
  template <class I>
  Result<void> make_mirror();
  /// Some whole numbers that cuDSS knows of the factors.
  template <std::size_t kCount>
  Result<std::array<std::int64_t, kCount>> read(cudssDataParam_t what) const;

  Services& services_;
  Queue queue_;
  cudaStream_t stream_;
  cudssHandle_t handle_;
  Pattern pattern_;  ///< of what has been analysed
  Values values_;    ///< of what has been factorised; with matching, also analysed
  bool analysed_ = false, factored_ = false;
  bool has_solved_ = false;  ///< the first solution makes kernels, which takes long
  direct::Analysis analysis_;
  direct::Factors factors_;
  bool singular_ = false;  ///< whatever pivots are taken: then there is no system
  CudssConfig config_;
  CudssMatrix matrix_, b_, x_;
  cudssData_t data_ = nullptr;
  StreamMemory columns_;        ///< what is missing, and a correction, of n elements each
  StreamMemory mirror_;         ///< a kernels::Mirror: begin, row, place
  std::int64_t mirrored_ = -1;  ///< its elements; -1: it is not there
};

}  // namespace troupe::host::cuda
