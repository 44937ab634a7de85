#include "lib/tensor/common/rows_cpu.hpp"

#include <cmath>
#include <complex>
#include <limits>
#include <type_traits>

#include "common/core/extremes.hpp"
#include "common/core/narrow.hpp"

namespace troupe::tensor {
namespace {

template <class W>
inline constexpr bool kComplex = ComplexElement<W>;

template <class W, class T>
W widened(const T& x) {
  if constexpr (NarrowElement<T>)
    return to_float(x);
  else
    return static_cast<W>(x);
}
template <class T, class W>
T narrowed(const W& x) {
  if constexpr (NarrowElement<T>)
    return from_float<T>(x);
  else if constexpr (kComplex<W> && !kComplex<T>)
    return x.real();
  else
    return static_cast<T>(x);
}

/// Calls visit(T{}) for the type of a tensor that is computed with in W.
template <class W, class Visit>
void with_type(DType dtype, const Visit& visit) {
  if constexpr (std::is_same_v<W, float>) {
    if (dtype == DType::f16) return visit(Half{});
    if (dtype == DType::bf16) return visit(BFloat16{});
  }
  if constexpr (std::is_same_v<W, double>) {
    if (dtype == DType::f32) return visit(float{});
  }
  if constexpr (std::is_same_v<W, std::complex<double>>) {
    if (dtype == DType::c64) return visit(std::complex<float>{});
    if (dtype == DType::f64) return visit(double{});  // of what is read alone
  }
  visit(W{});
}

template <class W, class F>
void each(W* x, std::int64_t count, const F& f) {
  for (std::int64_t i = 0; i < count; ++i) x[i] = f(x[i]);
}

template <class W>
void apply_real(Unary unary, W* x, std::int64_t count) {
  const auto sigmoid = [](W v) { return 1 / (1 + std::exp(-v)); };
  // exp(v) would overflow.
  const auto soft_plus = [](W v) { return std::max(v, W(0)) + std::log1p(std::exp(-std::abs(v))); };
  // A weight of 0 is the limit of what goes to 0 faster than v grows.
  const auto weighted = [](W v, W weight) { return weight == 0 ? W(0) : v * weight; };
  const auto of = [&](const auto& f) { each(x, count, f); };
  switch (unary) {
    case Unary::identity:
    case Unary::conj: return;
    case Unary::neg: return of([](W v) { return -v; });
    case Unary::abs: return of([](W v) { return std::abs(v); });
    case Unary::sqrt: return of([](W v) { return std::sqrt(v); });
    case Unary::rcp: return of([](W v) { return 1 / v; });
    case Unary::relu: return of([](W v) { return larger(v, W(0)); });
    case Unary::exp: return of([](W v) { return std::exp(v); });
    case Unary::log: return of([](W v) { return std::log(v); });
    case Unary::sin: return of([](W v) { return std::sin(v); });
    case Unary::cos: return of([](W v) { return std::cos(v); });
    case Unary::tan: return of([](W v) { return std::tan(v); });
    case Unary::sinh: return of([](W v) { return std::sinh(v); });
    case Unary::cosh: return of([](W v) { return std::cosh(v); });
    case Unary::tanh: return of([](W v) { return std::tanh(v); });
    case Unary::asin: return of([](W v) { return std::asin(v); });
    case Unary::acos: return of([](W v) { return std::acos(v); });
    case Unary::atan: return of([](W v) { return std::atan(v); });
    case Unary::asinh: return of([](W v) { return std::asinh(v); });
    case Unary::acosh: return of([](W v) { return std::acosh(v); });
    case Unary::atanh: return of([](W v) { return std::atanh(v); });
    case Unary::ceil: return of([](W v) { return std::ceil(v); });
    case Unary::floor: return of([](W v) { return std::floor(v); });
    case Unary::sigmoid: return of(sigmoid);
    case Unary::soft_plus: return of(soft_plus);
    case Unary::soft_sign:
      return of([](W v) { return std::isinf(v) ? std::copysign(W(1), v) : v / (std::abs(v) + 1); });
    case Unary::swish: return of([&](W v) { return weighted(v, sigmoid(v)); });
    case Unary::mish: return of([&](W v) { return weighted(v, std::tanh(soft_plus(v))); });
  }
}

template <class W>
void apply(Unary unary, W* x, std::int64_t count) {
  if constexpr (!kComplex<W>)
    apply_real(unary, x, count);
  else if (unary == Unary::conj)  // check() lets no other one pass
    each(x, count, [](const W& v) { return std::conj(v); });
}

/// What a reduction begins with.
template <class W>
W neutral(Binary f) {
  if constexpr (!kComplex<W>) {
    if (f == Binary::max) return -std::numeric_limits<W>::infinity();
    if (f == Binary::min) return std::numeric_limits<W>::infinity();
  }
  return f == Binary::mul ? W(1) : W(0);
}

/// Calls g with the function of two numbers.
template <class W, class G>
void with_function(Binary f, const G& g) {
  if constexpr (!kComplex<W>) {
    if (f == Binary::max) return g([](W a, W b) { return larger(a, b); });
    if (f == Binary::min) return g([](W a, W b) { return smaller(a, b); });
  }
  if (f == Binary::mul) return g([](const W& a, const W& b) { return a * b; });
  g([](const W& a, const W& b) { return a + b; });
}

template <class W>
W folded(Binary f, W result, const W* x, std::int64_t count) {
  with_function<W>(f, [&](const auto& g) {
    for (std::int64_t i = 0; i < count; ++i) result = g(result, x[i]);
  });
  return result;
}

/// x[i] = f(x[i], y[i])
template <class W>
void combine(Binary f, W* x, const W* y, std::int64_t count) {
  with_function<W>(f, [&](const auto& g) {
    for (std::int64_t i = 0; i < count; ++i) x[i] = g(x[i], y[i]);
  });
}

}  // namespace

template <class W>
void Source<W>::read(std::int64_t first, std::int64_t step, std::int64_t count, W* to) const {
  if (factor == W(0)) {
    std::fill_n(to, count, W(0));
    return;
  }
  with_type<W>(dtype, [&]<class T>(T) {
    const T* const from = reinterpret_cast<const T*>(data) + first;
    for (std::int64_t i = 0; i < count; ++i) to[i] = widened<W>(from[i * step]);
  });
  apply(unary, to, count);
  if (factor != W(1)) each(to, count, [&](const W& v) { return factor * v; });
}

template <class W>
void Target<W>::write(const W* from, std::int64_t count, std::int64_t first,
                      std::int64_t step) const {
  with_type<W>(dtype, [&]<class T>(T) {
    T* const to = reinterpret_cast<T*>(data) + first;
    for (std::int64_t i = 0; i < count; ++i) to[i * step] = narrowed<T>(from[i]);
  });
}

template <class W>
void elementwise(const Extents& modes, const std::vector<Source<W>>& sources,
                 std::array<Binary, 2> functions, const Target<W>& target) {
  Nest<4> nest;  // up to three sources, and the target
  for (const auto i : modes.descending(target.strides)) {
    std::array<std::int64_t, 4> strides{};
    for (std::size_t k = 0; k < sources.size(); ++k) strides[k] = sources[k].strides[i];
    strides[3] = target.strides[i];
    nest.add(modes.extents[i], strides);
  }
  std::vector<W> row(Nest<4>::kRow), other(Nest<4>::kRow);
  nest.for_each_row([&](const auto& at, std::int64_t count, const auto& steps) {
    sources[0].read(at[0], steps[0], count, row.data());
    for (std::size_t k = 1; k < sources.size(); ++k) {
      sources[k].read(at[k], steps[k], count, other.data());
      combine(functions[k - 1], row.data(), other.data(), count);
    }
    target.write(row.data(), count, at[3], steps[3]);
  });
}

template <class W>
void reduce(const Extents& modes, Binary reduction, W alpha, const Source<W>& source,
            const std::vector<Source<W>>& addend, const Target<W>& target) {
  Nest<2> kept;
  Nest<1> reduced;
  for (const auto i : modes.descending(target.strides)) {
    if (target.strides[i] > 0) kept.add(modes.extents[i], {source.strides[i], target.strides[i]});
  }
  for (const auto i : modes.descending(source.strides)) {
    if (target.strides[i] == 0) reduced.add(modes.extents[i], {source.strides[i]});
  }
  std::vector<W> row(Nest<1>::kRow);
  kept.for_each_row([&](const auto& at, std::int64_t count, const auto& steps) {
    for (std::int64_t i = 0; i < count; ++i) {
      W result = neutral<W>(reduction);
      reduced.for_each_row([&](const auto& from, std::int64_t length, const auto& apart) {
        source.read(at[0] + i * steps[0] + from[0], apart[0], length, row.data());
        result = folded(reduction, result, row.data(), length);
      });
      result = alpha == W(0) ? W(0) : alpha * result;  // as for all factors of 0
      const auto to = at[1] + i * steps[1];
      for (const auto& one : addend) {
        W value{};
        one.read(to, 1, 1, &value);
        result += value;
      }
      target.write(&result, 1, to, 1);
    }
  });
}

#define TROUPE_TENSOR_ROWS(W)                                                                      \
  template struct Source<W>;                                                                       \
  template struct Target<W>;                                                                       \
  template void elementwise(const Extents&, const std::vector<Source<W>>&, std::array<Binary, 2>,  \
                            const Target<W>&);                                                     \
  template void reduce(const Extents&, Binary, W, const Source<W>&, const std::vector<Source<W>>&, \
                       const Target<W>&);
TROUPE_TENSOR_ROWS(float)
TROUPE_TENSOR_ROWS(double)
TROUPE_TENSOR_ROWS(std::complex<float>)
TROUPE_TENSOR_ROWS(std::complex<double>)
#undef TROUPE_TENSOR_ROWS

}  // namespace troupe::tensor
