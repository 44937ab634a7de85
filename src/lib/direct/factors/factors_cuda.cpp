#include "lib/direct/factors/factors_cuda.hpp"

#include <complex>
#include <cstring>
#include <vector>

#include "lib/direct/factors/status_cuda.hpp"
#include "lib/direct/factors/structure.hpp"

namespace troupe::host::cuda {
namespace {

cudaDataType_t value_type(DType dtype) {
  switch (dtype) {
    case DType::f32: return CUDA_R_32F;
    case DType::c64: return CUDA_C_32F;
    case DType::c128: return CUDA_C_64F;
    default: return CUDA_R_64F;  // check() lets no other one pass
  }
}
cudaDataType_t index_type(DType dtype) {
  return dtype == DType::i32 ? CUDA_R_32I : CUDA_R_64I;
}
bool is_complex(DType dtype) {
  return dtype == DType::c64 || dtype == DType::c128;
}

cudssMatrixType_t type_of(const Pattern& pattern) {
  const bool hermitian = is_complex(pattern.dtype);
  switch (pattern.kind) {
    case direct::Kind::general: return CUDSS_MTYPE_GENERAL;
    case direct::Kind::symmetric: return CUDSS_MTYPE_SYMMETRIC;
    case direct::Kind::hermitian: return hermitian ? CUDSS_MTYPE_HERMITIAN : CUDSS_MTYPE_SYMMETRIC;
    default: return hermitian ? CUDSS_MTYPE_HPD : CUDSS_MTYPE_SPD;
  }
}
cudssMatrixViewType_t view_of(direct::View view) {
  return view == direct::View::full    ? CUDSS_MVIEW_FULL
         : view == direct::View::lower ? CUDSS_MVIEW_LOWER
                                       : CUDSS_MVIEW_UPPER;
}
cudssSolveMode_t mode_of(const Pattern& pattern, blas::Transpose transpose) {
  // Elsewhere check() lets only pass what is A itself.
  if (transpose == blas::Transpose::no || pattern.kind != direct::Kind::general)
    return CUDSS_SOLVE_MODE_NORMAL;
  return transpose == blas::Transpose::conjugate && is_complex(pattern.dtype)
             ? CUDSS_SOLVE_MODE_CONJUGATE_TRANSPOSE
             : CUDSS_SOLVE_MODE_TRANSPOSE;
}

template <class F>
Result<void> with_index(DType dtype, F&& f) {
  return dtype == DType::i32 ? f(std::int32_t{}) : f(std::int64_t{});
}

/// Queues the copy of an array to the host.
template <class I>
Result<void> copy(const void* from, std::vector<I>& to, cudaStream_t stream) {
  if (to.empty()) return {};
  TROUPE_CUDA_TRY(
      cudaMemcpyAsync(to.data(), from, to.size() * sizeof(I), cudaMemcpyDefault, stream));
  return {};
}

/// row_begin, column and order, copied to the host.
template <class I>
struct Structure {
  std::vector<I> row_begin, column, order;

  Result<void> read(const Pattern& pattern, cudaStream_t stream) {
    row_begin.resize(static_cast<std::size_t>(pattern.n) + 1);
    column.resize(static_cast<std::size_t>(pattern.nonzeros));
    TROUPE_CUDA_PROPAGATE(copy(pattern.row_begin, row_begin, stream));
    TROUPE_CUDA_PROPAGATE(copy(pattern.column, column, stream));
    if (pattern.order != nullptr) order.resize(static_cast<std::size_t>(pattern.n));
    TROUPE_CUDA_PROPAGATE(copy(pattern.order, order, stream));
    TROUPE_CUDA_TRY(cudaStreamSynchronize(stream));
    return {};
  }
};

}  // namespace

Factorisation::Factorisation(Services& services, Queue queue, cudssHandle_t handle)
    : services_(services), queue_(queue), stream_(services.stream(queue)), handle_(handle) {}

Factorisation::~Factorisation() {
  drop();
}

/// What has been queued may use host memory of cuDSS's.
void Factorisation::drop() {
  analysed_ = factored_ = singular_ = has_solved_ = false;
  mirrored_ = -1;
  if (data_ == nullptr) return;
  (void)cudaStreamSynchronize(stream_);
  (void)cudssDataDestroy(handle_, data_);
  data_ = nullptr;
  matrix_.reset();
  b_.reset();
  x_.reset();
  config_.reset();
}

template <std::size_t kCount>
Result<std::array<std::int64_t, kCount>> Factorisation::read(cudssDataParam_t what) const {
  alignas(std::int64_t) std::array<std::byte, kCount * sizeof(std::int64_t)> bytes{};
  std::size_t needed = 0, written = 0;
  TROUPE_CUDA_TRY(cudssDataGet(handle_, data_, what, nullptr, 0, &needed));
  if (needed > bytes.size() || needed % kCount != 0)
    return Error{Errc::library, 0, "cudssDataGet: a value of " + std::to_string(needed) + " bytes"};
  TROUPE_CUDA_TRY(cudssDataGet(handle_, data_, what, bytes.data(), needed, &written));
  std::array<std::int64_t, kCount> values{};
  for (std::size_t i = 0; i < kCount; ++i) {
    const auto* const from = bytes.data() + i * (needed / kCount);
    if (needed / kCount == sizeof(std::int32_t)) {
      std::int32_t value = 0;
      std::memcpy(&value, from, sizeof value);
      values[i] = value;
    } else {
      std::memcpy(&values[i], from, sizeof values[i]);
    }
  }
  return values;
}

template <class Value>
Result<void> Factorisation::set(cudssConfigParam_t parameter, Value value) {
  TROUPE_CUDA_TRY(cudssConfigSet(config_.get(), parameter, &value, sizeof value));
  return {};
}

Result<void> Factorisation::execute(int phase, std::string_view name) {
  const auto status =
      cudssExecute(handle_, phase, config_.get(), data_, matrix_.get(), x_.get(), b_.get());
  if (status == CUDSS_STATUS_SUCCESS) return {};
  return failure(status, "cudssExecute, " + std::string(name));
}

bool Factorisation::is_analysed(const Pattern& pattern, const Values& values) const noexcept {
  return analysed_ && pattern_ == pattern && (!pattern.matching || values_ == values);
}
bool Factorisation::is_factored(const Pattern& pattern, const Values& values) const noexcept {
  return is_analysed(pattern, values) && factored_ && values_ == values;
}
bool Factorisation::needs_mirror(const Systems& systems) const noexcept {
  return systems.refinement > 0 &&
         (pattern_.view != direct::View::full ||
          mode_of(pattern_, systems.transpose) != CUDSS_SOLVE_MODE_NORMAL);
}
bool Factorisation::is_ready(const Pattern& pattern, const Values& values,
                             const Systems& systems) const noexcept {
  if (!is_factored(pattern, values)) return false;
  if (factors_.outcome < 0 || pattern_.n == 0) return true;
  return has_solved_ && (!needs_mirror(systems) || mirrored_ >= 0);
}

Result<direct::Analysis> Factorisation::analyse(const Pattern& pattern, const Values& values) {
  if (is_analysed(pattern, values)) return analysis_;
  drop();
  pattern_ = pattern;
  values_ = values;
  analysis_ = {};
  TROUPE_CUDA_PROPAGATE(with_index(pattern.index_dtype, [&]<class I>(I) { return examine<I>(); }));
  if (analysis_.outcome == direct::ready && !singular_ && pattern.n > 0) {
    if (const auto made = make_system(); !made) {
      drop();
      return made.error();
    }
  }
  analysed_ = true;
  return analysis_;
}

template <class I>
Result<void> Factorisation::examine() {
  Structure<I> host;
  TROUPE_CUDA_PROPAGATE(host.read(pattern_, stream_));
  if (!direct::is_sound(pattern_.n, pattern_.nonzeros, host.row_begin.data(), host.column.data())) {
    analysis_.outcome = direct::not_csr;
    return {};
  }
  if (pattern_.order != nullptr && !direct::is_permutation(pattern_.n, host.order.data())) {
    analysis_.outcome = direct::not_order;
    return {};
  }
  singular_ = direct::has_empty_line(pattern_.n, host.row_begin.data(), host.column.data(),
                                     direct::half_of(pattern_.view));
  return {};
}

/// cuDSS copies it.
template <class I>
Result<void> Factorisation::set_order() {
  std::vector<I> order(static_cast<std::size_t>(pattern_.n));
  TROUPE_CUDA_PROPAGATE(copy(pattern_.order, order, stream_));
  TROUPE_CUDA_TRY(cudaStreamSynchronize(stream_));
  TROUPE_CUDA_TRY(
      cudssDataSet(handle_, data_, CUDSS_DATA_USER_PERM, order.data(), order.size() * sizeof(I)));
  return {};
}

Result<void> Factorisation::make_system() {
  const auto n = pattern_.n;
  const auto type = value_type(pattern_.dtype);
  const auto index = index_type(pattern_.index_dtype);
  const auto column_bytes = static_cast<std::size_t>(n) * size_of(pattern_.dtype);
  TROUPE_CUDA_PROPAGATE(columns_.reserve(2 * column_bytes, stream_));
  TROUPE_CUDA_TRY(cudssMatrixCreateCsr(matrix_.out(), n, n, pattern_.nonzeros, pattern_.row_begin,
                                       nullptr, pattern_.column, values_.value, index, index, type,
                                       type_of(pattern_), view_of(pattern_.view), CUDSS_BASE_ZERO));
  TROUPE_CUDA_TRY(
      cudssMatrixCreateDn(b_.out(), n, 1, n, columns_.get(), type, CUDSS_LAYOUT_COL_MAJOR));
  TROUPE_CUDA_TRY(cudssMatrixCreateDn(x_.out(), n, 1, n, columns_.get() + column_bytes, type,
                                      CUDSS_LAYOUT_COL_MAJOR));
  TROUPE_CUDA_PROPAGATE(configure());
  TROUPE_CUDA_TRY(cudssDataCreate(handle_, &data_));
  if (pattern_.order != nullptr) {
    TROUPE_CUDA_PROPAGATE(
        with_index(pattern_.index_dtype, [&]<class I>(I) { return set_order<I>(); }));
  }
  if (const auto analysed = execute(CUDSS_PHASE_ANALYSIS, "analysis"); !analysed) {
    // It is how cuDSS tells that no exchange of rows leaves a diagonal without zeros.
    if (!pattern_.matching || analysed.code() != Errc::library) return analysed.error();
    drop();
    singular_ = true;
    return {};
  }
  const auto nonzeros = read<1>(CUDSS_DATA_LU_NNZ);
  if (!nonzeros) return nonzeros.error();
  const auto memory = read<16>(CUDSS_DATA_MEMORY_ESTIMATES);
  if (!memory) return memory.error();
  analysis_.factor_nonzeros = (*nonzeros)[0];
  analysis_.device_bytes = (*memory)[0];  // what stays; the peak is the next one
  return {};
}

Result<void> Factorisation::configure() {
  TROUPE_CUDA_TRY(cudssConfigCreate(config_.out()));
  TROUPE_CUDA_PROPAGATE(set(CUDSS_CONFIG_DETERMINISTIC_MODE, int{1}));
  TROUPE_CUDA_PROPAGATE(set(CUDSS_CONFIG_MATCHING_ALG, pattern_.matching
                                                           ? CUDSS_MATCHING_ALG_MAX_DIAG_PRODUCT
                                                           : CUDSS_MATCHING_ALG_NONE));
  if (pattern_.kind == direct::Kind::symmetric || pattern_.kind == direct::Kind::hermitian) {
    // Superpanels are what the deterministic mode does not have with these pivots.
    TROUPE_CUDA_PROPAGATE(set(CUDSS_CONFIG_PIVOT_TYPE, CUDSS_PIVOT_BUNCH_KAUFMAN));
    TROUPE_CUDA_PROPAGATE(set(CUDSS_CONFIG_USE_SUPERPANELS, int{0}));
  }
  return {};
}

Result<direct::Factors> Factorisation::factor(const Pattern& pattern, const Values& values) {
  if (is_factored(pattern, values)) return factors_;
  // What is left of a factorisation that has failed is not built upon.
  if (analysed_ && factors_.outcome == direct::no_factors) drop();
  const auto analysis = analyse(pattern, values);
  if (!analysis) return analysis.error();
  values_ = values;
  factors_ = {};
  factored_ = false;
  if (analysis->outcome != direct::ready) {
    factors_.outcome = analysis->outcome;
  } else if (singular_) {
    factors_.outcome = direct::no_factors;
  } else if (pattern.n > 0) {
    if (const auto made = factorise(); !made) {
      drop();
      return made.error();
    }
  }
  factored_ = true;
  return factors_;
}

Result<void> Factorisation::factorise() {
  TROUPE_CUDA_TRY(cudssMatrixSetValues(matrix_.get(), values_.value));
  TROUPE_CUDA_PROPAGATE(execute(CUDSS_PHASE_FACTORIZATION, "factorisation"));
  const auto info = read<1>(CUDSS_DATA_INFO);
  if (!info) return info.error();
  factors_.factor_nonzeros = analysis_.factor_nonzeros;
  if ((*info)[0] != 0) {
    factors_.outcome = direct::no_factors;
    return {};
  }
  const auto replaced = read<1>(CUDSS_DATA_NPIVOTS);
  if (!replaced) return replaced.error();
  factors_.outcome = (*replaced)[0];
  if (pattern_.kind == direct::Kind::positive_definite) {
    if (factors_.outcome > 0) factors_.outcome = direct::no_factors;
    factors_.positive = pattern_.n;
    factors_.negative = 0;
  } else if (pattern_.kind != direct::Kind::general &&
             (pattern_.kind == direct::Kind::hermitian || !is_complex(pattern_.dtype))) {
    const auto inertia = read<2>(CUDSS_DATA_INERTIA);
    if (!inertia) return inertia.error();
    factors_.positive = (*inertia)[0];
    factors_.negative = (*inertia)[1];
  }
  return {};
}

Result<void> Factorisation::prepare(const Systems& systems) {
  if (factors_.outcome < 0 || pattern_.n == 0 || !needs_mirror(systems) || mirrored_ >= 0)
    return {};
  return with_index(pattern_.index_dtype, [&]<class I>(I) { return make_mirror<I>(); });
}

/// Of a half all elements beside the diagonal, else all: see kernels::Mirror.
template <class I>
Result<void> Factorisation::make_mirror() {
  Structure<I> host;
  TROUPE_CUDA_PROPAGATE(host.read(pattern_, stream_));
  const auto half = direct::half_of(pattern_.view);
  const auto each = [&](auto&& visit) {
    for (I row = 0; row < static_cast<I>(pattern_.n); ++row) {
      const auto at = static_cast<std::size_t>(row);
      for (auto k = host.row_begin[at]; k < host.row_begin[at + 1]; ++k) {
        const I column = host.column[static_cast<std::size_t>(k)];
        if (half != direct::Half::both && (column == row || !direct::counts(half, row, column)))
          continue;
        visit(row, static_cast<std::size_t>(column), k);
      }
    }
  };
  const auto n = static_cast<std::size_t>(pattern_.n);
  std::vector<I> begin(n + 1);
  each([&](I, std::size_t column, I) { ++begin[column + 1]; });
  for (std::size_t i = 0; i < n; ++i) begin[i + 1] = static_cast<I>(begin[i + 1] + begin[i]);
  const auto count = static_cast<std::size_t>(begin[n]);
  std::vector<I> all(n + 1 + 2 * count);  // begin, row, place
  std::copy(begin.begin(), begin.end(), all.begin());
  each([&](I row, std::size_t column, I k) {
    const auto at = n + 1 + static_cast<std::size_t>(begin[column]++);
    all[at] = row;
    all[at + count] = k;
  });
  TROUPE_CUDA_PROPAGATE(mirror_.reserve(all.size() * sizeof(I), stream_));
  TROUPE_CUDA_TRY(cudaMemcpyAsync(mirror_.get(), all.data(), all.size() * sizeof(I),
                                  cudaMemcpyDefault, stream_));
  TROUPE_CUDA_TRY(cudaStreamSynchronize(stream_));
  mirrored_ = static_cast<std::int64_t>(count);
  return {};
}

Result<void> Factorisation::solve_for(const void* b, void* x) {
  TROUPE_CUDA_TRY(cudssMatrixSetValues(b_.get(), b));
  TROUPE_CUDA_TRY(cudssMatrixSetValues(x_.get(), x));
  return execute(CUDSS_PHASE_SOLVE, "solve");
}

Result<void> Factorisation::solve(const Systems& systems) {
  if (pattern_.n == 0 || systems.columns == 0) return {};
  has_solved_ = true;
  TROUPE_CUDA_PROPAGATE(set(CUDSS_CONFIG_SOLVE_MODE, mode_of(pattern_, systems.transpose)));
  return with_number(pattern_.dtype, [&]<class T>(T) {
    return with_index(pattern_.index_dtype,
                      [&]<class I>(I) { return solve_as<Native<T>, I>(systems); });
  });
}

template <class T, class I>
Result<void> Factorisation::solve_as(const Systems& systems) {
  const auto n = pattern_.n;
  const auto mode = mode_of(pattern_, systems.transpose);
  auto* const missing = reinterpret_cast<T*>(columns_.get());
  auto* const correction = missing + n;
  kernels::Residual<T, I> residual;
  residual.n = n;
  residual.row_begin = static_cast<const I*>(pattern_.row_begin);
  residual.column = static_cast<const I*>(pattern_.column);
  residual.value = static_cast<const T*>(values_.value);
  const bool transposed = mode != CUDSS_SOLVE_MODE_NORMAL;
  residual.takes_below = !transposed && pattern_.view != direct::View::upper;
  residual.takes_above = !transposed && pattern_.view != direct::View::lower;
  if (needs_mirror(systems)) {
    const auto* const begin = reinterpret_cast<const I*>(mirror_.get());
    residual.mirror = {begin, begin + n + 1, begin + n + 1 + mirrored_};
    residual.conjugates_mirror = transposed ? mode == CUDSS_SOLVE_MODE_CONJUGATE_TRANSPOSE
                                            : pattern_.kind != direct::Kind::symmetric;
  }
  residual.r = missing;
  for (std::int64_t j = 0; j < systems.columns; ++j) {
    residual.b = reinterpret_cast<const T*>(systems.b) + j * systems.ldb;
    auto* const x = reinterpret_cast<T*>(systems.x) + j * systems.ldx;
    residual.x = x;
    TROUPE_CUDA_PROPAGATE(solve_for(residual.b, x));
    for (std::uint32_t step = 0; step < systems.refinement; ++step) {
      TROUPE_CUDA_TRY(kernels::residual(services_.launch(queue_), residual));
      TROUPE_CUDA_PROPAGATE(solve_for(missing, correction));
      TROUPE_CUDA_TRY(kernels::correct(services_.launch(queue_), n, correction, x));
    }
  }
  return {};
}

}  // namespace troupe::host::cuda
