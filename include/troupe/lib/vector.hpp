#pragma once

#include <troupe/lib/submit.hpp>

/// Elementwise operations on vectors that BLAS lacks. troupe's own kernels.
namespace troupe::vectors {

/// z[i] = x[i] * y[i], i < n.
struct Multiply {
  static constexpr std::string_view kName = "vector.multiply";
  static constexpr DTypes kDTypes = DTypes::reals();
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  std::int64_t n = 0;
  Operand x, y, z;

  static constexpr std::array kOperands{read("x", &Multiply::x), read("y", &Multiply::y),
                                        write("z", &Multiply::z)};
  static constexpr auto kInPlace = std::array{InPlace{"x", "z"}, InPlace{"y", "z"}};
  Result<void> check() const;
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    return static_cast<std::uint64_t>(n) * size_of(dtype);
  }
};

/// z[i] = x[i] / y[i], i < n, with IEEE semantics for y[i] = 0.
struct Divide {
  static constexpr std::string_view kName = "vector.divide";
  static constexpr DTypes kDTypes = DTypes::reals();
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  std::int64_t n = 0;
  Operand x, y, z;

  static constexpr std::array kOperands{read("x", &Divide::x), read("y", &Divide::y),
                                        write("z", &Divide::z)};
  static constexpr auto kInPlace = std::array{InPlace{"x", "z"}, InPlace{"y", "z"}};
  Result<void> check() const;
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    return static_cast<std::uint64_t>(n) * size_of(dtype);
  }
};

/// y[i] = alpha x[i] + beta y[i], i < n. With beta = 0 given by value, y need not be initialised.
struct Axpby {
  static constexpr std::string_view kName = "vector.axpby";
  static constexpr DTypes kDTypes = DTypes::reals();
  static constexpr Traits kTraits = kComputesRecorded;

  OpDType dtype;
  std::int64_t n = 0;
  Scalar alpha, beta;
  Operand x, y;

  static constexpr std::array kOperands{read("alpha", &Axpby::alpha), read("beta", &Axpby::beta),
                                        read("x", &Axpby::x), update("y", &Axpby::y)};
  static constexpr auto kInPlace = std::array{InPlace{"x", "y"}};
  Result<void> check() const;
  /// With beta = 0 given by value, what stood in y is not read.
  [[nodiscard]] Access access(const Operand& range, Access declared) const noexcept {
    return &range == &y && beta.is_zero(dtype) ? Access::write : declared;
  }
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    return static_cast<std::uint64_t>(n) * size_of(dtype);
  }
};

/// All of them; whoever includes this header knows them.
using Operations = List<Multiply, Divide, Axpby>;
std::span<const OperationInfo* const> operations() noexcept;
inline const Library kLibrary{operations()};

}  // namespace troupe::vectors

namespace troupe {

/// Elementwise vector operations; from `device.vector()`. Vectors are contiguous and of the same
/// length. The result is the very range of an argument, or overlaps none.
template <class Refs>
class BasicVector {
 public:
  template <Element T>
  using Ref = typename Refs::template To<T>;
  template <Element T>
  using ScalarArgument = ScalarOf<Ref<T>>;

  explicit BasicVector(detail::Submitter& submitter) : submitter_(&submitter) {}

  /// z = x .* y
  template <RealElement T>
  Future<void> multiply(const Ref<T>& x, const Ref<T>& y, const Ref<T>& z) const {
    return elementwise<vectors::Multiply>(x, y, z);
  }
  /// z = x ./ y
  template <RealElement T>
  Future<void> divide(const Ref<T>& x, const Ref<T>& y, const Ref<T>& z) const {
    return elementwise<vectors::Divide>(x, y, z);
  }
  /// y = alpha x + beta y
  template <RealElement T>
  Future<void> axpby(ScalarArgument<T> alpha, const Ref<T>& x, ScalarArgument<T> beta,
                     const Ref<T>& y) const {
    return detail::submit_exact(*submitter_,
                                vectors::Axpby{dtype_of<T>, x.length(), alpha.wire(), beta.wire(),
                                               x.operand(), y.operand()},
                                {{"y", y.length(), x.length()}});
  }

 private:
  template <class Op, class V>
  Future<void> elementwise(const V& x, const V& y, const V& z) const {
    return detail::submit_exact(
        *submitter_,
        Op{dtype_of<typename V::value_type>, x.length(), x.operand(), y.operand(), z.operand()},
        {{"y", y.length(), x.length()}, {"z", z.length(), x.length()}});
  }

  detail::Submitter* submitter_;
};

namespace vectors {
/// The library's operations on a Device, on what Device::prepare() gives, or on a RemoteDevice.
template <class D>
BasicVector<RefsOf<D>> on(D&& device) {
  return BasicVector<RefsOf<D>>(device.submitter());
}
}  // namespace vectors

}  // namespace troupe
