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
/// A scalar of another type than the operation.
inline Checker& scalar(Checker& checks, std::string_view name, const Scalar& scalar, DType dtype) {
  if (!checks.ok() || !scalar.device.present()) return checks;
  return checks.holds(name, scalar.device, 1, size_of(dtype));
}
inline bool is_complex(DType dtype) {
  return dtype == DType::c64 || dtype == DType::c128;
}
inline bool known(Transpose transpose) {
  return transpose <= Transpose::conjugate;
}
inline bool known(Order order) {
  return order <= Order::row;
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

/// How a matrix lies in memory.
struct Layout {
  std::int64_t rows = 0, columns = 0, leading = 1;
  Order order{};

  /// How many columns, or rows, and elements of each.
  [[nodiscard]] std::int64_t lines() const { return order == Order::column ? columns : rows; }
  [[nodiscard]] std::int64_t length() const { return order == Order::column ? rows : columns; }
};
/// A batch of matrices of another type than the operation's.
inline void check_batch(Checker& checks, std::string_view name, const Operand& operand,
                        const Layout& layout, std::int64_t stride, std::int64_t batch,
                        DType dtype) {
  constexpr std::int64_t kMaxLeadingBytes = std::int64_t{1} << 31;
  const auto lines = layout.lines(), length = layout.length();
  checks.require(lines >= 0 && length >= 0, "a matrix has a negative extent")
      .require(layout.leading >= std::max<std::int64_t>(1, length),
               layout.order == Order::column
                   ? "a leading dimension is smaller than the number of rows"
                   : "a leading dimension is smaller than the number of columns")
      .require(layout.leading < kMaxLeadingBytes / static_cast<std::int64_t>(size_of(dtype)),
               "a leading dimension is 2^31 bytes or more")
      .require(stride >= 0, "a stride is negative");
  if (!checks.ok() || lines == 0 || length == 0 || batch == 0) return;
  std::int64_t span = 0, last = 0;
  if (__builtin_mul_overflow(lines - 1, layout.leading, &span) ||
      __builtin_mul_overflow(batch - 1, stride, &last) ||
      last > Checker::kMaxCount - length - std::min(span, Checker::kMaxCount) ||
      span > Checker::kMaxCount - length) {
    checks.require(false, std::string(name) + " is too large");
    return;
  }
  checks.holds(name, operand, last + span + length, size_of(dtype));
}
/// The same of one that is written: its matrices lie apart.
inline void check_result_batch(Checker& checks, std::string_view name, const Operand& operand,
                               const Layout& layout, std::int64_t stride, std::int64_t batch,
                               DType dtype) {
  check_batch(checks, name, operand, layout, stride, batch, dtype);
  if (!checks.ok() || layout.rows == 0 || layout.columns == 0) return;
  checks.require(batch <= 1 || stride >= (layout.lines() - 1) * layout.leading + layout.length(),
                 "matrices of " + std::string(name) + " overlap");
}

}  // namespace troupe::blas
