#include <cmath>

#include <tridiagonal.hpp>
#include "catalogue/catalogue.hpp"

// The library of apps/examples/library, which is built as one that is not troupe's: device hosts
// load its half as a module of its own.

namespace troupe::catalogue {
namespace {

/// Matrices of one order, one behind the other, each row's diagonal larger than the rest of the
/// row.
struct Dominant {
  std::size_t n;
  std::vector<Wide> lower, diagonal, upper;

  template <class T>
  static Dominant drawn(Trial& t, std::int64_t n, std::int64_t batch) {
    Dominant a{static_cast<std::size_t>(n), t.numbers<T>(n * batch), {}, t.numbers<T>(n * batch)};
    for (std::size_t i = 0; i < a.lower.size(); ++i) {
      const double larger = 1 + std::abs(a.lower[i]) + std::abs(a.upper[i]);
      a.diagonal.emplace_back(t.flip() ? larger : -larger);
    }
    return a;
  }
  [[nodiscard]] std::vector<Wide> times(const std::vector<Wide>& x) const {
    std::vector<Wide> product;
    for (std::size_t i = 0; i < x.size(); ++i) {
      Wide sum = diagonal[i] * x[i];
      if (i % n != 0) sum += lower[i] * x[i - 1];
      if (i % n != n - 1) sum += upper[i] * x[i + 1];
      product.push_back(sum);
    }
    return product;
  }
};

template <class T>
void add_tridiagonal(Catalogue& catalogue) {
  catalogue.add<T>({"tridiagonal", "solve residual"}, [](Trial& t) {
    const auto n = t.random.between(1, 20), batch = t.random.between(1, 6);
    const auto a = Dominant::drawn<T>(t, n, batch);
    const auto x = t.numbers<T>(n * batch), near = t.numbers<T>(n * batch), b = a.times(x);
    const tridiagonal::Matrices<GpuRef<T>> matrices{t.put<T>(a.lower), t.put<T>(a.diagonal),
                                                    t.put<T>(a.upper), n};
    const auto right = t.put<T>(b), solved = t.flip() ? right : t.room<T>(n * batch);
    t.call(tridiagonal::on(t.device()).solve(matrices, right, solved));
    // The inverse is at most 1, the matrix some tens; a row's unknown takes 8 roundings.
    t.expect(solved, x, 40, 8);
    // What is left of b is exact.
    const auto guess = t.put<T>(near), again = t.put<T>(b), left = t.room<T>(n * batch);
    t.call_or_record(
        [&] { return tridiagonal::on(t.device()).residual(matrices, guess, again, left); });
    auto expected = a.times(near);
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = b[i] - expected[i];
    t.expect(left, expected);
  });
}

void add_calls_of_outside(Catalogue& catalogue) {
  add_tridiagonal<float>(catalogue);
  add_tridiagonal<double>(catalogue);
}

const Subject kOutside("tridiagonal", add_calls_of_outside);

}  // namespace

}  // namespace troupe::catalogue
