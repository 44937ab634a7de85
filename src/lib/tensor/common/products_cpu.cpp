#include <cblas.h>

#include <algorithm>
#include <climits>
#include <complex>

#include "lib/tensor/common/rows_cpu.hpp"

// Products of tensors as those of matrices: both are copied into matrices whose rows and columns
// are modes of one of them alone, BLAS multiplies these, and the product is a tensor again.

namespace troupe::tensor {
namespace {

/// The modes of a product: those of each matrix of a batch, of its rows, of its columns, and of the
/// sums.
struct Groups {
  std::vector<std::size_t> batch, rows, columns, sums;

  Groups(const Extents& modes, const PerMode& in_a, const PerMode& in_b,
         const std::array<bool, kMaxModes>& kept) {
    for (std::size_t i = 0; i < modes.count; ++i) {
      if (in_a[i] > 0 && in_b[i] > 0)
        (kept[i] ? batch : sums).push_back(i);
      else if (in_a[i] > 0)
        rows.push_back(i);
      else if (in_b[i] > 0)
        columns.push_back(i);
    }
  }
};

std::int64_t volume(const Extents& modes, const std::vector<std::size_t>& group) {
  std::int64_t elements = 1;
  for (const auto i : group) elements *= modes.extents[i];
  return elements;
}

/// The elements of a source in the order of these modes, the last of the last group varying
/// fastest.
template <class W>
std::vector<W> packed(const Extents& modes, const Source<W>& source,
                      std::initializer_list<const std::vector<std::size_t>*> groups) {
  Nest<1> nest;
  std::int64_t elements = 1;
  for (const auto* const group : groups) {
    elements *= volume(modes, *group);
    for (const auto i : *group) nest.add(modes.extents[i], {source.strides[i]});
  }
  std::vector<W> values(static_cast<std::size_t>(elements));
  auto* to = values.data();
  nest.for_each_row([&](const auto& at, std::int64_t count, const auto& steps) {
    source.read(at[0], steps[0], count, to);
    to += count;
  });
  return values;
}

/// c = a b, row-major: rows x columns, by sums of so many products.
struct Shape {
  std::int64_t rows = 0, columns = 0, sums = 0;
};
template <class W>
void multiply_matrices(const Shape& shape, const W* a, const W* b, W* c) {
  if (shape.rows * shape.columns * shape.sums <= 16) {  // a call takes longer
    for (std::int64_t i = 0; i < shape.rows; ++i) {
      for (std::int64_t j = 0; j < shape.columns; ++j) {
        W sum{};
        for (std::int64_t k = 0; k < shape.sums; ++k)
          sum += a[i * shape.sums + k] * b[k * shape.columns + j];
        c[i * shape.columns + j] = sum;
      }
    }
    return;
  }
  const auto m = static_cast<int>(shape.rows), n = static_cast<int>(shape.columns),
             k = static_cast<int>(shape.sums);
  const W one(1), zero(0);
  const auto call = [&](auto gemm, const auto& alpha, const auto& beta) {
    gemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, alpha, a, k, b, n, beta, c, n);
  };
  if constexpr (std::is_same_v<W, float>)
    call(cblas_sgemm, one, zero);
  else if constexpr (std::is_same_v<W, double>)
    call(cblas_dgemm, one, zero);
  else if constexpr (std::is_same_v<W, std::complex<float>>)
    call(cblas_cgemm, &one, &zero);
  else
    call(cblas_zgemm, &one, &zero);
}

}  // namespace

bool can_multiply(const Extents& modes, const PerMode& in_a, const PerMode& in_b,
                  const std::array<bool, kMaxModes>& kept) noexcept {
  const Groups groups(modes, in_a, in_b, kept);
  return std::max({volume(modes, groups.rows), volume(modes, groups.columns),
                   volume(modes, groups.sums)}) <= INT_MAX;
}

template <class W>
Product<W> multiply(const Extents& modes, const Source<W>& a, const Source<W>& b,
                    const std::array<bool, kMaxModes>& kept) {
  const Groups groups(modes, a.strides, b.strides, kept);
  const auto left = packed(modes, a, {&groups.batch, &groups.rows, &groups.sums});
  const auto right = packed(modes, b, {&groups.batch, &groups.sums, &groups.columns});
  const Shape shape{volume(modes, groups.rows), volume(modes, groups.columns),
                    volume(modes, groups.sums)};
  const auto batch = volume(modes, groups.batch);
  Product<W> product;
  product.values.resize(static_cast<std::size_t>(batch * shape.rows * shape.columns));
  for (std::int64_t i = 0; i < batch; ++i) {
    multiply_matrices(shape, left.data() + i * shape.rows * shape.sums,
                      right.data() + i * shape.sums * shape.columns,
                      product.values.data() + i * shape.rows * shape.columns);
  }
  std::int64_t stride = 1;
  for (const auto* const group : {&groups.columns, &groups.rows, &groups.batch}) {
    for (auto i = group->size(); i-- > 0;) {
      product.strides[(*group)[i]] = stride;
      stride *= std::max<std::int64_t>(modes.extents[(*group)[i]], 1);
    }
  }
  return product;
}

template Product<float> multiply(const Extents&, const Source<float>&, const Source<float>&,
                                 const std::array<bool, kMaxModes>&);
template Product<double> multiply(const Extents&, const Source<double>&, const Source<double>&,
                                  const std::array<bool, kMaxModes>&);
template Product<std::complex<float>> multiply(const Extents&, const Source<std::complex<float>>&,
                                               const Source<std::complex<float>>&,
                                               const std::array<bool, kMaxModes>&);
template Product<std::complex<double>> multiply(const Extents&, const Source<std::complex<double>>&,
                                                const Source<std::complex<double>>&,
                                                const std::array<bool, kMaxModes>&);

}  // namespace troupe::tensor
