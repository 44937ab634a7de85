#pragma once

#include <string_view>

#include <troupe/lib/solver/types.hpp>
#include <troupe/lib/submit.hpp>

namespace troupe::detail {

/// Types and helpers of the calls of all families of Solver.
class SolverCalls : public Calls {
 public:
  template <FieldElement T>
  using Matrix = MatrixRef<GpuRef<T>>;
  using Info = Future<std::int32_t>;
  using Pivots = GpuRef<std::int64_t>;
  using Calls::Calls;

 protected:
  template <class M>
  static Length square(const M& a) {
    return {"a column of a square matrix", a.rows, a.columns};
  }
  /// An operation on a square matrix a.
  template <class Op, class M>
  static Op of_square(const M& a, OnFailure on_failure) {
    Op op;
    op.dtype = dtype_of<typename M::value_type>, op.on_failure = on_failure;
    op.n = a.columns, op.lda = a.leading, op.a = a.buffer.operand();
    return op;
  }
  /// The length of a matrix that may have no buffer: then it has every length.
  template <class M>
  static Length length(std::string_view name, const M& matrix, std::int64_t is,
                       std::int64_t needed) {
    return {name, matrix.buffer ? is : needed, needed};
  }
};

}  // namespace troupe::detail
