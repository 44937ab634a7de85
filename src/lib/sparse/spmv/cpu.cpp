#include <array>

#include "lib/sparse/common/products_cpu.hpp"

/// Products of sparse matrices with vectors on the cpu engine. A row is summed up by one thread, in
/// an order that its length alone decides: so the same bits come with any number of threads.
namespace troupe::host::cpu {
namespace {

template <class T, class I>
struct Product {
  sparse::Form form;
  blas::Transpose transpose{};
  const I *outer, *inner;
  const T* value;
  T alpha, beta;
  const T* x;
  T* y;

  void store(std::int64_t i, T sum) const {
    const T product = weighed(alpha, sum);
    y[i] = beta == T(0) ? product : product + times(beta, y[i]);
  }
  /// What entry k contributes. Wrong columns read nothing, nor does padding: x may be infinite
  /// where it points to.
  [[nodiscard]] T term(std::int64_t k, std::uint64_t columns) const {
    using Unsigned = std::make_unsigned_t<I>;
    const auto column = static_cast<Unsigned>(inner[k]);
    return column < columns ? times(value[k], x[column]) : T(0);
  }
};

/// Rows [first, last) of a CSR matrix. Four sums stand side by side: none waits for the one before.
template <class T, class I>
void multiply_rows(const Product<T, I>& product, std::int64_t columns, std::int64_t first,
                   std::int64_t last) {
  const auto width = static_cast<std::uint64_t>(columns);
  const auto clamped = [&](I offset) {
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(offset), 0, product.form.stored);
  };
  for (std::int64_t row = first; row < last; ++row) {
    auto k = clamped(product.outer[row]);
    const auto end = clamped(product.outer[row + 1]);
    T a{}, b{}, c{}, d{};
    for (; k + 4 <= end; k += 4) {
      a += product.term(k, width);
      b += product.term(k + 1, width);
      c += product.term(k + 2, width);
      d += product.term(k + 3, width);
    }
    for (; k < end; ++k) a += product.term(k, width);
    product.store(row, (a + b) + (c + d));
  }
}

/// Slices [first, last) of a matrix in sliced ELL form. The inner loop runs down a column of a
/// slice, without a dependency from one row to the next.
template <class T, class I>
void multiply_slices(const Product<T, I>& product, std::int64_t first, std::int64_t last) {
  constexpr std::int64_t kBlock = 32;  // rows of a slice whose sums stay in the first cache
  const auto& form = product.form;
  const auto width = static_cast<std::uint64_t>(form.columns);
  const auto clamped = [&](I offset) {
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(offset), 0, form.stored);
  };
  for (auto slice = first; slice < last; ++slice) {
    const auto begin = clamped(product.outer[slice]), end = clamped(product.outer[slice + 1]);
    const auto first_row = slice * form.block;
    const auto rows = std::min(form.block, form.rows - first_row);
    for (std::int64_t block = 0; block < rows; block += kBlock) {
      std::array<T, kBlock> sums{};
      const auto add = [&](std::int64_t at, std::int64_t count) {
        for (std::int64_t i = 0; i < count; ++i)
          sums[static_cast<std::size_t>(i)] += product.term(at + i, width);
      };
      const auto count = std::min(kBlock, rows - block);
      for (auto at = begin + block; at + count <= end; at += form.block)
        count == kBlock ? add(at, kBlock) : add(at, count);
      for (std::int64_t i = 0; i < count; ++i)
        product.store(first_row + block + i, sums[static_cast<std::size_t>(i)]);
    }
  }
}

template <class T, class I>
void multiply(const Product<T, I>& product, Team& team) {
  using sparse::Format;
  const auto& form = product.form;
  const bool plain = product.transpose == blas::Transpose::no;
  const bool transposed = product.transpose == blas::Transpose::yes ||
                          (!ComplexElement<T> && product.transpose == blas::Transpose::conjugate);
  const auto share = [&](std::int64_t items, const Team::Part& part) {
    form.stored < kSharedProducts ? part(0, items) : team.share(items, part);
  };
  if (form.format == Format::csr && plain) {
    share(form.rows, [&](std::int64_t first, std::int64_t last) {
      multiply_rows(product, form.columns, first, last);
    });
  } else if (form.format == Format::csc && transposed) {  // the CSR form of the transpose
    share(form.columns, [&](std::int64_t first, std::int64_t last) {
      multiply_rows(product, form.rows, first, last);
    });
  } else if (form.format == Format::sell && plain) {
    share(form.outer_length() - 1,
          [&](std::int64_t first, std::int64_t last) { multiply_slices(product, first, last); });
  } else {
    const DenseView<const T> x(product.x, blas::Order::row, 1);
    const DenseView<T> y(product.y, blas::Order::row, 1);
    multiply(SparseProduct<T, I>{form, product.transpose, product.outer, product.inner,
                                 product.value, 1, x, y, product.alpha, product.beta},
             team);
  }
}

}  // namespace

Result<void> run(const sparse::Spmv& op, const Call& call, Sparse& library) {
  return with_number(op.dtype, [&](auto zero) {
    return with_index(op.a.index_dtype, [&](auto zero_index) {
      using T = decltype(zero);
      using I = decltype(zero_index);
      Product<T, I> product{op.a,
                            op.transpose,
                            call.at<const I>(op.outer),
                            call.at<const I>(op.inner),
                            call.at<const T>(op.value),
                            {},
                            {},
                            call.at<const T>(op.x),
                            call.at<T>(op.y)};
      return library.services.submit(
          call, [product, alpha = ScalarValue<T>(op.alpha, call),
                 beta = ScalarValue<T>(op.beta, call), team = library.team]() mutable {
            product.alpha = alpha.get(), product.beta = beta.get();
            multiply(product, *team);
          });
    });
  });
}

TROUPE_HANDLERS(Sparse)

}  // namespace troupe::host::cpu
