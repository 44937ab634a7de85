#pragma once

#include <cblas.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <limits>
#include <type_traits>

#include <troupe/lib/blas.hpp>

#include "device_host/engine/cpu/library.hpp"
#include "lib/blas/looks/dense_product.hpp"

/// OpenBLAS counts in 32 bits: level 1 goes through longer vectors piece by piece, all else refuses
/// them.
namespace troupe::host::cpu {

/// The functions of OpenBLAS by type. Of complex numbers their scalars are addresses: see pass().
template <class T>
struct Cblas;

#define TROUPE_CBLAS_OF_ALL(s)                    \
  static constexpr auto axpy = cblas_##s##axpy;   \
  static constexpr auto copy = cblas_##s##copy;   \
  static constexpr auto swap = cblas_##s##swap;   \
  static constexpr auto scal = cblas_##s##scal;   \
  static constexpr auto iamax = cblas_i##s##amax; \
  static constexpr auto rotg = cblas_##s##rotg;   \
  static constexpr auto gemv = cblas_##s##gemv;   \
  static constexpr auto gbmv = cblas_##s##gbmv;   \
  static constexpr auto trmv = cblas_##s##trmv;   \
  static constexpr auto tbmv = cblas_##s##tbmv;   \
  static constexpr auto tpmv = cblas_##s##tpmv;   \
  static constexpr auto trsv = cblas_##s##trsv;   \
  static constexpr auto tbsv = cblas_##s##tbsv;   \
  static constexpr auto tpsv = cblas_##s##tpsv;   \
  static constexpr auto gemm = cblas_##s##gemm;   \
  static constexpr auto symm = cblas_##s##symm;   \
  static constexpr auto syrk = cblas_##s##syrk;   \
  static constexpr auto syr2k = cblas_##s##syr2k; \
  static constexpr auto trmm = cblas_##s##trmm;   \
  static constexpr auto trsm = cblas_##s##trsm;
#define TROUPE_CBLAS_OF_REALS(T, s)                 \
  template <>                                       \
  struct Cblas<T> {                                 \
    TROUPE_CBLAS_OF_ALL(s)                          \
    static constexpr auto dot = cblas_##s##dot;     \
    static constexpr auto nrm2 = cblas_##s##nrm2;   \
    static constexpr auto asum = cblas_##s##asum;   \
    static constexpr auto rot = cblas_##s##rot;     \
    static constexpr auto rotm = cblas_##s##rotm;   \
    static constexpr auto rotmg = cblas_##s##rotmg; \
    static constexpr auto symv = cblas_##s##symv;   \
    static constexpr auto sbmv = cblas_##s##sbmv;   \
    static constexpr auto spmv = cblas_##s##spmv;   \
    static constexpr auto ger = cblas_##s##ger;     \
    static constexpr auto syr = cblas_##s##syr;     \
    static constexpr auto spr = cblas_##s##spr;     \
    static constexpr auto syr2 = cblas_##s##syr2;   \
    static constexpr auto spr2 = cblas_##s##spr2;   \
  };
#define TROUPE_CBLAS_OF_COMPLEX(T, s, r)                  \
  template <>                                             \
  struct Cblas<T> {                                       \
    TROUPE_CBLAS_OF_ALL(s)                                \
    static constexpr auto dotu = cblas_##s##dotu_sub;     \
    static constexpr auto dotc = cblas_##s##dotc_sub;     \
    static constexpr auto nrm2 = cblas_##r##s##nrm2;      \
    static constexpr auto asum = cblas_##r##s##asum;      \
    static constexpr auto scal_real = cblas_##s##r##scal; \
    static constexpr auto hemv = cblas_##s##hemv;         \
    static constexpr auto hbmv = cblas_##s##hbmv;         \
    static constexpr auto hpmv = cblas_##s##hpmv;         \
    static constexpr auto geru = cblas_##s##geru;         \
    static constexpr auto gerc = cblas_##s##gerc;         \
    static constexpr auto her = cblas_##s##her;           \
    static constexpr auto hpr = cblas_##s##hpr;           \
    static constexpr auto her2 = cblas_##s##her2;         \
    static constexpr auto hpr2 = cblas_##s##hpr2;         \
    static constexpr auto hemm = cblas_##s##hemm;         \
    static constexpr auto herk = cblas_##s##herk;         \
    static constexpr auto her2k = cblas_##s##her2k;       \
  };
TROUPE_CBLAS_OF_REALS(float, s)
TROUPE_CBLAS_OF_REALS(double, d)
TROUPE_CBLAS_OF_COMPLEX(std::complex<float>, c, s)
TROUPE_CBLAS_OF_COMPLEX(std::complex<double>, z, d)
#undef TROUPE_CBLAS_OF_ALL
#undef TROUPE_CBLAS_OF_REALS
#undef TROUPE_CBLAS_OF_COMPLEX

/// A scalar as OpenBLAS takes it.
template <class T>
auto pass(const T& scalar) {
  if constexpr (ComplexElement<T>) {
    return static_cast<const void*>(&scalar);
  } else {
    return scalar;
  }
}
template <class T>
T conjugate(const T& x) {
  if constexpr (ComplexElement<T>) {
    return std::conj(x);
  } else {
    return x;
  }
}

inline CBLAS_TRANSPOSE flag(blas::Transpose transpose) {
  constexpr CBLAS_TRANSPOSE kFlags[] = {CblasNoTrans, CblasTrans, CblasConjTrans};
  return kFlags[static_cast<std::size_t>(transpose)];
}
inline CBLAS_UPLO flag(blas::Uplo uplo) {
  return uplo == blas::Uplo::lower ? CblasLower : CblasUpper;
}
inline CBLAS_SIDE flag(blas::Side side) {
  return side == blas::Side::left ? CblasLeft : CblasRight;
}
inline CBLAS_DIAG flag(blas::Diagonal diagonal) {
  return diagonal == blas::Diagonal::unit ? CblasUnit : CblasNonUnit;
}

inline int to_int(std::int64_t value) {
  return static_cast<int>(value);
}
inline Result<void> require_int(std::initializer_list<std::int64_t> values) {
  const auto [least, most] = std::minmax(values);
  if (most <= INT_MAX && least >= -INT_MAX) return {};
  return Error{Errc::unsupported, 0, "the cpu engine's BLAS takes sizes and increments below 2^31"};
}

/// Calls visit(T{}) for a number, Half or BFloat16.
template <class Visit>
Result<void> with_number_or_narrow(DType dtype, Visit&& visit) {
  if (dtype == DType::f16) return visit(Half{});
  if (dtype == DType::bf16) return visit(BFloat16{});
  return with_number(dtype, visit);
}

/// The i-th element of a vector of n; of a negative increment the first one is the last in memory.
template <class T>
T& element(T* x, std::int64_t n, std::int64_t increment, std::int64_t i) {
  return increment > 0 ? x[i * increment] : x[(i + 1 - n) * increment];
}
/// The nearest integer in the range of T, ties to even; 0 for what is not a number.
template <class T>
T integer_of(double x) {
  using Limits = std::numeric_limits<T>;
  if (std::isnan(x)) return 0;
  return static_cast<T>(
      std::clamp(std::nearbyint(x), double{Limits::min()}, double{Limits::max()}));
}
/// y = beta y: with beta = 0 zeros, whatever y holds.
template <class T>
void scale(std::int64_t n, T beta, T* y, std::int64_t increment) {
  const auto step = std::abs(increment);
  for (std::int64_t i = 0; i < n; ++i) y[i * step] = beta == T(0) ? T(0) : beta * y[i * step];
}
/// The element of a matrix of which one half is stored in full.
template <class T>
T& in_half(T* a, std::int64_t lda, blas::Uplo uplo, std::int64_t i, std::int64_t j) {
  const bool stored = uplo == blas::Uplo::lower ? i >= j : i <= j;
  return stored ? a[j * lda + i] : a[i * lda + j];
}
/// Calls visit(i, j) for the elements of one half, column by column.
template <class Visit>
void for_half(std::int64_t n, blas::Uplo uplo, Visit&& visit) {
  for (std::int64_t j = 0; j < n; ++j) {
    const auto first = uplo == blas::Uplo::lower ? j : 0;
    const auto end = uplo == blas::Uplo::lower ? n : j + 1;
    for (auto i = first; i < end; ++i) visit(i, j);
  }
}

class Blas;
/// True if a product is to be looked at.
bool is_looked_at(const OperationInfo& info, const std::byte* op, const Call& call, Blas& library);
/// Carries a product out, and looks at it if it is to be.
Result<void> run_or_look(const blas::Gemm& op, const Call& call, Blas& library);
Result<void> run_or_look(const blas::GemmEx& op, const Call& call, Blas& library);
Result<void> run_or_look(const blas::GemmBatched& op, const Call& call, Blas& library);
Result<void> run_or_look(const blas::Matmul& op, const Call& call, Blas& library);

class Blas final : public LibraryHalfOf<Blas, blas::Operations> {
 public:
  explicit Blas(Services& its_services)
      : services(its_services), looks(its_services.product_checks()) {
    ::openblas_set_num_threads(std::max(1, services.threads()));
  }
  [[nodiscard]] Dependencies stands_on() const override {
    return {{"OpenBLAS", ::openblas_get_config(), &::openblas_get_config}};
  }

  /// A product that is looked at does.
  [[nodiscard]] bool blocks(const OperationInfo& info, const std::byte* op,
                            const Call& call) override {
    return info.traits.blocking || is_looked_at(info, op, call, *this);
  }

  // For its operations.

  template <ProductThatIsLookedAt Op>
  Result<void> run(const Op& op, const Call& call) {
    return run_or_look(op, call, *this);
  }

  /// Queues work(c, s) on the vectors of a rotation.
  template <class Op, class Work>
  Result<void> rotate(const Op& op, const Call& call, Work&& work);

  Services& services;
  ProductLooks looks;
};

}  // namespace troupe::host::cpu
