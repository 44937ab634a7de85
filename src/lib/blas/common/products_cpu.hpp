#pragma once

#include <vector>

#include "common/core/narrow.hpp"
#include "lib/blas/cpu.hpp"

/// Products of matrices by OpenBLAS, of one or of a batch.
namespace troupe::host::cpu {

/// One product of an operation like Gemm. With alpha = 0 its factors are not read, as OpenBLAS does
/// for small matrices (0.3.21).
template <FieldElement T, class Op>
void multiply(const Op& op, T alpha, const T* a, const T* b, T beta, T* c) {
  const auto k = alpha == T(0) ? 0 : op.k;
  Cblas<T>::gemm(CblasColMajor, flag(op.transpose_a), flag(op.transpose_b), to_int(op.m),
                 to_int(op.n), to_int(k), pass(alpha), a, to_int(op.lda), b, to_int(op.ldb),
                 pass(beta), c, to_int(op.ldc));
}

/// A matrix of f16 or bf16 in f32, with the same gaps.
template <NarrowElement T>
std::vector<float> widened(const T* matrix, std::int64_t span) {
  std::vector<float> wide(static_cast<std::size_t>(span));
  std::transform(matrix, matrix + span, wide.begin(), [](T x) { return to_float(x); });
  return wide;
}

/// OpenBLAS has no products of 16-bit numbers.
template <NarrowElement T, class Op>
void multiply(const Op& op, float alpha, const T* a, const T* b, float beta, T* c) {
  const auto [span_a, span_b, span_c] = blas::spans_of(op);
  const auto wide_a = widened(a, span_a), wide_b = widened(b, span_b);
  auto wide_c = widened(c, span_c);
  multiply(op, alpha, wide_a.data(), wide_b.data(), beta, wide_c.data());
  for (std::int64_t j = 0; j < op.n; ++j) {
    for (std::int64_t i = 0; i < op.m; ++i)
      c[j * op.ldc + i] = from_float<T>(wide_c[static_cast<std::size_t>(j * op.ldc + i)]);
  }
}

/// Row i of op(A) times column j of op(B), modulo 2^32.
template <class Op>
std::uint32_t integer_dot(const Op& op, const std::int8_t* a, const std::int8_t* b, std::int64_t i,
                          std::int64_t j) {
  const bool plain_a = op.transpose_a == blas::Transpose::no,
             plain_b = op.transpose_b == blas::Transpose::no;
  std::uint32_t sum = 0;
  for (std::int64_t l = 0; l < op.k; ++l) {
    sum += static_cast<std::uint32_t>(int{a[plain_a ? l * op.lda + i : i * op.lda + l]} *
                                      int{b[plain_b ? j * op.ldb + l : l * op.ldb + j]});
  }
  return sum;
}

}  // namespace troupe::host::cpu
