#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include <troupe/lib/operation.hpp>

namespace troupe::wire {

/// Collects the first thing that is wrong with an operation.
class Checker {
 public:
  Checker(std::string_view op, DType dtype, DTypes allowed) : op_(op), dtype_(dtype) {
    if (!allowed.has(dtype)) {
      fail(Errc::unsupported,
           static_cast<std::size_t>(dtype) < kDTypeCount
               ? "no dtype " + std::string(to_string(dtype))
               : "unknown dtype " + std::to_string(static_cast<unsigned>(dtype)));
    }
  }

  Checker& require(bool holds, std::string_view what) {
    if (!holds) fail(Errc::invalid, std::string(what));
    return *this;
  }

  /// `operand` must hold `count` elements of `size` bytes each.
  Checker& holds(std::string_view name, const Operand& operand, std::int64_t count,
                 std::size_t size) {
    if (count < 0) {
      fail(Errc::invalid, std::string(name) + " has a negative length");
    } else if (!operand.present()) {
      fail(Errc::invalid, std::string(name) + " is missing");
    } else if (static_cast<std::uint64_t>(count) > operand.bytes / size) {
      fail(Errc::invalid, std::string(name) + " needs " + std::to_string(count) +
                              " elements, has " + std::to_string(operand.bytes / size));
    } else if (operand.offset % size != 0) {
      fail(Errc::invalid, std::string(name) + " is not aligned to its element size");
    }
    return *this;
  }
  Checker& holds(std::string_view name, const Operand& operand, std::int64_t count) {
    return ok() ? holds(name, operand, count, size_of(dtype_)) : *this;
  }
  Checker& holds(std::string_view name, const Operand& operand, std::uint64_t count) {
    return require(count <= kMaxCount, "count is too large")
        .holds(name, operand, static_cast<std::int64_t>(count));
  }
  /// `operand` must hold `count` elements for each of one or more ranks.
  Checker& parts(std::string_view name, const Operand& operand, std::uint64_t count) {
    holds(name, operand, count);
    if (!ok() || count == 0) return *this;
    return require(operand.bytes % (count * size_of(dtype_)) == 0,
                   std::string(name) + " must hold count elements for each rank");
  }
  /// A vector of n elements, `increment` apart.
  Checker& vector(std::string_view name, const Operand& operand, std::int64_t n,
                  std::int64_t increment) {
    require(n >= 0 && increment >= 1, "a length is negative or an increment is not positive");
    if (!ok()) return *this;
    std::int64_t last = 0;
    if (n > 0 && (__builtin_mul_overflow(n - 1, increment, &last) || last >= kMaxCount)) {
      return require(false, "a vector is too long");
    }
    return holds(name, operand, n == 0 ? 0 : last + 1);
  }
  /// A column-major matrix of rows x columns.
  Checker& matrix(std::string_view name, const Operand& operand, std::int64_t rows,
                  std::int64_t columns, std::int64_t leading) {
    require(rows >= 0 && columns >= 0, "a matrix has a negative extent");
    require(leading >= std::max<std::int64_t>(1, rows),
            "a leading dimension is smaller than the number of rows");
    if (!ok() || rows == 0 || columns == 0) return *this;
    std::int64_t length = 0;
    if (__builtin_mul_overflow(columns - 1, leading, &length) || length > kMaxCount - rows) {
      return require(false, "a matrix is too large");
    }
    return holds(name, operand, length + rows);
  }
  Checker& scalar(std::string_view name, const Scalar& scalar) {
    return scalar.device.present() ? holds(name, scalar.device, std::int64_t{1}) : *this;
  }

  [[nodiscard]] bool ok() const { return result_.ok(); }
  [[nodiscard]] Result<void> result() const { return result_; }

  static constexpr std::int64_t kMaxCount = std::int64_t{1}
                                            << 48;  ///< keeps all byte counts below 2^52

 private:
  void fail(Errc code, const std::string& what) {
    if (result_.ok()) result_ = Error{code, 0, std::string(op_) + ": " + what};
  }
  std::string_view op_;
  DType dtype_;
  Result<void> result_;
};

template <class Op>
Checker checker(const Op& op) {
  return {Op::kName, op.dtype, Op::kDTypes};
}

}  // namespace troupe::wire
