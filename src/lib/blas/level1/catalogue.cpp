#include "catalogue/catalogue.hpp"

// Vectors: BLAS, level 1.

namespace troupe::catalogue {
namespace {

Wide dot(const std::vector<Wide>& x, const std::vector<Wide>& y, bool conjugate) {
  Wide sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += (conjugate ? std::conj(x[i]) : x[i]) * y[i];
  return sum;
}

template <class T>
void add_for_narrow_too(Catalogue& catalogue) {
  catalogue.add<T>("axpy", [](Trial& t) {
    const auto n = t.length<T>();
    const auto x = t.varied<T>(n), y = t.varied<T>(n);
    const auto alpha = t.scalar<T>();
    const auto at = t.put<T>(x, t.increment()), to = t.put<T>(y, t.increment());
    t.call(t.device().blas().axpy(t.factor<ScalarTypeOf<T>>(alpha), at, to));
    auto sum = y;
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += alpha * x[i];
    t.expect(to, sum), t.expect(at, x);
  });
  catalogue.add<T>("scal", [](Trial& t) {
    auto x = t.varied<T>(t.length<T>());
    auto alpha = t.scalar<T>();
    const auto at = t.put<T>(x, std::abs(t.increment()));
    if constexpr (ComplexElement<T>) {
      if (t.flip()) alpha = alpha.real();
      if (alpha.imag() == 0)
        t.call(t.device().blas().scal_real(t.factor<RealOf<T>>(alpha.real()), at));
      else
        t.call(t.device().blas().scal(t.factor<ScalarTypeOf<T>>(alpha), at));
    } else {
      t.call(t.device().blas().scal(t.factor<ScalarTypeOf<T>>(alpha), at));
    }
    for (auto& value : x) value *= alpha;
    t.expect(at, x);
  });
  catalogue.add<T>("dot", [](Trial& t) {
    const auto n = t.length<T>();
    const auto x = t.varied<T>(n), y = t.varied<T>(n);
    const auto at = t.put<T>(x, t.increment()), and_at = t.put<T>(y, t.increment());
    const auto result = t.room<T>(1);
    bool conjugate = false;
    if constexpr (ComplexElement<T>) conjugate = t.flip();
    if constexpr (ComplexElement<T>) {
      t.call(conjugate ? t.device().blas().dotc(at, and_at, result)
                       : t.device().blas().dot(at, and_at, result));
    } else {
      t.call(t.device().blas().dot(at, and_at, result));
    }
    t.expect(result, {dot(x, y, conjugate)});
  });
  catalogue.add<T>("nrm2", [](Trial& t) {
    const auto x = t.varied<T>(t.length<T>());
    const auto at = t.put<T>(x, std::abs(t.increment()));
    const auto result = t.room<RealOf<T>>(1);
    t.call(t.device().blas().nrm2(at, result));
    // At most 13: one rounding of 16 bits, some of others.
    t.expect(result, {std::sqrt(dot(x, x, true))}, 1, NarrowElement<T> ? 0.25 : 8);
  });
}

template <class T>
void add_sums(Catalogue& catalogue) {
  catalogue.add<T>("asum", [](Trial& t) {
    const auto x = t.varied<T>(t.length<T>());
    const auto at = t.put<T>(x, std::abs(t.increment()));
    const auto result = t.room<RealOf<T>>(1);
    t.call(t.device().blas().asum(at, result));
    double sum = 0;
    for (const auto& value : x) sum += std::abs(value.real()) + std::abs(value.imag());
    t.expect(result, {sum});
  });
  catalogue.add<T>("iamax", [](Trial& t) {
    const auto x = t.varied<T>(t.length<T>());
    const auto at = t.put<T>(x, std::abs(t.increment()));
    const auto result = t.room<std::int64_t>(1);
    const bool least = t.flip();
    t.call(least ? t.device().blas().iamin(at, result) : t.device().blas().iamax(at, result));
    std::size_t found = 0;
    const auto size = [&x](std::size_t i) { return std::abs(x[i].real()) + std::abs(x[i].imag()); };
    for (std::size_t i = 1; i < x.size(); ++i) {
      if (least ? size(i) < size(found) : size(i) > size(found)) found = i;
    }
    t.expect(result, {static_cast<double>(found)});
  });
  catalogue.add<T>({"copy", "copy swap"}, [](Trial& t) {
    const auto n = t.length<T>();
    const auto x = t.varied<T>(n), y = t.varied<T>(n);
    const auto at = t.put<T>(x, t.increment()), to = t.put<T>(y, t.increment());
    const bool swaps = t.flip();
    t.call(swaps ? t.device().blas().swap(at, to) : t.device().blas().copy(at, to));
    t.expect(at, swaps ? y : x), t.expect(to, x);
  });
}

template <class T>
void add_rotations(Catalogue& catalogue) {
  using R = RealOf<T>;
  // Factors of integers: no rotation, but exact.
  catalogue.add<T>("rot", [](Trial& t) {
    const auto n = t.length<T>();
    auto x = t.varied<T>(n), y = t.varied<T>(n);
    const auto at = t.put<T>(x, t.increment()), to = t.put<T>(y, t.increment());
    const double c = t.scalar<R>().real();
    auto s = t.scalar<T>();
    if constexpr (ComplexElement<T>) {
      if (t.flip()) s = s.real();
      if (s.imag() == 0)
        t.call(t.device().blas().rot_real(at, to, t.factor<R>(c), t.factor<R>(s.real())));
      else
        t.call(t.device().blas().rot(at, to, t.factor<R>(c), t.factor<T>(s)));
    } else {
      t.call(t.device().blas().rot(at, to, t.factor<R>(c), t.factor<T>(s)));
    }
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto before = x[i];
      x[i] = c * before + s * y[i];
      y[i] = c * y[i] - std::conj(s) * before;
    }
    t.expect(at, x), t.expect(to, y);
  });
  catalogue.add<T>("rotg", [](Trial& t) {
    auto x = t.numbers<T>(2, Data::fractions);
    for (auto& value : x) value *= t.random.one_in(4) ? 0 : 1;
    const auto a = t.put<T>({x[0]}), b = t.put<T>({x[1]}), s = t.room<T>(1);
    const auto c = t.room<R>(1);
    t.call(t.device().blas().template rotg<T>(a, b, c, s));
    t.demand(
        "what a rotation leaves",
        [&t, x, a, c, s] {
          const auto cosine = t.got(c)[0], sine = t.got(s)[0], r = t.got(a)[0];
          return std::abs(cosine * x[0] + sine * x[1] - r) +
                 std::abs(cosine * x[1] - std::conj(sine) * x[0]) +
                 std::abs(std::norm(cosine) + std::norm(sine) - 1);
        },
        32 * Trial::epsilon<T>());
  });
}

/// H of a modified rotation; https://www.netlib.org/blas/srotm.f
Dense modified(const std::vector<Wide>& param) {
  const auto h11 = param[1], h21 = param[2], h12 = param[3], h22 = param[4];
  switch (static_cast<int>(param[0].real())) {
    case -1: return {2, 2, {h11, h21, h12, h22}};
    case 0: return {2, 2, {1, h21, h12, 1}};
    case 1: return {2, 2, {h11, -1, 1, h22}};
    default: return reference::identity(2);
  }
}

template <class T>
void add_modified_rotations(Catalogue& catalogue) {
  catalogue.add<T>("rotm", [](Trial& t) {
    const auto n = t.length<T>();
    auto x = t.varied<T>(n), y = t.varied<T>(n), param = t.numbers<T>(5);
    param[0] = static_cast<double>(t.random.between(-2, 1));
    const auto at = t.put<T>(x, t.increment()), to = t.put<T>(y, t.increment());
    t.call(t.device().blas().rotm(at, to, t.put<T>(param)));
    const auto h = modified(param);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto before = x[i];
      x[i] = h(0, 0) * before + h(0, 1) * y[i];
      y[i] = h(1, 0) * before + h(1, 1) * y[i];
    }
    t.expect(at, x), t.expect(to, y);
  });
  catalogue.add<T>("rotmg", [](Trial& t) {
    const auto x = t.numbers<T>(4, Data::fractions);
    const auto d1 = t.put<T>({x[0].real() * x[0].real() + 0.5}),
               d2 = t.put<T>({x[1].real() * x[1].real() + 0.5});
    const auto x1 = t.put<T>({x[2]}), y1 = t.put<T>({x[3]}), param = t.room<T>(5);
    t.call(t.device().blas().template rotmg<T>(d1, d2, x1, y1, param));
    t.demand(
        "what a modified rotation leaves",
        [&t, x, x1, param] {
          const auto h = modified(t.got(param));
          return std::abs(h(1, 0) * x[2] + h(1, 1) * x[3]) +
                 std::abs(h(0, 0) * x[2] + h(0, 1) * x[3] - t.got(x1)[0]);
        },
        64 * Trial::epsilon<T>());
  });
}

void add_calls_of_level1(Catalogue& catalogue) {
  for_types<Half, BFloat16, float, double, std::complex<float>, std::complex<double>>(
      [&catalogue]<class T>(T) { add_for_narrow_too<T>(catalogue); });
  for_numbers([&catalogue]<class T>(T) {
    add_sums<T>(catalogue);
    add_rotations<T>(catalogue);
  });
  for_types<float, double>([&catalogue]<class T>(T) { add_modified_rotations<T>(catalogue); });
}

const Subject kLevel1("blas", add_calls_of_level1);

}  // namespace

}  // namespace troupe::catalogue
