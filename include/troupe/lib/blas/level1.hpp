#pragma once

#include <troupe/lib/blas/types.hpp>

/// BLAS level 1 (reference: https://www.netlib.org/blas). Increments in elements, never zero; of
/// either sign where two vectors go together, else positive.
namespace troupe::blas {

/// Which numbers a scalar of complex vectors is one of.
enum class ScalarKind : std::uint32_t { own, real };

/// y = alpha x + y
struct Axpy {
  static constexpr std::string_view kName = "blas.axpy";
  static constexpr DTypes kDTypes = kNumbersAndNarrow;
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  std::int64_t n = 0, incx = 1, incy = 1;
  Scalar alpha;  ///< of scalar_type(dtype)
  Operand x, y;

  static constexpr std::array kOperands{read("alpha", &Axpy::alpha), read("x", &Axpy::x),
                                        update("y", &Axpy::y)};
  static constexpr auto kInPlace = std::array{InPlace{"x", "y"}};  ///< with equal increments
  Result<void> check() const;
};

/// result[0] = x . y, the elements of x conjugated or as they are
struct Dot {
  static constexpr std::string_view kName = "blas.dot";
  static constexpr DTypes kDTypes = kNumbersAndNarrow;
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  std::int64_t n = 0, incx = 1, incy = 1;
  Operand x, y, result;
  Conjugate conjugate{};
  std::uint32_t reserved = 0;

  static constexpr std::array kOperands{read("x", &Dot::x), read("y", &Dot::y),
                                        write("result", &Dot::result)};
  Result<void> check() const;
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept { return size_of(dtype); }
};

/// result[0] = sqrt(sum of |x_i|^2), without overflow for large elements; of real_type(dtype)
struct Nrm2 {
  static constexpr std::string_view kName = "blas.nrm2";
  static constexpr DTypes kDTypes = kNumbersAndNarrow;
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  std::int64_t n = 0, incx = 1;
  Operand x, result;

  static constexpr std::array kOperands{read("x", &Nrm2::x), write("result", &Nrm2::result)};
  Result<void> check() const;
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    return size_of(real_type(dtype));
  }
};

/// result[0] = sum of |Re x_i| + |Im x_i|; of real_type(dtype)
struct Asum {
  static constexpr std::string_view kName = "blas.asum";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  std::int64_t n = 0, incx = 1;
  Operand x, result;

  static constexpr std::array kOperands{read("x", &Asum::x), write("result", &Asum::result)};
  Result<void> check() const;
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    return size_of(real_type(dtype));
  }
};

/// result[0], an std::int64_t, = the first i, from 0 on, with the largest or smallest
/// |Re x_i| + |Im x_i|; -1 if there is no element
struct Iamax {
  static constexpr std::string_view kName = "blas.iamax";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = kComputesRecorded;
  enum class Which : std::uint32_t { largest, smallest };

  OpDType dtype;
  Which which{};
  std::uint32_t reserved = 0;
  std::int64_t n = 0, incx = 1;
  Operand x, result;

  static constexpr std::array kOperands{read("x", &Iamax::x), write("result", &Iamax::result)};
  Result<void> check() const;
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    return sizeof(std::int64_t);
  }
};

/// x = alpha x
struct Scal {
  static constexpr std::string_view kName = "blas.scal";
  static constexpr DTypes kDTypes = kNumbersAndNarrow;
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  std::int64_t n = 0, incx = 1;
  Scalar alpha;  ///< of scalar_type(dtype), or of its real type
  Operand x;
  ScalarKind kind{};
  std::uint32_t reserved = 0;

  static constexpr std::array kOperands{read("alpha", &Scal::alpha), update("x", &Scal::x)};
  Result<void> check() const;
};

/// y = x
struct Copy {
  static constexpr std::string_view kName = "blas.copy";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  std::int64_t n = 0, incx = 1, incy = 1;
  Operand x, y;

  static constexpr std::array kOperands{read("x", &Copy::x), update("y", &Copy::y)};
  Result<void> check() const;
};

/// x and y change places
struct Swap {
  static constexpr std::string_view kName = "blas.swap";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  std::int64_t n = 0, incx = 1, incy = 1;
  Operand x, y;

  static constexpr std::array kOperands{update("x", &Swap::x), update("y", &Swap::y)};
  Result<void> check() const;
};

/// (x_i, y_i) = (c x_i + s y_i, c y_i - conj(s) x_i)
struct Rot {
  static constexpr std::string_view kName = "blas.rot";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  ScalarKind sine{};  ///< of what numbers s is one
  std::uint32_t reserved = 0;
  std::int64_t n = 0, incx = 1, incy = 1;
  Scalar c;  ///< of real_type(dtype)
  Scalar s;
  Operand x, y;

  static constexpr std::array kOperands{read("c", &Rot::c), read("s", &Rot::s),
                                        update("x", &Rot::x), update("y", &Rot::y)};
  Result<void> check() const;
};

/// The rotation that takes (a, b) to (r, 0): a becomes r, b becomes z (of real numbers), from which
/// the rotation can be rebuilt. c is of real_type(dtype). One element each.
struct Rotg {
  static constexpr std::string_view kName = "blas.rotg";
  static constexpr DTypes kDTypes = kNumbers;
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  Operand a, b, c, s;

  static constexpr std::array kOperands{update("a", &Rotg::a), update("b", &Rotg::b),
                                        write("c", &Rotg::c), write("s", &Rotg::s)};
  Result<void> check() const;
  [[nodiscard]] std::uint64_t written(const Operand& range) const noexcept {
    return size_of(&range == &c ? real_type(dtype) : dtype.value);
  }
};

/// (x_i, y_i) = H (x_i, y_i), H being the modified rotation that the five elements of `param` tell
struct Rotm {
  static constexpr std::string_view kName = "blas.rotm";
  static constexpr DTypes kDTypes = DTypes::reals();
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  std::int64_t n = 0, incx = 1, incy = 1;
  Operand x, y, param;

  static constexpr std::array kOperands{update("x", &Rotm::x), update("y", &Rotm::y),
                                        read("param", &Rotm::param)};
  Result<void> check() const;
};

/// The modified rotation, five elements of `param`, that takes (sqrt(d1) x1, sqrt(d2) y1) to a
/// multiple of (1, 0). d1, d2, x1 and y1 are one element each.
struct Rotmg {
  static constexpr std::string_view kName = "blas.rotmg";
  static constexpr DTypes kDTypes = DTypes::reals();
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  Operand d1, d2, x1, y1, param;

  static constexpr std::array kOperands{update("d1", &Rotmg::d1), update("d2", &Rotmg::d2),
                                        update("x1", &Rotmg::x1), read("y1", &Rotmg::y1),
                                        update("param", &Rotmg::param)};
  Result<void> check() const;
};

}  // namespace troupe::blas

namespace troupe {

/// Level 1 of BasicBlas. A vector is a whole buffer, or a VectorRef. Vectors of one call are of the
/// same length. Results of reductions go to device memory, so that nothing waits; scalars are
/// values or one-element buffers. What is written overlaps no argument, but for `axpy`, whose x and
/// y may be the same.
template <class Refs>
class BlasLevel1 : public detail::Calls {
 public:
  template <Element T>
  using Ref = typename Refs::template To<T>;
  template <Element T>
  using ScalarArgument = ScalarOf<Ref<T>>;

  using Calls::Calls;

  /// y = alpha x + y; also f16 and bf16, as scal, dot and nrm2
  template <class X, class Y, class T = typename X::value_type>
  requires VectorsOf<Refs, T, X, Y> &&
      (FieldElement<T> || NarrowElement<T>)Future<void> axpy(ScalarArgument<ScalarTypeOf<T>> alpha,
                                                             const X& x, const Y& y) const {
    return pair(
        [&](const auto& u, const auto& v) {
          return blas::Axpy{dtype_of<T>,  u.length,           u.increment,       v.increment,
                            alpha.wire(), u.buffer.operand(), v.buffer.operand()};
        },
        x, y);
  }
  /// x = alpha x
  template <class X, class T = typename X::value_type>
  requires VectorsOf<Refs, T, X> &&
      (FieldElement<T> || NarrowElement<T>)Future<void> scal(ScalarArgument<ScalarTypeOf<T>> alpha,
                                                             const X& x) const {
    return scale(alpha.wire(), x, blas::ScalarKind::own);
  }
  /// The same of a complex vector by a real scalar.
  template <class X, class T = typename X::value_type>
  requires VectorsOf<Refs, T, X> && ComplexElement<T> Future<void> scal_real(
      ScalarArgument<RealOf<T>> alpha, const X& x)
  const { return scale(alpha.wire(), x, blas::ScalarKind::real); }
  /// result[0] = x . y, without conjugation: dotu of complex vectors
  template <class X, class Y, class T = typename X::value_type>
  requires VectorsOf<Refs, T, X, Y> &&
      (FieldElement<T> || NarrowElement<T>)Future<void> dot(const X& x, const Y& y,
                                                            const Ref<T>& result) const {
    return product(x, y, result, blas::Conjugate::no);
  }
  /// result[0] = x^H y
  template <class X, class Y, class T = typename X::value_type>
  requires VectorsOf<Refs, T, X, Y> && ComplexElement<T> Future<void> dotc(const X& x, const Y& y,
                                                                           const Ref<T>& result)
  const { return product(x, y, result, blas::Conjugate::yes); }
  /// result[0] = the Euclidean norm of x
  template <class X, class T = typename X::value_type>
  requires VectorsOf<Refs, T, X> &&
      (FieldElement<T> || NarrowElement<T>)Future<void> nrm2(const X& x,
                                                             const Ref<RealOf<T>>& result) const {
    const auto u = detail::vector_of(x);
    return detail::submit(*submitter_, blas::Nrm2{dtype_of<T>, u.length, u.increment,
                                                  u.buffer.operand(), result.operand()});
  }
  /// result[0] = sum of |Re x_i| + |Im x_i|
  template <class X, class T = typename X::value_type>
  requires VectorsOf<Refs, T, X> && FieldElement<T> Future<void> asum(const X& x,
                                                                      const Ref<RealOf<T>>& result)
  const {
    const auto u = detail::vector_of(x);
    return detail::submit(*submitter_, blas::Asum{dtype_of<T>, u.length, u.increment,
                                                  u.buffer.operand(), result.operand()});
  }
  /// result[0] = where x is largest, from 0 on; see blas::Iamax
  template <class X, class T = typename X::value_type>
  requires VectorsOf<Refs, T, X> && FieldElement<T> Future<void> iamax(
      const X& x, const Ref<std::int64_t>& result)
  const { return extreme(blas::Iamax::Which::largest, x, result); }
  /// The same where it is smallest.
  template <class X, class T = typename X::value_type>
  requires VectorsOf<Refs, T, X> && FieldElement<T> Future<void> iamin(
      const X& x, const Ref<std::int64_t>& result)
  const { return extreme(blas::Iamax::Which::smallest, x, result); }
  /// y = x
  template <class X, class Y, class T = typename X::value_type>
  requires VectorsOf<Refs, T, X, Y> && FieldElement<T> Future<void> copy(const X& x, const Y& y)
  const { return move<blas::Copy>(x, y); }
  /// x and y change places
  template <class X, class Y, class T = typename X::value_type>
  requires VectorsOf<Refs, T, X, Y> && FieldElement<T> Future<void> swap(const X& x, const Y& y)
  const { return move<blas::Swap>(x, y); }
  /// A rotation of the points (x_i, y_i); see blas::Rot
  template <class X, class Y, class T = typename X::value_type>
  requires VectorsOf<Refs, T, X, Y> && FieldElement<T> Future<void> rot(const X& x, const Y& y,
                                                                        ScalarArgument<RealOf<T>> c,
                                                                        ScalarArgument<T> s)
  const { return rotate(x, y, c.wire(), s.wire(), blas::ScalarKind::own); }
  /// The same of complex points by a real sine.
  template <class X, class Y, class T = typename X::value_type>
  requires VectorsOf<Refs, T, X, Y> && ComplexElement<T> Future<void> rot_real(
      const X& x, const Y& y, ScalarArgument<RealOf<T>> c, ScalarArgument<RealOf<T>> s)
  const { return rotate(x, y, c.wire(), s.wire(), blas::ScalarKind::real); }
  /// See blas::Rotg; one element each.
  template <FieldElement T>
  Future<void> rotg(const Ref<T>& a, const Ref<T>& b, const Ref<RealOf<T>>& c,
                    const Ref<T>& s) const {
    return detail::submit(
        *submitter_, blas::Rotg{dtype_of<T>, a.operand(), b.operand(), c.operand(), s.operand()});
  }
  /// See blas::Rotm; `param` has five elements.
  template <class X, class Y, class T = typename X::value_type>
  requires VectorsOf<Refs, T, X, Y> && RealElement<T> Future<void> rotm(const X& x, const Y& y,
                                                                        const Ref<T>& param)
  const {
    return pair(
        [&](const auto& u, const auto& v) {
          return blas::Rotm{dtype_of<T>,        u.length,           u.increment,    v.increment,
                            u.buffer.operand(), v.buffer.operand(), param.operand()};
        },
        x, y);
  }
  /// See blas::Rotmg; `param` has five elements, all else is one.
  template <RealElement T>
  Future<void> rotmg(const Ref<T>& d1, const Ref<T>& d2, const Ref<T>& x1, const Ref<T>& y1,
                     const Ref<T>& param) const {
    return detail::submit(*submitter_, blas::Rotmg{dtype_of<T>, d1.operand(), d2.operand(),
                                                   x1.operand(), y1.operand(), param.operand()});
  }

 private:
  /// Two vectors of the same length.
  template <class Make, class X, class Y>
  Future<void> pair(Make&& make, const X& x, const Y& y) const {
    const auto u = detail::vector_of(x);
    const auto v = detail::vector_of(y);
    return detail::submit_exact(*submitter_, make(u, v), {{"y", v.length, u.length}});
  }
  template <class X>
  Future<void> scale(const Scalar& alpha, const X& x, blas::ScalarKind kind) const {
    const auto u = detail::vector_of(x);
    return detail::submit(*submitter_, blas::Scal{dtype_of<typename X::value_type>, u.length,
                                                  u.increment, alpha, u.buffer.operand(), kind, 0});
  }
  template <class X, class Y, class R>
  Future<void> product(const X& x, const Y& y, const R& result, blas::Conjugate conjugate) const {
    return pair(
        [&](const auto& u, const auto& v) {
          return blas::Dot{dtype_of<typename X::value_type>,
                           u.length,
                           u.increment,
                           v.increment,
                           u.buffer.operand(),
                           v.buffer.operand(),
                           result.operand(),
                           conjugate,
                           0};
        },
        x, y);
  }
  template <class X>
  Future<void> extreme(blas::Iamax::Which which, const X& x,
                       const Ref<std::int64_t>& result) const {
    const auto u = detail::vector_of(x);
    return detail::submit(
        *submitter_, blas::Iamax{dtype_of<typename X::value_type>, which, 0, u.length, u.increment,
                                 u.buffer.operand(), result.operand()});
  }
  template <class Op, class X, class Y>
  Future<void> move(const X& x, const Y& y) const {
    return pair(
        [](const auto& u, const auto& v) {
          return Op{dtype_of<typename X::value_type>,
                    u.length,
                    u.increment,
                    v.increment,
                    u.buffer.operand(),
                    v.buffer.operand()};
        },
        x, y);
  }
  template <class X, class Y>
  Future<void> rotate(const X& x, const Y& y, const Scalar& c, const Scalar& s,
                      blas::ScalarKind sine) const {
    return pair(
        [&](const auto& u, const auto& v) {
          return blas::Rot{dtype_of<typename X::value_type>,
                           sine,
                           0,
                           u.length,
                           u.increment,
                           v.increment,
                           c,
                           s,
                           u.buffer.operand(),
                           v.buffer.operand()};
        },
        x, y);
  }
};

}  // namespace troupe
