#pragma once

#include <troupe/lib/tensor.hpp>

#include <string>
#include <vector>

#include "bad_arguments.hpp"
#include "narrow_numbers.hpp"
#include "reference/tensors.hpp"

/// Tensors of tests: put on the device, and compared with the reference.
namespace troupe::test {

using reference::PerLetter;
using reference::Wide;

template <class T>
T stored_of(const Wide& x) {
  if constexpr (NarrowElement<T>)
    return {nearest_bits<T>(x.real())};
  else
    return reference::to_number<T>(x);
}
template <class T>
Wide wide_of(const T& x) {
  if constexpr (NarrowElement<T>)
    return number_of<T>(x.bits);
  else
    return reference::widen(x);
}
template <class T>
inline constexpr double kEpsilonOf = NarrowElement<T> ? (std::is_same_v<T, Half> ? 0x1p-10 : 0x1p-7)
                                     : sizeof(RealOf<T>) == 4 ? 0x1p-23
                                                              : 0x1p-52;
/// That of what T is computed in.
template <class T>
inline constexpr double kComputeEpsilon = NarrowElement<T> ? 0x1p-23 : kEpsilonOf<T>;

/// The type whose numbers a reference draws.
template <class T>
using Drawn = std::conditional_t<NarrowElement<T>, float, T>;

/// Numbers that T has.
template <class T>
reference::Tensor draw(const std::string& modes, const PerLetter& extents, std::uint64_t seed,
                       reference::Data data = reference::Data::integers) {
  auto x = reference::tensor_of(modes, extents);
  x.values = reference::numbers<Drawn<T>>(x.volume(), seed, data);
  for (auto& value : x.values) value = wide_of<T>(stored_of<T>(value));
  return x;
}

/// A tensor on the device.
template <class T>
struct Placed {
  reference::Tensor reference;
  std::vector<std::int64_t> strides;
  tensor::View<T> view;

  tensor::TermOf<T> operator()(tensor::Unary unary = tensor::Unary::identity) const {
    return view(reference.modes, unary);
  }
  [[nodiscard]] std::vector<Wide> memory(const reference::Tensor& contents) const {
    return reference::stored(contents, strides, -77);
  }
};
/// `order`: the modes as they lie, the last one varying fastest; empty: as they are named.
template <class T>
Placed<T> place(const reference::Tensor& x, const std::string& order = {}, std::int64_t gap = 0) {
  const auto strides = reference::strides_of(x, order.empty() ? x.modes : order, gap);
  std::vector<T> memory;
  for (const auto& value : reference::stored(x, strides, -77))
    memory.push_back(stored_of<T>(value));
  return {
      x,
      strides,
      {put(memory), tensor::Numbers(std::span(x.extents)), tensor::Numbers(std::span(strides))}};
}

/// That the memory of a tensor holds `expected`, and nothing else has changed. Without a tolerance
/// each element is the nearest that T has; `tolerance`: of each element beside the rounding to T.
template <class T>
::testing::AssertionResult holds(const Placed<T>& x, const reference::Tensor& expected,
                                 double tolerance = 0) {
  const auto memory = x.memory(expected);
  const auto actual = device().download(x.view.buffer);
  for (std::size_t i = 0; i < memory.size(); ++i) {
    const auto is = wide_of(actual[i]), exact = wide_of(stored_of<T>(memory[i]));
    const double most = tolerance == 0 ? 0 : tolerance + kEpsilonOf<T> * std::abs(exact);
    if (std::abs(is - exact) <= most) continue;
    return ::testing::AssertionFailure() << "element " << i << " is " << is << ", not " << exact;
  }
  return ::testing::AssertionSuccess();
}

/// a x + b y of tensors with the same modes.
inline reference::Tensor sum(const Wide& a, reference::Tensor x, const Wide& b,
                             const reference::Tensor& y) {
  for (std::size_t i = 0; i < x.values.size(); ++i) x.values[i] = a * x.values[i] + b * y.values[i];
  return x;
}

/// Skips a test where the library is not installed.
inline void skip_unless_tensors() {
  const tensor::View from(put(std::vector<float>{1, 2}), {2}), to(put(std::vector<float>(2)), {2});
  const Result<void> probed = tensor::on(device()).permute(from("i"), to("i")).wait();
  if (probed.ok()) return;
  (void)device().take_error();
  ASSERT_EQ(probed.code(), Errc::unsupported) << probed.error().message;
  ASSERT_NE(probed.error().message.find("not installed"), std::string::npos)
      << probed.error().message;
  GTEST_SKIP() << probed.error().message;
}

using TensorTypes =
    ::testing::Types<float, Half, BFloat16, double, std::complex<float>, std::complex<double>>;

}  // namespace troupe::test
