#pragma once

#include <array>
#include <span>
#include <vector>

#include <troupe/lib/blas/level3.hpp>

/// Operations on batches of matrices of one shape.
namespace troupe::blas {

/// C_i = alpha op(A_i) op(B_i) + beta C_i for `batch` triples of matrices, each as in Gemm.
///
/// Where they are: without a tail a, b and c hold all of them, the i-th `i * stride` elements from
/// the start; strides of A and B may be 0. With a tail a, b and c are absent and the tail has the
/// matrices, first all A, then all B, then all C; their tag is the Matrix.
struct GemmBatched {
  static constexpr std::string_view kName = "blas.gemm_batched";
  static constexpr DTypes kDTypes = kNumbersAndNarrow;
  static constexpr Traits kTraits = kComputesRecorded;
  static constexpr std::string_view kTail = "matrix";
  enum Matrix : std::uint32_t { of_a, of_b, of_c };

  OpDType dtype;
  Transpose transpose_a{}, transpose_b{};
  std::int64_t m = 0, n = 0, k = 0, lda = 0, ldb = 0, ldc = 0;
  std::int64_t batch = 0, stride_a = 0, stride_b = 0, stride_c = 0;
  Scalar alpha, beta;
  Operand a, b, c;

  static constexpr std::array kOperands{
      read("alpha", &GemmBatched::alpha), read("beta", &GemmBatched::beta),
      read("a", &GemmBatched::a), read("b", &GemmBatched::b), update("c", &GemmBatched::c)};
  Result<void> check() const;
  Result<void> check_parts(const Parts& parts) const;
  /// What a C in the tail is.
  [[nodiscard]] Access access_of_c() const noexcept {
    return beta.is_zero(scalar_type(dtype)) ? Access::write : Access::update;
  }
  [[nodiscard]] Access access(const Operand& range, Access declared) const noexcept {
    return &range == &c ? access_of_c() : declared;
  }
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    return batch == 1 || stride_c == m * n ? static_cast<std::uint64_t>(batch) * bytes_of_c() : 0;
  }
  [[nodiscard]] std::uint64_t tail_written(const TailOperand&) const noexcept {
    return bytes_of_c();
  }

 private:
  /// Bytes of one C if it has no gaps, else 0.
  [[nodiscard]] std::uint64_t bytes_of_c() const noexcept {
    return ldc == m ? static_cast<std::uint64_t>(m * n) * size_of(dtype) : 0;
  }
};

/// C_i = alpha op(A_i) op(B_i) + beta C_i for `batch` triples of matrices that lie anywhere in a, b
/// and c: `offsets` has 3 * batch elements, how many elements from the start of a each A begins,
/// then the same of B and of C. Two C that overlap get undefined contents. `outside` tells how many
/// offsets lie outside of their operand: where there are any the command fails with
/// Errc::invalid, and c goes stale.
struct GemmIndexed {
  static constexpr std::string_view kName = "blas.gemm_indexed";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = {.repeatable = true, .capturable = true};

  OpDType dtype;
  Transpose transpose_a{}, transpose_b{};
  std::int64_t m = 0, n = 0, k = 0, lda = 0, ldb = 0, ldc = 0, batch = 0;
  Scalar alpha, beta;
  Operand a, b, c;
  Operand offsets;  ///< std::int64_t
  Operand outside;  ///< std::int64_t

  static constexpr std::array kOperands{read("alpha", &GemmIndexed::alpha),
                                        read("beta", &GemmIndexed::beta),
                                        read("a", &GemmIndexed::a),
                                        read("b", &GemmIndexed::b),
                                        update("c", &GemmIndexed::c),
                                        read("offsets", &GemmIndexed::offsets),
                                        write("outside", &GemmIndexed::outside)};
  static constexpr auto kCell = &GemmIndexed::outside;
  Result<void> check() const;
  [[nodiscard]] Result<void> verdict(const std::byte* cell) const;
  [[nodiscard]] std::uint64_t written(const Operand& range) const noexcept {
    return &range == &outside ? sizeof(std::int64_t) : 0;
  }
};

/// How many elements A, B and C span of an operation like Gemm.
template <class Op>
constexpr std::array<std::int64_t, 3> spans_of(const Op& op) noexcept {
  const bool plain_a = op.transpose_a == Transpose::no, plain_b = op.transpose_b == Transpose::no;
  return {span_of(plain_a ? op.m : op.k, plain_a ? op.k : op.m, op.lda),
          span_of(plain_b ? op.k : op.n, plain_b ? op.n : op.k, op.ldb),
          span_of(op.m, op.n, op.ldc)};
}

/// The largest offsets that GemmIndexed takes of A, B and C, in elements.
constexpr std::array<std::int64_t, 3> last_offsets(const GemmIndexed& op) noexcept {
  const auto spans = spans_of(op);
  const auto room = [&op](const Operand& operand) {
    return static_cast<std::int64_t>(operand.bytes / size_of(op.dtype));
  };
  return {room(op.a) - spans[0], room(op.b) - spans[1], room(op.c) - spans[2]};
}

}  // namespace troupe::blas

namespace troupe {

/// How many matrices a batch has, and how many elements lie from one to the next.
struct BatchOptions {
  std::int64_t batch = 0;
  std::int64_t stride_a = 0, stride_b = 0, stride_c = 0;
};

/// The batches of BasicBlas.
template <class Refs>
class BlasBatches : public detail::Calls {
 public:
  template <Element T>
  using Ref = typename Refs::template To<T>;
  template <Element T>
  using ScalarArgument = ScalarOf<Ref<T>>;
  using Calls::Calls;

  /// C_i = alpha op(A_i) op(B_i) + beta C_i, the i-th matrix i strides from the start of a, b, c.
  template <class T>
  requires FieldElement<T> || NarrowElement<T> Future<void> gemm_batched(
      const Ref<T>& a, const Ref<T>& b, const Ref<T>& c, const GemmOptions& shape,
      const BatchOptions& batch, ScalarArgument<ScalarTypeOf<T>> alpha = ScalarTypeOf<T>(1),
      ScalarArgument<ScalarTypeOf<T>> beta = ScalarTypeOf<T>(0))
  const {
    auto op = detail::of_shape<blas::GemmBatched>(dtype_of<T>, shape, alpha.wire(), beta.wire());
    op.batch = batch.batch;
    op.stride_a = batch.stride_a, op.stride_b = batch.stride_b, op.stride_c = batch.stride_c;
    op.a = a.operand(), op.b = b.operand(), op.c = c.operand();
    return detail::submit(*submitter_, op);
  }
  /// C_i = alpha op(A_i) op(B_i) + beta C_i, each matrix a buffer, or a part of one. At most 1365.
  template <class T>
  requires FieldElement<T> || NarrowElement<T> Future<void> gemm_batched(
      std::type_identity_t<std::span<const Ref<T>>> a,
      std::type_identity_t<std::span<const Ref<T>>> b, const std::vector<Ref<T>>& c,
      const GemmOptions& shape, ScalarArgument<ScalarTypeOf<T>> alpha = ScalarTypeOf<T>(1),
      ScalarArgument<ScalarTypeOf<T>> beta = ScalarTypeOf<T>(0))
  const {
    auto op = detail::of_shape<blas::GemmBatched>(dtype_of<T>, shape, alpha.wire(), beta.wire());
    op.batch = static_cast<std::int64_t>(c.size());
    std::vector<TailOperand> tail;
    tail.reserve(a.size() + b.size() + c.size());
    for (const auto& one : a) tail.push_back({one.operand(), op.of_a, Access::read});
    for (const auto& one : b) tail.push_back({one.operand(), op.of_b, Access::read});
    for (const auto& one : c) tail.push_back({one.operand(), op.of_c, op.access_of_c()});
    return detail::submit(*submitter_, op, tail);
  }
  /// See blas::GemmIndexed; the batch is as large as `offsets` is long, by three.
  template <FieldElement T>
  Future<void> gemm_indexed(const Ref<T>& a, const Ref<T>& b, const Ref<T>& c,
                            const Ref<std::int64_t>& offsets, const GemmOptions& shape,
                            ScalarArgument<ScalarTypeOf<T>> alpha = ScalarTypeOf<T>(1),
                            ScalarArgument<ScalarTypeOf<T>> beta = ScalarTypeOf<T>(0)) const {
    auto op = detail::of_shape<blas::GemmIndexed>(dtype_of<T>, shape, alpha.wire(), beta.wire());
    op.batch = offsets.length() / 3;
    op.a = a.operand(), op.b = b.operand(), op.c = c.operand(), op.offsets = offsets.operand();
    return detail::then_at_once(detail::submit_for_value<std::int64_t>(*submitter_, op),
                                [](std::int64_t) {});
  }
};

}  // namespace troupe
