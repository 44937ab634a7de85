#include "lib/sparse/cuda.hpp"
#include "lib/sparse/triangular/kernels.cuh"

/// Systems with triangular matrices on the cuda engine. A right side goes to a workspace on its
/// way, multiplied by alpha, unless it is a vector that may be taken as it is. So cuSPARSE always
/// solves out of place, with matrices in one order, and an analysis knows no scalar.
namespace troupe::host::cuda {
namespace {

bool is_complex(DType dtype) {
  return dtype == DType::c64 || dtype == DType::c128;
}

/// cuSPARSE gets a matrix by rows. One by columns is the transpose of such a one.
template <class Op>
TriangularSystem system_of(const Op& op, const Call& call) {
  const bool by_column = op.a.format == sparse::Format::csc;
  TriangularSystem system{};
  system.outer = call.at(op.outer), system.inner = call.at(op.inner);
  system.value = call.at(op.value);
  system.outer_contents = contents_of(op.outer), system.inner_contents = contents_of(op.inner);
  system.value_contents = contents_of(op.value);
  system.n = op.a.rows, system.nonzeros = op.a.nonzeros, system.stored = op.a.stored;
  if (op.a.format == sparse::Format::sell) system.slice_rows = op.a.block;
  system.dtype = op.dtype, system.index_dtype = op.a.index_dtype;
  system.by_place = op.a.format == sparse::Format::coo;
  system.lower = (op.uplo == blas::Uplo::lower) != by_column;
  system.unit = op.diagonal == blas::Diagonal::unit;
  system.transposed = (op.transpose != blas::Transpose::no) != by_column;
  if constexpr (std::is_same_v<Op, sparse::Spsm>) {
    system.columns = op.columns;
    system.row_major = op.order_x == blas::Order::row || op.a.rows == 1;
    system.leading = op.a.rows == 1 ? op.columns : op.ldx;
  }
  return system;
}

/// Whether the matrix is to be conjugated, which cuSPARSE does not do without transposing. Then it
/// solves conj(op(T)) conj(x) = conj(alpha b).
template <class Op>
bool conjugates_sides(const Op& op) {
  return op.transpose == blas::Transpose::conjugate && is_complex(op.dtype);
}

template <class T>
kernels::ScaledCopy<Native<T>> right_side(const sparse::Spsv& op, const Call& call) {
  kernels::ScaledCopy<Native<T>> copy;
  copy.rows = op.a.rows, copy.columns = 1;
  copy.from = call.at<const Native<T>>(op.b);
  copy.to = call.at<Native<T>>(op.x);
  copy.alpha = native_scalar<T>(op.alpha, call);
  return copy;
}
template <class T>
kernels::ScaledCopy<Native<T>> right_side(const sparse::Spsm& op, const Call& call) {
  const bool b_by_column = op.order_b == blas::Order::column;
  const bool x_by_column = op.order_x == blas::Order::column;
  kernels::ScaledCopy<Native<T>> copy;
  copy.rows = op.a.rows, copy.columns = op.columns;
  copy.from = call.at<const Native<T>>(op.b);
  copy.from_row_step = b_by_column ? 1 : op.ldb;
  copy.from_column_step = b_by_column ? op.ldb : 1;
  copy.to = call.at<Native<T>>(op.x);
  copy.to_row_step = x_by_column ? 1 : op.ldx;
  copy.to_column_step = x_by_column ? op.ldx : 1;
  copy.alpha = native_scalar<T>(op.alpha, call);
  return copy;
}

/// A vector that is not the solution too, and alpha is 1.
template <class T>
bool is_taken_as_it_is(const kernels::ScaledCopy<Native<T>>& side) {
  return side.columns == 1 && side.from_row_step == 1 && side.to_row_step == 1 &&
         side.from != side.to && side.alpha.device == nullptr &&
         std::bit_cast<T>(side.alpha.value) == T(1);
}

/// A system of one row is solved with its right sides side by side: with columns, cuSPARSE 12.6
/// gets the first of many wrong. Then a solution of columns that are not side by side is copied.
template <class Copy>
bool has_gaps_in_its_row(const Copy& side) {
  return side.rows == 1 && side.columns > 1 && side.to_column_step != 1;
}

}  // namespace

template <class Op>
bool analyses_block(const Op& op, const Call& call, Sparse& library) {
  if (op.a.rows == 0 || op.a.nonzeros == 0) return false;
  if constexpr (std::is_same_v<Op, sparse::Spsm>) {
    if (op.columns == 0) return false;
  }
  return !library.analyses<Op>(library.state(call.queue())).ready(system_of(op, call));
}

template <class Op>
Result<void> solve(const Op& op, const Call& call, Sparse& library) {
  return with_number(op.dtype, [&]<class T>(T) -> Result<void> {
    const auto launch = library.services.launch(call.queue());
    auto to_solution = right_side<T>(op, call);
    if (to_solution.rows == 0 || to_solution.columns == 0) return {};
    if (op.a.nonzeros == 0) {  // then the diagonal is all ones
      TROUPE_CUDA_TRY(kernels::copy_scaled(launch, to_solution));
      return {};
    }
    auto& own = library.state(call.queue());
    const auto system = system_of(op, call);
    TROUPE_CUDA_PROPAGATE(library.point_at(own, ScalarsAt::host));
    if (!conjugates_sides(op) && is_taken_as_it_is<T>(to_solution)) {
      return library.analyses<Op>(own).solve(library.services, launch, own.handle.get(), system,
                                             {op.outer, op.inner, op.value}, to_solution.from,
                                             to_solution.to);
    }
    const auto elements = static_cast<std::size_t>(to_solution.rows * to_solution.columns);
    const bool apart = has_gaps_in_its_row(to_solution);
    TROUPE_CUDA_PROPAGATE(own.workspace.reserve(library.services, call.queue(),
                                                (apart ? 2 : 1) * elements * sizeof(T)));
    auto to_workspace = to_solution;
    to_workspace.to = static_cast<Native<T>*>(own.workspace.get());
    to_workspace.to_row_step = system.row_major ? to_solution.columns : 1;
    to_workspace.to_column_step = system.row_major ? 1 : to_solution.rows;
    to_workspace.conjugate = conjugates_sides(op);
    TROUPE_CUDA_TRY(kernels::copy_scaled(launch, to_workspace));
    auto* const solved = apart ? to_workspace.to + elements : to_solution.to;
    TROUPE_CUDA_PROPAGATE(
        library.analyses<Op>(own).solve(library.services, launch, own.handle.get(), system,
                                        {op.outer, op.inner, op.value}, to_workspace.to, solved));
    if (!to_workspace.conjugate && !apart) return {};
    const auto& steps = apart ? to_workspace : to_solution;
    to_solution.from_row_step = steps.to_row_step;
    to_solution.from_column_step = steps.to_column_step;
    to_solution.from = solved;
    to_solution.alpha = {nullptr, std::bit_cast<Native<T>>(T(1))};
    to_solution.conjugate = to_workspace.conjugate;
    TROUPE_CUDA_TRY(kernels::copy_scaled(launch, to_solution));
    return {};
  });
}

bool solves_block(const OperationInfo& info, const std::byte* op, const Call& call,
                  Sparse& library) {
  if (info.opcode == opcode_of<sparse::Spsv>)
    return analyses_block(*reinterpret_cast<const sparse::Spsv*>(op), call, library);
  if (info.opcode == opcode_of<sparse::Spsm>)
    return analyses_block(*reinterpret_cast<const sparse::Spsm*>(op), call, library);
  return info.traits.blocking;
}

Result<void> run(const sparse::Spsv& op, const Call& call, Sparse& library) {
  return solve(op, call, library);
}
Result<void> run(const sparse::Spsm& op, const Call& call, Sparse& library) {
  return solve(op, call, library);
}

TROUPE_HANDLERS(Sparse)

}  // namespace troupe::host::cuda
