#pragma once

#include <string>
#include <string_view>

#include <troupe/lib/blas.hpp>

#include "common/wire/checker.hpp"

/// What the checks of BLAS operations have in common.
namespace troupe::blas {

using wire::checker;
using wire::Checker;

/// A vector whose increment may be negative.
inline Checker& either_way(Checker& checks, std::string_view name, const Operand& operand,
                           std::int64_t n, std::int64_t increment) {
  checks.require(increment != 0 && increment != INT64_MIN, "an increment is zero or too large");
  return checks.ok() ? checks.vector(name, operand, n, increment < 0 ? -increment : increment)
                     : checks;
}
/// A factor of another type than the operation.
inline Checker& factor(Checker& checks, std::string_view name, const Scalar& scalar, DType dtype) {
  if (!checks.ok() || !scalar.device.present()) return checks;
  return checks.holds(name, scalar.device, 1, size_of(dtype));
}
inline bool is_complex(DType dtype) {
  return dtype == DType::c64 || dtype == DType::c128;
}
inline bool known(Transpose transpose) {
  return transpose <= Transpose::conjugate;
}
inline bool known(Uplo uplo) {
  return uplo <= Uplo::upper;
}
inline bool known(Side side) {
  return side <= Side::right;
}
inline bool known(Diagonal diagonal) {
  return diagonal <= Diagonal::unit;
}
/// "symmetric or Hermitian, and that of a dtype which has it"
inline Checker& symmetry_of(Checker& checks, DType dtype, Symmetry symmetry) {
  return checks.require(symmetry <= Symmetry::hermitian, "unknown symmetry")
      .require(symmetry == Symmetry::symmetric || is_complex(dtype),
               "real matrices are symmetric, not Hermitian");
}
inline bool same_range(const Operand& a, const Operand& b) {
  return a.present() && a.region == b.region && a.buffer == b.buffer && a.offset == b.offset;
}
/// A square matrix of which one half counts.
inline Checker& half(Checker& checks, std::string_view name, const Operand& a, Storage storage,
                     std::int64_t n, std::int64_t k, std::int64_t lda) {
  // The largest packed matrix that can be counted.
  constexpr std::int64_t kMaxOrder = std::int64_t{1} << 24;
  switch (storage) {
    case Storage::full: return checks.matrix(name, a, n, n, lda);
    case Storage::banded:
      return checks.require(k >= 0 && k < Checker::kMaxCount, "k is negative or too large")
          .matrix(name, a, k < 0 ? 0 : k + 1, n, lda);
    case Storage::packed:
      checks.require(n >= 0 && n <= kMaxOrder, "n is negative or above 2^24");
      return checks.ok() ? checks.holds(name, a, packed_size(n)) : checks;
  }
  return checks.require(false, "unknown storage");
}

constexpr std::int64_t kMaxBatch = std::int64_t{1} << 31;

/// `batch` parts of `span` elements, a stride apart.
inline void strided(Checker& checks, std::string_view name, const Operand& operand,
                    std::int64_t span, std::int64_t stride, std::int64_t batch) {
  std::int64_t last = 0;
  if (batch > 0 &&
      (__builtin_mul_overflow(batch - 1, stride, &last) || last > Checker::kMaxCount - span)) {
    checks.require(false, std::string(name) + " is too large");
  }
  if (batch > 0 && span > 0) checks.holds(name, operand, last + span);
}

}  // namespace troupe::blas
