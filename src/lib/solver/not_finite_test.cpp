// Matrices with elements that are infinite or not numbers.
#include <cmath>

#include "solver_reference.hpp"

namespace troupe::test::reference {
namespace {

using solver::Extent;
using solver::kNotFinite;
using solver::Problem;
using solver::Vectors;

template <class T>
class SolverNotFinite : public Typed<T> {};
TYPED_TEST_SUITE(SolverNotFinite, Numbers);

constexpr double kNone = std::numeric_limits<double>::quiet_NaN(),
                 kEndless = std::numeric_limits<double>::infinity();

template <class T>
T real_number(double value) {
  return T(static_cast<RealOf<T>>(value));
}
struct OddElement {
  std::int64_t row, column;
  double value;
};
/// Unit matrices side by side but for some elements.
template <class T>
MatrixRef<GpuRef<T>> unit_but(std::int64_t rows, std::int64_t columns,
                              const std::vector<OddElement>& of = {}) {
  std::vector<T> all(static_cast<std::size_t>(rows * columns));
  const auto at = [&](std::int64_t i, std::int64_t j) -> T& {
    return all[static_cast<std::size_t>(j * rows + i)];
  };
  for (std::int64_t j = 0; j < columns; ++j) at(j % rows, j) = T(1);
  for (const auto& element : of) at(element.row, element.column) = real_number<T>(element.value);
  const auto buffer = device().alloc<T>(rows * columns);
  device().upload(std::span<const T>(all), buffer).get();
  return {buffer, rows, columns, rows};
}

std::int32_t info_of(std::int32_t info) {
  return info;
}
template <class Told>
std::int32_t info_of(const Told& told) {
  return told.info;
}
template <class Value>
bool none_is_a_number(const GpuRef<Value>& values) {
  const auto all = device().download(values);
  return std::all_of(all.begin(), all.end(), [](Value x) { return std::isnan(std::real(x)); });
}

TYPED_TEST(SolverNotFinite, IsRefusedByWhatIterates) {
  using T = TypeParam;
  using Real = RealOf<T>;
  constexpr std::int64_t n = 3;
  auto solver = device().solver();
  const auto good = [&] { return unit_but<T>(n, n); };
  const auto b = unit_but<T>(n, 1);
  for (const double bad : {kNone, kEndless, -kEndless}) {
    const auto a = [&] { return unit_but<T>(n, n, {{0, 0, bad}, {1, 0, 1}, {2, 1, 1}}); };
    const auto low = [&] { return unit_but<T>(n, n, {{2, 1, bad}}); };
    // `call` is given where the values go: what it writes is spoilt where it fails.
    const auto refused = [&]<class Value>(const char* name, Value, auto call) {
      SCOPED_TRACE(::testing::Message() << name << " with " << bad);
      EXPECT_EQ(call(OnFailure::error, device().alloc<Value>(n)).wait().code(), Errc::numeric);
      const auto values = device().alloc<Value>(n);
      EXPECT_EQ(info_of(call(OnFailure::report, values).get()), kNotFinite);
      EXPECT_TRUE(none_is_a_number(values));
    };
    using Values = GpuRef<Real>;
    for (const auto vectors : {Vectors::no, Vectors::yes}) {
      refused("syevd", Real{}, [&](OnFailure f, const Values& w) {
        return solver.syevd(vectors, Uplo::lower, low(), w, f);
      });
      refused("syevj", Real{}, [&](OnFailure f, const Values& w) {
        return solver.syevj(vectors, Uplo::lower, a(), w, {.on_failure = f});
      });
      refused("syevdx", Real{}, [&](OnFailure f, const Values& w) {
        return solver.syevdx(vectors, {}, Uplo::lower, low(), w, f);
      });
      refused("sygvd", Real{}, [&](OnFailure f, const Values& w) {
        return solver.sygvd(Problem::ax_bx, vectors, Uplo::lower, a(), good(), w, f);
      });
      refused("sygvd, b", Real{}, [&](OnFailure f, const Values& w) {
        return solver.sygvd(Problem::ax_bx, vectors, Uplo::lower, good(), low(), w, f);
      });
      refused("sygvj", Real{}, [&](OnFailure f, const Values& w) {
        return solver.sygvj(Problem::ax_bx, vectors, Uplo::lower, a(), good(), w,
                            {.on_failure = f});
      });
      refused("sygvdx", Real{}, [&](OnFailure f, const Values& w) {
        return solver.sygvdx(Problem::ax_bx, vectors, {}, Uplo::lower, good(), a(), w, f);
      });
    }
    refused("geev", std::complex<Real>{}, [&](OnFailure f, const GpuRef<std::complex<Real>>& w) {
      return solver.geev(a(), w, f);
    });
    refused("gesvd", Real{}, [&](OnFailure f, const Values& s) { return solver.gesvd(a(), s, f); });
    refused("gesvdj", Real{}, [&](OnFailure f, const Values& s) {
      return solver.gesvdj(Extent::full, a(), s, good(), good(), {.on_failure = f});
    });
    refused("gesvdp", Real{}, [&](OnFailure f, const Values& s) {
      return solver.gesvdp(Extent::full, low(), s, good(), good(), f);
    });
    refused("gesvdr", Real{}, [&](OnFailure f, const Values& s) {
      return solver.gesvdr(a(), s, good(), good(), {.rank = n, .on_failure = f});
    });
    refused("gesv", T{}, [&](OnFailure f, const GpuRef<T>& x) {
      return solver.gesv(a(), b, MatrixRef(x, n, 1), {.on_failure = f});
    });
    refused("gels", T{}, [&](OnFailure f, const GpuRef<T>& x) {
      return solver.gels(low(), b, MatrixRef(x, n, 1), {.on_failure = f});
    });
  }
  EXPECT_EQ(device().take_error().code(), Errc::numeric);
}

/// The half that is not read may hold anything.
TYPED_TEST(SolverNotFinite, IsNotLookedForInTheOtherHalf) {
  using T = TypeParam;
  constexpr std::int64_t n = 3;
  auto solver = device().solver();
  const auto w = device().alloc<RealOf<T>>(n);
  const auto a = [&](Uplo uplo) {
    const bool lower = uplo == Uplo::lower;
    return unit_but<T>(n, n, {{lower ? 0 : 2, lower ? 2 : 0, kNone}});
  };
  for (const auto uplo : {Uplo::lower, Uplo::upper}) {
    EXPECT_EQ(solver.syevd(Vectors::yes, uplo, a(uplo), w).get(), 0);
    EXPECT_EQ(solver.syevj(Vectors::no, uplo, a(uplo), w).get().info, 0);
    EXPECT_EQ(solver.potrf(uplo, a(uplo)).get(), 0);
    for (const auto value : device().download(w))
      EXPECT_NEAR(value, 1, 8 * std::numeric_limits<RealOf<T>>::epsilon());
  }
}

/// A batch refuses the matrices that are not finite, and computes the others.
TYPED_TEST(SolverNotFinite, ConcernsOneOfABatch) {
  using T = TypeParam;
  using Real = RealOf<T>;
  constexpr std::int64_t n = 2, batch = 3;
  auto solver = device().solver();
  const auto values = device().alloc<Real>(n * batch);
  const auto info = device().alloc<std::int32_t>(batch);
  const auto u = unit_but<T>(n, n * batch), v = unit_but<T>(n, n * batch);
  const std::vector<std::int32_t> expected{0, kNotFinite, 0};
  for (const double bad : {kNone, kEndless}) {
    const auto a = [&] { return unit_but<T>(n, n * batch, {{1, n, bad}}); };
    const auto as_expected = [&](const char* name) {
      SCOPED_TRACE(::testing::Message() << name << " with " << bad);
      EXPECT_EQ(device().download(info), expected);
      const auto found = device().download(values);
      for (std::size_t i = 0; i < found.size(); ++i) {
        if (i / n == 1) {
          EXPECT_TRUE(std::isnan(found[i]));
        } else {
          EXPECT_NEAR(found[i], 1, 1e-5);
        }
      }
    };
    solver.syev_batched(Vectors::yes, Uplo::lower, batch, a(), values, info);
    as_expected("syev_batched");
    solver.syevj_batched(Vectors::yes, Uplo::lower, batch, a(), values, info);
    as_expected("syevj_batched");
    solver.gesvdj_batched(batch, a(), values, u, v, info);
    as_expected("gesvdj_batched");
    solver.gesvda_batched(batch, n, a(), values, u, v, info);
    as_expected("gesvda_batched");
  }
}

/// As in LAPACK: a pivot that is not a number is not positive, wherever it comes from.
TYPED_TEST(SolverNotFinite, PivotOfCholeskyIsNotPositive) {
  using T = TypeParam;
  auto solver = device().solver();
  for (const std::int64_t n : {4, 150}) {
    for (const auto uplo : {Uplo::lower, Uplo::upper}) {
      const bool lower = uplo == Uplo::lower;
      const auto on_diagonal = [&](std::int64_t i) { return unit_but<T>(n, n, {{i, i, kNone}}); };
      // Row 3 has it, and a pivot further down is negative.
      const auto beside = [&] {
        return unit_but<T>(n, n, {{lower ? 2 : 0, lower ? 0 : 2, kNone}, {n - 1, n - 1, -1}});
      };
      EXPECT_EQ(solver.potrf(uplo, on_diagonal(0), OnFailure::report).get(), 1);
      EXPECT_EQ(solver.potrf(uplo, on_diagonal(n - 1), OnFailure::report).get(), n);
      EXPECT_EQ(solver.potrf(uplo, beside(), OnFailure::report).get(), 3);
      const auto failed = solver.potrf(uplo, on_diagonal(1));
      ASSERT_EQ(failed.wait().code(), Errc::numeric);
      EXPECT_NE(failed.wait().error().message.find("leading minor of order 2"), std::string::npos);
      const auto info = device().alloc<std::int32_t>(3);
      solver.potrf_batched(uplo, std::vector{on_diagonal(1), unit_but<T>(n, n), beside()}, info);
      EXPECT_EQ(device().download(info), (std::vector<std::int32_t>{2, 0, 3}));
    }
  }
  EXPECT_EQ(device().take_error().code(), Errc::numeric);
}

/// Factorisations with a fixed number of steps give results that are not finite, and no error.
TYPED_TEST(SolverNotFinite, GoesThroughFactorisations) {
  using T = TypeParam;
  constexpr std::int64_t n = 3;
  auto solver = device().solver();
  for (const double bad : {kNone, kEndless}) {
    const auto a = unit_but<T>(n, n, {{0, 0, bad}, {1, 0, 2}, {0, 1, 1}});
    const auto pivots = device().alloc<std::int64_t>(n);
    const auto factored = solver.getrf(a, pivots).wait();
    // cuSOLVER may take a pivot that is not a number for a zero.
    if (device().info().engine == "cpu") {
      EXPECT_TRUE(factored.ok()) << factored.error().message;
    } else if (!factored.ok()) {
      EXPECT_EQ(factored.code(), Errc::numeric);
      (void)device().take_error();
      continue;
    }
    for (const auto pivot : device().download(pivots)) EXPECT_TRUE(pivot >= 1 && pivot <= n);
    const auto q = unit_but<T>(n, n, {{0, 0, bad}});
    const auto tau = device().alloc<T>(n);
    solver.geqrf(q, tau).get();
    const auto factors = device().download(q.buffer);
    EXPECT_TRUE(std::any_of(factors.begin(), factors.end(), [](T x) {
      return !std::isfinite(std::real(x)) || !std::isfinite(std::imag(x));
    }));
  }
}

}  // namespace
}  // namespace troupe::test::reference
