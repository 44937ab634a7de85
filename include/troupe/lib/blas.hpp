#pragma once

#include <troupe/lib/submit.hpp>

/// BLAS level 1 to 3 (reference: https://www.netlib.org/blas). Column-major; increments and leading
/// dimensions in elements; increments are positive.
namespace troupe::blas {

enum class Transpose : std::uint32_t { no, yes };

/// y = alpha x + y
struct Axpy {
  static constexpr std::string_view kName = "blas.axpy";
  static constexpr DTypes kDTypes = DTypes::reals();
  static constexpr Traits kTraits = kComputes;

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
  static constexpr Traits kTraits = kComputes;

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
  static constexpr Traits kTraits = kComputes;

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
  static constexpr Traits kTraits = kComputes;

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
  static constexpr Traits kTraits = kComputes;

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
  static constexpr Traits kTraits = kComputes;

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
  static constexpr Traits kTraits = kComputes;

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

inline const Library kLibrary{&info_of<Axpy>, &info_of<Dot>,  &info_of<Nrm2>, &info_of<Scal>,
                              &info_of<Copy>, &info_of<Gemv>, &info_of<Gemm>};

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
    const auto rows_a = shape.transpose_a == blas::Transpose::no ? shape.m : shape.k;
    const auto rows_b = shape.transpose_b == blas::Transpose::no ? shape.k : shape.n;
    return detail::submit(
        *submitter_,
        blas::Gemm{dtype_of<T>, shape.transpose_a, shape.transpose_b, shape.m, shape.n, shape.k,
                   shape.lda != 0 ? shape.lda : rows_a, shape.ldb != 0 ? shape.ldb : rows_b,
                   shape.ldc != 0 ? shape.ldc : shape.m, alpha.wire(), beta.wire(), a.operand(),
                   b.operand(), c.operand()});
  }

 private:
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
