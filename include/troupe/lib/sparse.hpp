#pragma once

#include <troupe/lib/operation.hpp>
#include <troupe/lib/submit.hpp>

/// Sparse matrices in compressed sparse row form, zero-based.
namespace troupe::sparse {

/// y = alpha A x + beta y, A being rows x columns in CSR form. `row_begin` (rows + 1) and `column` (nonzeros)
/// have `index_dtype` i32 or i64. The engine caches what it prepares for a matrix, by its buffers and shape: the values
/// may change between calls, a new pattern belongs into new buffers.
struct Spmv {
  static constexpr std::string_view kName = "sparse.spmv";
  static constexpr Lane kLane = Lane::sparse;
  static constexpr DTypes kDTypes = DTypes::reals();

  OpDType dtype;
  OpDType index_dtype;
  std::int64_t rows = 0, columns = 0, nonzeros = 0;
  Scalar alpha, beta;
  Operand row_begin, column, value, x, y;

  static constexpr auto kOperands = std::tuple{
      read("alpha", &Spmv::alpha), read("beta", &Spmv::beta),   read("row_begin", &Spmv::row_begin),
      read("column", &Spmv::column), read("value", &Spmv::value), read("x", &Spmv::x),
      update("y", &Spmv::y)};
  Result<void> check() const;
};

/// destination[i] = source[index[i]], i < count; indices i32 or i64.
struct Gather {
  static constexpr std::string_view kName = "sparse.gather";
  static constexpr Lane kLane = Lane::sparse;
  static constexpr DTypes kDTypes = DTypes::reals();

  OpDType dtype;
  OpDType index_dtype;
  std::int64_t count = 0, source_length = 0;
  Operand index, source, destination;

  static constexpr auto kOperands = std::tuple{read("index", &Gather::index), read("source", &Gather::source),
                                               write("destination", &Gather::destination)};
  Result<void> check() const;
};

}  // namespace troupe::sparse

namespace troupe {

/// Column and row indices: 32- or 64-bit.
template <class T>
concept Index = std::is_same_v<T, std::int32_t> || std::is_same_v<T, std::int64_t>;

/// A CSR matrix in device memory. `row_begin` has rows + 1 entries and starts at 0.
template <Real T, Index I>
struct CsrMatrix {
  std::int64_t rows = 0, columns = 0;
  GpuRef<I> row_begin, column;
  GpuRef<T> value;
};

/// Sparse linear algebra of one device; from `device.sparse()`.
class Sparse {
 public:
  explicit Sparse(detail::Submitter& submitter) : submitter_(&submitter) {}

  /// y = alpha A x + beta y
  template <Real T, Index I>
  Future<void> spmv(const CsrMatrix<T, I>& a, const GpuRef<T>& x, const GpuRef<T>& y, Factor<T> alpha = T(1),
                    Factor<T> beta = T(0)) {
    return detail::submit(*submitter_,
                          sparse::Spmv{dtype_of<T>, dtype_of<I>, a.rows, a.columns, a.value.length(), alpha.wire(),
                                       beta.wire(), a.row_begin.operand(), a.column.operand(), a.value.operand(),
                                       x.operand(), y.operand()});
  }
  /// destination[i] = source[index[i]]
  template <Real T, Index I>
  Future<void> gather(const GpuRef<T>& source, const GpuRef<I>& index, const GpuRef<T>& destination) {
    return detail::submit(*submitter_, sparse::Gather{dtype_of<T>, dtype_of<I>, index.length(), source.length(),
                                                      index.operand(), source.operand(), destination.operand()});
  }

 private:
  detail::Submitter* submitter_;
};

}  // namespace troupe
