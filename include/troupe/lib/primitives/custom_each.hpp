#pragma once

#include <troupe/lib/primitives/custom.hpp>

/// An operator of the program's own that is called for each element of a buffer, or for each index
/// of a range, and changes buffers itself. Its kernels are compiled as those of
/// primitives/custom.hpp are. The calls of one launch come in no order: none may depend on what
/// another one has changed.
namespace troupe::detail::custom {

/// What the operator calls the type of that index; const as T is.
template <class T>
Type element_type_of(const primitives::CustomOperator& op, std::size_t index) {
  auto type = type_of<std::remove_const_t<T>>(op, index);
  if (std::is_const_v<T> && !type.name.empty()) type.name = "const " + type.name;
  return type;
}

/// As T is: const elements are read, others are read and written.
template <class T, class E>
auto access_to(const GpuRef<E>& buffer) {
  if constexpr (std::is_const_v<T>) {
    return read(buffer);
  } else {
    return update(buffer);
  }
}

}  // namespace troupe::detail::custom

namespace troupe::primitives {

/// op(x[i]), i < n, with an operator void(T&).
template <CustomElement T>
class CustomForEach {
 public:
  CustomForEach() = default;
  explicit CustomForEach(detail::custom::Kernels kernels) : kernels_(std::move(kernels)) {}

  /// Errors: invalid.
  template <Holds<T> E>
  Future<void> operator()(const GpuRef<E>& x) const {
    using namespace detail::custom;
    const auto n = elements_of<T>(x);
    if (n < 0) return kernels_.refuse("what is done for each element takes whole ones");
    return kernels_.launch(0, std::max<std::int64_t>(1, Spread(n).blocks), n, update(x));
  }

 private:
  detail::custom::Kernels kernels_;
};

/// op(i, x...), i < n, with an operator void(long long, T*...), which gets the addresses of all the
/// buffers and may read and write any of their elements; those of const types it only reads.
template <class... T>
class CustomBulk {
 public:
  CustomBulk() = default;
  explicit CustomBulk(detail::custom::Kernels kernels) : kernels_(std::move(kernels)) {}

  /// As many buffers as there are types; one that is written overlaps no other. How long they are
  /// compared with n is the operator's affair. Errors: invalid.
  template <class... E>
  requires(sizeof...(E) == sizeof...(T) && (Holds<E, std::remove_const_t<T>> && ...)) Future<void>
  operator()(std::int64_t n, const GpuRef<E>&... x) const {
    using namespace detail::custom;
    if (n < 0 || (... || (elements_of<std::remove_const_t<T>>(x) < 0)))
      return kernels_.refuse(
          "a range of indices is not negative, and buffers are of whole elements");
    return kernels_.launch(0, std::max<std::int64_t>(1, Spread(n).blocks), n, access_to<T>(x)...);
  }

 private:
  detail::custom::Kernels kernels_;
};

/// As compile_transform() and the others of primitives/custom.hpp:
///
///     compile_bulk<const float, float>(
///         device, {"[](long long i, const float* x, float* y) { y[i] = x[2 * i]; }"})
///         .get()(n, x, y);
///
/// The names of CustomOperator::types are without "const".
template <CustomElement T>
Future<CustomForEach<T>> compile_for_each(Device& device, const CustomOperator& op) {
  using namespace detail::custom;
  return compile<CustomForEach<T>>(device, Kind::for_each, op, {type_of<T>(op, 0)});
}
template <class... T>
requires(CustomElement<std::remove_const_t<T>>&&...) Future<CustomBulk<T...>> compile_bulk(
    Device& device, const CustomOperator& op) {
  using namespace detail::custom;
  std::size_t index = 0;
  const std::vector<Type> types{element_type_of<T>(op, index++)...};
  return compile<CustomBulk<T...>>(device, Kind::bulk, op, types);
}

}  // namespace troupe::primitives
