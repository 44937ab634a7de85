#include "lib/sparse/cpu.hpp"
#include "lib/sparse/common/rows_cpu.hpp"

/// Sparse matrices as dense ones and the other way, on the cpu engine. Elements outside of the
/// matrix write nothing of others.
namespace troupe::host::cpu {
namespace {

using sparse::Format;

/// A dense matrix of rows x columns, in either order.
template <class T>
struct DenseTarget {
  std::int64_t rows, columns, row_step, column_step;
  T* element;

  template <class Op>
  DenseTarget(const Op& op, T* its_element)
      : rows(op.rows),
        columns(op.columns),
        row_step(op.order == blas::Order::column ? 1 : op.leading),
        column_step(op.order == blas::Order::column ? op.leading : 1),
        element(its_element) {}
  [[nodiscard]] T& at(std::int64_t i, std::int64_t j) const {
    return element[i * row_step + j * column_step];
  }
};

template <class T>
void clear(const DenseTarget<T>& dense) {
  const bool by_column = dense.row_step == 1;
  const auto lines = by_column ? dense.columns : dense.rows;
  const auto length = by_column ? dense.rows : dense.columns;
  const auto step = by_column ? dense.column_step : dense.row_step;
  for (std::int64_t line = 0; line < lines; ++line)
    std::fill_n(dense.element + line * step, length, T{});
}
/// A place that occurs twice counts as the sum.
template <class T>
void add_at(const DenseTarget<T>& dense, std::int64_t i, std::int64_t j, T value) {
  if (i >= 0 && i < dense.rows && j >= 0 && j < dense.columns) dense.at(i, j) += value;
}

/// Calls visit(row, column, element number) for each element of a sparse matrix.
template <class I, class Visit>
void each_place(const sparse::SparseToDense& op, const I* offsets, const I* index, Visit&& visit) {
  if (op.format == Format::coo) {
    for (std::int64_t k = 0; k < op.nonzeros; ++k)
      visit(std::int64_t{offsets[k]}, std::int64_t{index[k]}, k);
    return;
  }
  const bool by_row = op.format == Format::csr;
  for (std::int64_t line = 0; line < (by_row ? op.rows : op.columns); ++line) {
    const auto [begin, end] = row_range(offsets, line, op.nonzeros);
    for (std::int64_t k = begin; k < end; ++k) {
      const auto other = std::int64_t{index[k]};
      visit(by_row ? line : other, by_row ? other : line, k);
    }
  }
}

/// Where the elements of a dense matrix go.
template <class T, class I>
struct SparseTarget {
  I *offsets, *index;
  T* value;
};

/// Calls visit(line, at, value) for each element that is not 0, line by line, which are rows, or
/// the columns of CSC.
template <class T, class Visit>
void each_nonzero(const DenseTarget<const T>& dense, bool by_row, Visit&& visit) {
  for (std::int64_t line = 0; line < (by_row ? dense.rows : dense.columns); ++line) {
    for (std::int64_t at = 0; at < (by_row ? dense.columns : dense.rows); ++at) {
      const T value = by_row ? dense.at(line, at) : dense.at(at, line);
      if (value != T{}) visit(line, at, value);
    }
  }
}

/// The number of nonzeros.
template <class T, class I>
std::int64_t to_sparse(const sparse::DenseToSparse& op, const DenseTarget<const T>& dense,
                       const SparseTarget<T, I>& target) {
  const bool by_row = op.format != Format::csc;
  std::int64_t count = 0, begun = 0;
  const auto begin_lines_to = [&](std::int64_t line) {
    if (op.format == Format::coo) return;
    for (; begun <= line; ++begun) target.offsets[begun] = as_offset<I>(count);
  };
  each_nonzero(dense, by_row, [&](std::int64_t line, std::int64_t, T) {
    begin_lines_to(line);
    ++count;
  });
  begin_lines_to(by_row ? op.rows : op.columns);
  if (count > op.capacity) return count;
  std::int64_t k = 0;
  each_nonzero(dense, by_row, [&](std::int64_t line, std::int64_t at, T value) {
    if (op.format == Format::coo) target.offsets[k] = static_cast<I>(line);
    target.index[k] = static_cast<I>(at);
    target.value[k++] = value;
  });
  return count;
}

}  // namespace

Result<void> run(const sparse::SparseToDense& op, const Call& call, Sparse& library) {
  return with_number(op.dtype, [&](auto zero) {
    return with_index(op.index_dtype, [&](auto zero_index) {
      using T = decltype(zero);
      using I = decltype(zero_index);
      return library.services.submit(
          call,
          [op, offsets = call.at<const I>(op.offsets), index = call.at<const I>(op.index),
           value = call.at<const T>(op.value), dense = DenseTarget<T>(op, call.at<T>(op.dense))] {
            clear(dense);
            each_place(op, offsets, index, [&](std::int64_t i, std::int64_t j, std::int64_t k) {
              add_at(dense, i, j, value[k]);
            });
          });
    });
  });
}

Result<void> run(const sparse::BlockedEllToDense& op, const Call& call, Sparse& library) {
  return with_number(op.dtype, [&](auto zero) {
    return with_index(op.index_dtype, [&](auto zero_index) {
      using T = decltype(zero);
      using I = decltype(zero_index);
      return library.services.submit(
          call, [op, column = call.at<const I>(op.column), value = call.at<const T>(op.value),
                 dense = DenseTarget<T>(op, call.at<T>(op.dense))] {
            clear(dense);
            const std::int64_t length = op.width * op.block;
            for (std::int64_t i = 0; i < op.rows; ++i) {
              for (std::int64_t at = 0; at < length; ++at) {
                const auto j = std::int64_t{column[i / op.block * op.width + at / op.block]};
                if (j < 0 || j >= op.columns / op.block) continue;  // padding is -1
                dense.at(i, j * op.block + at % op.block) += value[i * length + at];
              }
            }
          });
    });
  });
}

Result<void> run(const sparse::DenseToSparse& op, const Call& call, Sparse& library) {
  return with_number(op.dtype, [&](auto zero) {
    return with_index(op.index_dtype, [&](auto zero_index) {
      using T = decltype(zero);
      using I = decltype(zero_index);
      return library.services.submit(
          call, [op, dense = DenseTarget<const T>(op, call.at<const T>(op.dense)),
                 target = SparseTarget<T, I>{if_present<I>(op.offsets, call),
                                             if_present<I>(op.index, call),
                                             if_present<T>(op.value, call)},
                 nonzeros = call.at<std::int64_t>(op.nonzeros)] {
            *nonzeros = to_sparse(op, dense, target);
          });
    });
  });
}

TROUPE_HANDLERS(Sparse)

}  // namespace troupe::host::cpu
