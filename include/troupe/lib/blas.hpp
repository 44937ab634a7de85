#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include <troupe/lib/submit.hpp>

/// BLAS level 1 to 3 (reference: https://www.netlib.org/blas). Column-major; increments and leading
/// dimensions in elements; increments are positive.
namespace troupe::blas {

enum class Transpose : std::uint32_t { no, yes };

/// y = alpha x + y
struct Axpy {
  static constexpr std::string_view kName = "blas.axpy";
  static constexpr DTypes kDTypes = DTypes::reals();
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  std::int64_t n = 0, incx = 1, incy = 1;
  Scalar alpha;
  Operand x, y;

  static constexpr auto kOperands =
      std::tuple{read("alpha", &Axpy::alpha), read("x", &Axpy::x), update("y", &Axpy::y)};
  static constexpr auto kInPlace = std::array{InPlace{"x", "y"}};
  Result<void> check() const;
};

/// result[0] = x . y
struct Dot {
  static constexpr std::string_view kName = "blas.dot";
  static constexpr DTypes kDTypes = DTypes::reals();
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  std::int64_t n = 0, incx = 1, incy = 1;
  Operand x, y, result;

  static constexpr auto kOperands =
      std::tuple{read("x", &Dot::x), read("y", &Dot::y), write("result", &Dot::result)};
  Result<void> check() const;
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept { return size_of(dtype); }
};

/// result[0] = sqrt(x . x), without overflow for large elements
struct Nrm2 {
  static constexpr std::string_view kName = "blas.nrm2";
  static constexpr DTypes kDTypes = DTypes::reals();
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  std::int64_t n = 0, incx = 1;
  Operand x, result;

  static constexpr auto kOperands = std::tuple{read("x", &Nrm2::x), write("result", &Nrm2::result)};
  Result<void> check() const;
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept { return size_of(dtype); }
};

/// x = alpha x
struct Scal {
  static constexpr std::string_view kName = "blas.scal";
  static constexpr DTypes kDTypes = DTypes::reals();
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  std::int64_t n = 0, incx = 1;
  Scalar alpha;
  Operand x;

  static constexpr auto kOperands = std::tuple{read("alpha", &Scal::alpha), update("x", &Scal::x)};
  Result<void> check() const;
};

/// y = x
struct Copy {
  static constexpr std::string_view kName = "blas.copy";
  static constexpr DTypes kDTypes = DTypes::reals();
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  std::int64_t n = 0, incx = 1, incy = 1;
  Operand x, y;

  static constexpr auto kOperands = std::tuple{read("x", &Copy::x), update("y", &Copy::y)};
  Result<void> check() const;
};

/// y = alpha op(A) x + beta y, A being m x n with leading dimension lda
struct Gemv {
  static constexpr std::string_view kName = "blas.gemv";
  static constexpr DTypes kDTypes = DTypes::reals();
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  Transpose transpose{};
  std::uint32_t reserved = 0;
  std::int64_t m = 0, n = 0, lda = 0, incx = 1, incy = 1;
  Scalar alpha, beta;
  Operand a, x, y;

  static constexpr auto kOperands =
      std::tuple{read("alpha", &Gemv::alpha), read("beta", &Gemv::beta), read("a", &Gemv::a),
                 read("x", &Gemv::x), update("y", &Gemv::y)};
  Result<void> check() const;
  /// With beta = 0 given by value, what stood in y is not read.
  [[nodiscard]] Access access(const Operand& range, Access declared) const noexcept {
    return &range == &y && beta.is_zero(dtype) ? Access::write : declared;
  }
  /// Nothing where A is empty: BLAS then leaves y as it is, whatever beta.
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    if (m == 0 || n == 0 || incy != 1) return 0;
    return static_cast<std::uint64_t>(transpose == Transpose::no ? m : n) * size_of(dtype);
  }
};

/// C = alpha op(A) op(B) + beta C, op(A) being m x k, op(B) k x n, C m x n
struct Gemm {
  static constexpr std::string_view kName = "blas.gemm";
  static constexpr DTypes kDTypes = DTypes::reals();
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  Transpose transpose_a{}, transpose_b{};
  std::int64_t m = 0, n = 0, k = 0, lda = 0, ldb = 0, ldc = 0;
  Scalar alpha, beta;
  Operand a, b, c;

  static constexpr auto kOperands =
      std::tuple{read("alpha", &Gemm::alpha), read("beta", &Gemm::beta), read("a", &Gemm::a),
                 read("b", &Gemm::b), update("c", &Gemm::c)};
  Result<void> check() const;
  /// With beta = 0 given by value, what stood in c is not read.
  [[nodiscard]] Access access(const Operand& range, Access declared) const noexcept {
    return &range == &c && beta.is_zero(dtype) ? Access::write : declared;
  }
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    return ldc == m ? static_cast<std::uint64_t>(m * n) * size_of(dtype) : 0;
  }
};

/// C_i = alpha op(A_i) op(B_i) + beta C_i for `batch` triples of matrices, each as in Gemm.
///
/// Where they are: without a tail a, b and c hold all of them, the i-th `i * stride` elements from
/// the start; strides of A and B may be 0. With a tail a, b and c are absent and the tail has the
/// matrices, first all A, then all B, then all C; their tag is the Matrix.
struct GemmBatched {
  static constexpr std::string_view kName = "blas.gemm_batched";
  static constexpr DTypes kDTypes = DTypes::reals();
  static constexpr Traits kTraits = kComputesRecorded;
  static constexpr std::string_view kTail = "matrix";
  enum Matrix : std::uint32_t { of_a, of_b, of_c };

  OpDType dtype;
  Transpose transpose_a{}, transpose_b{};
  std::int64_t m = 0, n = 0, k = 0, lda = 0, ldb = 0, ldc = 0;
  std::int64_t batch = 0, stride_a = 0, stride_b = 0, stride_c = 0;
  Scalar alpha, beta;
  Operand a, b, c;

  static constexpr auto kOperands = std::tuple{
      read("alpha", &GemmBatched::alpha), read("beta", &GemmBatched::beta),
      read("a", &GemmBatched::a), read("b", &GemmBatched::b), update("c", &GemmBatched::c)};
  Result<void> check() const;
  Result<void> check_parts(const Parts& parts) const;
  /// What a C in the tail is.
  [[nodiscard]] Access access_of_c() const noexcept {
    return beta.is_zero(dtype) ? Access::write : Access::update;
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
  /// Of one C if it has no gaps, else 0.
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
  static constexpr DTypes kDTypes = DTypes::reals();
  static constexpr Traits kTraits = {.repeatable = true};

  OpDType dtype;
  Transpose transpose_a{}, transpose_b{};
  std::int64_t m = 0, n = 0, k = 0, lda = 0, ldb = 0, ldc = 0, batch = 0;
  Scalar alpha, beta;
  Operand a, b, c;
  Operand offsets;  ///< std::int64_t
  Operand outside;  ///< std::int64_t

  static constexpr auto kOperands = std::tuple{read("alpha", &GemmIndexed::alpha),
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

/// How many elements a column-major matrix spans, gaps between columns included.
constexpr std::int64_t span_of(std::int64_t rows, std::int64_t columns,
                               std::int64_t leading) noexcept {
  return rows == 0 || columns == 0 ? 0 : (columns - 1) * leading + rows;
}
/// The same of A, B and C of an operation like Gemm.
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

inline const Library kLibrary{&info_of<Axpy>, &info_of<Dot>,         &info_of<Nrm2>,
                              &info_of<Scal>, &info_of<Copy>,        &info_of<Gemv>,
                              &info_of<Gemm>, &info_of<GemmBatched>, &info_of<GemmIndexed>};

}  // namespace troupe::blas

namespace troupe {

struct GemvOptions {
  std::int64_t m = 0, n = 0;
  std::int64_t lda = 0;  ///< 0: m
  blas::Transpose transpose = blas::Transpose::no;
};

struct GemmOptions {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t lda = 0, ldb = 0, ldc = 0;  ///< 0: the number of rows of A, B, C as stored
  blas::Transpose transpose_a = blas::Transpose::no, transpose_b = blas::Transpose::no;
};

/// How many matrices a batch has, and how many elements lie from one to the next.
struct BatchOptions {
  std::int64_t batch = 0;
  std::int64_t stride_a = 0, stride_b = 0, stride_c = 0;
};

/// Dense linear algebra of one device; from `device.blas()`. Results of reductions go to device
/// memory, so that nothing waits; factors are values or one-element buffers. Vectors of one call
/// are of the same length, unless its options say how long they are; what is written overlaps no
/// argument, but for `axpy`, whose x and y may be the same range.
template <class Refs>
class BasicBlas {
 public:
  template <Element T>
  using Ref = typename Refs::template To<T>;
  template <Element T>
  using Factor = FactorOf<Ref<T>>;

  explicit BasicBlas(detail::Submitter& submitter) : submitter_(&submitter) {}

  template <Real T>
  Future<void> axpy(Factor<T> alpha, const Ref<T>& x, const Ref<T>& y) {
    return detail::submit_exact(
        *submitter_,
        blas::Axpy{dtype_of<T>, x.length(), 1, 1, alpha.wire(), x.operand(), y.operand()},
        {{"y", y.length(), x.length()}});
  }
  template <Real T>
  Future<void> dot(const Ref<T>& x, const Ref<T>& y, const Ref<T>& result) {
    return detail::submit_exact(
        *submitter_,
        blas::Dot{dtype_of<T>, x.length(), 1, 1, x.operand(), y.operand(), result.operand()},
        {{"y", y.length(), x.length()}});
  }
  template <Real T>
  Future<void> nrm2(const Ref<T>& x, const Ref<T>& result) {
    return detail::submit(*submitter_,
                          blas::Nrm2{dtype_of<T>, x.length(), 1, x.operand(), result.operand()});
  }
  template <Real T>
  Future<void> scal(Factor<T> alpha, const Ref<T>& x) {
    return detail::submit(*submitter_,
                          blas::Scal{dtype_of<T>, x.length(), 1, alpha.wire(), x.operand()});
  }
  template <Real T>
  Future<void> copy(const Ref<T>& x, const Ref<T>& y) {
    return detail::submit_exact(*submitter_,
                                blas::Copy{dtype_of<T>, x.length(), 1, 1, x.operand(), y.operand()},
                                {{"y", y.length(), x.length()}});
  }
  /// y = alpha op(A) x + beta y
  template <Real T>
  Future<void> gemv(const Ref<T>& a, const Ref<T>& x, const Ref<T>& y, const GemvOptions& shape,
                    Factor<T> alpha = T(1), Factor<T> beta = T(0)) {
    return detail::submit(*submitter_,
                          blas::Gemv{dtype_of<T>, shape.transpose, 0, shape.m, shape.n,
                                     shape.lda != 0 ? shape.lda : shape.m, 1, 1, alpha.wire(),
                                     beta.wire(), a.operand(), x.operand(), y.operand()});
  }
  /// C = alpha op(A) op(B) + beta C
  template <Real T>
  Future<void> gemm(const Ref<T>& a, const Ref<T>& b, const Ref<T>& c, const GemmOptions& shape,
                    Factor<T> alpha = T(1), Factor<T> beta = T(0)) {
    auto op = of_shape<blas::Gemm>(dtype_of<T>, shape, alpha.wire(), beta.wire());
    op.a = a.operand(), op.b = b.operand(), op.c = c.operand();
    return detail::submit(*submitter_, op);
  }
  /// C_i = alpha op(A_i) op(B_i) + beta C_i, the i-th matrix i strides from the start of a, b, c.
  template <Real T>
  Future<void> gemm_batched(const Ref<T>& a, const Ref<T>& b, const Ref<T>& c,
                            const GemmOptions& shape, const BatchOptions& batch,
                            Factor<T> alpha = T(1), Factor<T> beta = T(0)) {
    auto op = of_shape<blas::GemmBatched>(dtype_of<T>, shape, alpha.wire(), beta.wire());
    op.batch = batch.batch;
    op.stride_a = batch.stride_a, op.stride_b = batch.stride_b, op.stride_c = batch.stride_c;
    op.a = a.operand(), op.b = b.operand(), op.c = c.operand();
    return detail::submit(*submitter_, op);
  }
  /// C_i = alpha op(A_i) op(B_i) + beta C_i, each matrix a buffer, or a part of one. At most 1365.
  template <Real T>
  Future<void> gemm_batched(std::type_identity_t<std::span<const Ref<T>>> a,
                            std::type_identity_t<std::span<const Ref<T>>> b,
                            const std::vector<Ref<T>>& c, const GemmOptions& shape,
                            Factor<T> alpha = T(1), Factor<T> beta = T(0)) {
    auto op = of_shape<blas::GemmBatched>(dtype_of<T>, shape, alpha.wire(), beta.wire());
    op.batch = static_cast<std::int64_t>(c.size());
    std::vector<TailOperand> tail;
    tail.reserve(a.size() + b.size() + c.size());
    for (const auto& one : a) tail.push_back({one.operand(), op.of_a, Access::read});
    for (const auto& one : b) tail.push_back({one.operand(), op.of_b, Access::read});
    for (const auto& one : c) tail.push_back({one.operand(), op.of_c, op.access_of_c()});
    return detail::submit(*submitter_, op, tail);
  }
  /// See blas::GemmIndexed; the batch is as large as `offsets` is long, by three.
  template <Real T>
  Future<void> gemm_indexed(const Ref<T>& a, const Ref<T>& b, const Ref<T>& c,
                            const Ref<std::int64_t>& offsets, const GemmOptions& shape,
                            Factor<T> alpha = T(1), Factor<T> beta = T(0)) {
    auto op = of_shape<blas::GemmIndexed>(dtype_of<T>, shape, alpha.wire(), beta.wire());
    op.batch = offsets.length() / 3;
    op.a = a.operand(), op.b = b.operand(), op.c = c.operand(), op.offsets = offsets.operand();
    return detail::submit_for_value<std::int64_t>(*submitter_, op).then([](std::int64_t) {});
  }

 private:
  /// All but the operands and the batch.
  template <class Op>
  static Op of_shape(DType dtype, const GemmOptions& shape, const Scalar& alpha,
                     const Scalar& beta) {
    Op op;
    op.dtype = dtype;
    op.transpose_a = shape.transpose_a, op.transpose_b = shape.transpose_b;
    op.m = shape.m, op.n = shape.n, op.k = shape.k;
    const auto leading = [](std::int64_t given, std::int64_t rows) {
      return given != 0 ? given : std::max<std::int64_t>(1, rows);
    };
    op.lda = leading(shape.lda, shape.transpose_a == blas::Transpose::no ? shape.m : shape.k);
    op.ldb = leading(shape.ldb, shape.transpose_b == blas::Transpose::no ? shape.k : shape.n);
    op.ldc = leading(shape.ldc, shape.m);
    op.alpha = alpha, op.beta = beta;
    return op;
  }

  detail::Submitter* submitter_;
};

using Blas = BasicBlas<LocalRefs>;

namespace blas {
/// Of a Device, of what Device::prepare() gives, or of a RemoteDevice.
template <class D>
BasicBlas<RefsOf<D>> on(D&& device) {
  return BasicBlas<RefsOf<D>>(device.submitter());
}
}  // namespace blas

}  // namespace troupe
