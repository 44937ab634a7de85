// Operations on lists of matrices.
#include "dense_reference.hpp"

namespace troupe::test::reference {
namespace {

template <class T>
class BlasListsOf : public Typed<T> {};
TYPED_TEST_SUITE(BlasListsOf, Numbers);

template <class T>
using List = std::vector<MatrixRef<GpuRef<T>>>;

TYPED_TEST(BlasListsOf, MatricesAndVectors) {
  using T = TypeParam;
  const auto alpha = number<T>(2, -1), beta = number<T>(-1, 1);
  constexpr std::int64_t m = 7, n = 5, batch = 4;
  for (const auto transpose : kTransposes) {
    for (const auto data : kData) {
      const bool plain = transpose == Transpose::no;
      const auto nx = plain ? n : m, ny = plain ? m : n;
      std::vector<GpuRef<T>> as, xs, ys;
      std::vector<Wide> all_a, all_x, all_y, sums;
      for (std::int64_t i = 0; i < batch; ++i) {
        const auto seed = static_cast<std::uint64_t>(10 * i);
        const auto a = random_matrix<T>(m, n, seed, data);
        const auto x = numbers<T>(nx, seed + 1, data), y = numbers<T>(ny, seed + 2, data);
        as.push_back(put_numbers<T>(a.element));
        xs.push_back(put_numbers<T>(x)), ys.push_back(put_numbers<T>(y));
        const auto extend = [](auto& all, const auto& part) {
          all.insert(all.end(), part.begin(), part.end());
        };
        extend(all_a, a.element), extend(all_x, x), extend(all_y, y);
        extend(sums,
               (widen(alpha) * (op(a, transpose) * column(x)) + widen(beta) * column(y)).element);
      }
      const auto y = put_numbers<T>(all_y);
      const GemvOptions options{.m = m, .n = n, .lda = 0, .transpose = transpose};
      device().blas().gemv_batched(put_numbers<T>(all_a), put_numbers<T>(all_x), y, options,
                                   BatchOptions{batch, m * n, nx, ny}, alpha,
                                   scalar(beta, Place::device));
      EXPECT_TRUE(agree(device().download(y), sums, data, 32));
      device().blas().gemv_batched(as, xs, ys, options, scalar(alpha, Place::device), beta);
      for (std::int64_t i = 0; i < batch; ++i) {
        EXPECT_TRUE(agree(device().download(ys[static_cast<std::size_t>(i)]),
                          {sums.begin() + i * ny, sums.begin() + (i + 1) * ny}, data, 32));
      }
    }
  }
}

TYPED_TEST(BlasListsOf, TriangularSystems) {
  using T = TypeParam;
  const auto alpha = number<T>(2, -1);
  constexpr std::int64_t m = 5, n = 4, batch = 3;
  for (const auto side : {Side::left, Side::right}) {
    for (const auto transpose : kTransposes) {
      const auto order = side == Side::left ? m : n;
      const Stored half{Storage::full, Uplo::upper, order, 0, order + 1};
      List<T> as, bs;
      std::vector<Dense> solutions;
      for (std::uint64_t i = 0; i < batch; ++i) {
        const auto a = triangular_matrix<T>(half, Diagonal::stored, 20 + i, Data::integers);
        const auto x = random_matrix<T>(m, n, 30 + i, Data::integers);
        const auto b = side == Side::left ? op(a, transpose) * x : x * op(a, transpose);
        as.emplace_back(put_numbers<T>(half.spread(a)), order, order, order + 1);
        bs.push_back(put_matrix<T>(b, m + 2));
        solutions.push_back(widen(alpha) * x);
      }
      device().blas().trsm_batched(side, Uplo::upper, transpose, Diagonal::stored, alpha, as, bs);
      for (std::size_t i = 0; i < batch; ++i) {
        EXPECT_TRUE(
            agree(device().download(bs[i].buffer), spread(solutions[i], m + 2), Data::integers, 0));
      }
    }
  }
}

/// Well-conditioned matrices of n rows.
template <class T>
std::vector<Dense> dominant(std::size_t count, std::int64_t rows, std::int64_t columns) {
  std::vector<Dense> matrices;
  for (std::size_t i = 0; i < count; ++i) {
    auto a = random_matrix<T>(rows, columns, 40 + i, Data::fractions);
    for (std::int64_t j = 0; j < columns; ++j) a(j, j) = widen(to_number<T>(a(j, j) + 8.0));
    matrices.push_back(std::move(a));
  }
  return matrices;
}
template <class T>
List<T> put_list(const std::vector<Dense>& matrices, std::int64_t gap) {
  List<T> list;
  for (const auto& a : matrices) list.push_back(put_matrix<T>(a, a.rows + gap));
  return list;
}
/// The largest difference of two matrices, in units of rounding.
template <class T>
double distance(const Dense& a, const Dense& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.element.size(); ++i)
    most = std::max(most, std::abs(a.element[i] - b.element[i]));
  return most / static_cast<double>(std::numeric_limits<RealOf<T>>::epsilon());
}
TYPED_TEST(BlasListsOf, FactorisationsSolveAndInvert) {
  using T = TypeParam;
  constexpr std::int64_t n = 9, nrhs = 3;
  constexpr std::size_t batch = 5;
  const auto matrices = dominant<T>(batch, n, n);
  std::vector<Dense> solutions;
  for (std::size_t i = 0; i < batch; ++i)
    solutions.push_back(random_matrix<T>(n, nrhs, 60 + i, Data::fractions));
  const auto zeros = [&] { return put_list<T>(std::vector<Dense>(batch, Dense{n, n}), 0); };
  for (const bool pivoting : {true, false}) {
    const auto factors = put_list<T>(matrices, 2);
    const auto pivots = device().template alloc<std::int32_t>(n * batch),
               info = put(std::vector<std::int32_t>(batch, -1));
    auto blas = device().blas();
    if (pivoting) {
      blas.getrf_batched(factors, pivots, info);
    } else {
      blas.getrf_batched(factors, info);
    }
    EXPECT_EQ(device().download(info), std::vector<std::int32_t>(batch, 0));
    if (!pivoting) {
      // A = L U, and both are in the factors.
      for (std::size_t i = 0; i < batch; ++i) {
        const auto both = fetched<T>(factors[i]);
        Dense l = identity(n), u{n, n};
        for (std::int64_t j = 0; j < n; ++j) {
          for (std::int64_t row = 0; row < n; ++row) (row > j ? l : u)(row, j) = both(row, j);
        }
        EXPECT_LE(distance<T>(l * u, matrices[i]), 400);
      }
      continue;
    }
    for (const auto transpose : kTransposes) {
      std::vector<Dense> right;
      for (std::size_t i = 0; i < batch; ++i)
        right.push_back(op(matrices[i], transpose) * solutions[i]);
      const auto b = put_list<T>(right, 1);
      blas.getrs_batched(transpose, factors, pivots, b);
      for (std::size_t i = 0; i < batch; ++i)
        EXPECT_LE(distance<T>(fetched<T>(b[i]), solutions[i]), 400);
    }
    const auto inverses = zeros();
    blas.getri_batched(factors, pivots, inverses, info);
    EXPECT_EQ(device().download(info), std::vector<std::int32_t>(batch, 0));
    for (std::size_t i = 0; i < batch; ++i)
      EXPECT_LE(distance<T>(matrices[i] * fetched<T>(inverses[i]), identity(n)), 400);
  }
  const auto a = put_list<T>(matrices, 2);
  const auto inverses = zeros();
  const auto info = put(std::vector<std::int32_t>(batch, -1));
  device().blas().matinv_batched(a, inverses, info);
  EXPECT_EQ(device().download(info), std::vector<std::int32_t>(batch, 0));
  for (std::size_t i = 0; i < batch; ++i) {
    EXPECT_LE(distance<T>(matrices[i] * fetched<T>(inverses[i]), identity(n)), 400);
    EXPECT_EQ(distance<T>(fetched<T>(a[i]), matrices[i]), 0);
  }
}

TYPED_TEST(BlasListsOf, ASingularMatrixIsTold) {
  using T = TypeParam;
  auto matrices = dominant<T>(3, 4, 4);
  for (std::int64_t j = 0; j < 4; ++j) matrices[1](2, j) = 0;
  const auto factors = put_list<T>(matrices, 0);
  const auto pivots = device().template alloc<std::int32_t>(12),
             info = device().template alloc<std::int32_t>(3);
  device().blas().getrf_batched(factors, pivots, info);
  const auto told = device().download(info);
  EXPECT_EQ(told[0], 0);
  EXPECT_GT(told[1], 0);
  EXPECT_EQ(told[2], 0);
}

TYPED_TEST(BlasListsOf, LeastSquares) {
  using T = TypeParam;
  constexpr std::int64_t m = 11, n = 6, nrhs = 2;
  constexpr std::size_t batch = 3;
  const auto matrices = dominant<T>(batch, m, n);
  std::vector<Dense> solutions, right;
  for (std::size_t i = 0; i < batch; ++i) {
    solutions.push_back(random_matrix<T>(n, nrhs, 70 + i, Data::fractions));
    right.push_back(matrices[i] * solutions[i]);
  }
  auto blas = device().blas();
  // R of A = Q R has the lengths of A: R^H R = A^H A.
  const auto factors = put_list<T>(matrices, 1);
  const auto tau = put_list<T>(std::vector<Dense>(batch, Dense{n, 1}), 0);
  blas.geqrf_batched(factors, tau);
  for (std::size_t i = 0; i < batch; ++i) {
    const auto both = fetched<T>(factors[i]);
    Dense r{n, n};
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t row = 0; row <= j; ++row) r(row, j) = both(row, j);
    }
    EXPECT_LE(distance<T>(op(r, Transpose::conjugate) * r,
                          op(matrices[i], Transpose::conjugate) * matrices[i]),
              4000);
  }
  const auto a = put_list<T>(matrices, 1), c = put_list<T>(right, 2);
  const auto info = put(std::vector<std::int32_t>(batch, -1));
  blas.gels_batched(a, c, info);
  EXPECT_EQ(device().download(info), std::vector<std::int32_t>(batch, 0));
  for (std::size_t i = 0; i < batch; ++i) {
    const auto solved = fetched<T>(c[i]);
    Dense x{n, nrhs};
    for (std::int64_t j = 0; j < nrhs; ++j) {
      for (std::int64_t row = 0; row < n; ++row) x(row, j) = solved(row, j);
    }
    EXPECT_LE(distance<T>(x, solutions[i]), 400);
  }
}

template <class T>
class BlasListsGrouped : public Typed<T> {};
using GroupedNumbers = ::testing::Types<Half, BFloat16, float, double>;
TYPED_TEST_SUITE(BlasListsGrouped, GroupedNumbers);

TYPED_TEST(BlasListsGrouped, ProductsOfSeveralShapes) {
  using T = TypeParam;
  using F = ScalarTypeOf<T>;
  struct Of {
    std::int64_t m, n, k;
    std::size_t batch;
    Transpose ta, tb;
    F alpha, beta;
  };
  const Of shapes[] = {{8, 8, 8, 3, Transpose::no, Transpose::no, F(1), F(0)},
                       {16, 8, 24, 1, Transpose::yes, Transpose::no, F(2), F(-1)},
                       {8, 16, 8, 2, Transpose::no, Transpose::yes, F(-1), F(2)}};
  std::vector<GemmGroupOf<GpuRef<T>>> groups;
  std::vector<std::vector<Dense>> expected;
  std::uint64_t seed = 80;
  for (const auto& shape : shapes) {
    GemmGroupOf<GpuRef<T>> group{shape.ta, shape.tb, shape.alpha, {}, {}, shape.beta, {}};
    expected.emplace_back();
    for (std::size_t i = 0; i < shape.batch; ++i) {
      const auto matrix = [&](std::int64_t rows, std::int64_t columns) {
        return random_matrix<float>(rows, columns, ++seed, Data::integers);
      };
      const bool plain_a = shape.ta == Transpose::no, plain_b = shape.tb == Transpose::no;
      const auto a = plain_a ? matrix(shape.m, shape.k) : matrix(shape.k, shape.m);
      const auto b = plain_b ? matrix(shape.k, shape.n) : matrix(shape.n, shape.k);
      const auto c = matrix(shape.m, shape.n);
      group.a.emplace_back(put_any<T>(a.element), a.rows, a.columns);
      group.b.emplace_back(put_any<T>(b.element), b.rows, b.columns);
      group.c.emplace_back(put_any<T>(c.element), c.rows, c.columns);
      const auto product = op(a, shape.ta) * op(b, shape.tb);
      auto sum = Wide(shape.alpha) * product + Wide(shape.beta) * c;
      for (auto& value : sum.element) value = to_wide(from_wide<T>(value));
      expected.back().push_back(std::move(sum));
    }
    groups.push_back(std::move(group));
  }
  device().blas().template gemm_grouped<T>(groups).get();
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (std::size_t i = 0; i < groups[g].c.size(); ++i)
      EXPECT_EQ(got(groups[g].c[i].buffer), expected[g][i].element) << g << " " << i;
  }
}

template <class T>
class BlasListsNarrow : public Typed<T> {};
using NarrowLists = ::testing::Types<Half, BFloat16>;
TYPED_TEST_SUITE(BlasListsNarrow, NarrowLists);

TYPED_TEST(BlasListsNarrow, VectorsOfBothWidths) {
  using T = TypeParam;
  constexpr std::int64_t m = 8, n = 16, batch = 3;
  const auto a = numbers<float>(m * n * batch, 1, Data::integers),
             x = numbers<float>(n * batch, 2, Data::integers),
             y = numbers<float>(m * batch, 3, Data::integers);
  std::vector<Wide> sums;
  for (std::int64_t i = 0; i < batch; ++i) {
    const Dense one{m, n, {a.begin() + i * m * n, a.begin() + (i + 1) * m * n}};
    const auto sum = one * column({x.begin() + i * n, x.begin() + (i + 1) * n}) +
                     column({y.begin() + i * m, y.begin() + (i + 1) * m});
    sums.insert(sums.end(), sum.element.begin(), sum.element.end());
  }
  const auto da = put_any<T>(a), dx = put_any<T>(x);
  const auto narrow = put_any<T>(y);
  const auto wide = put_any<float>(y);
  const GemvOptions options{.m = m, .n = n};
  const BatchOptions strides{batch, m * n, n, m};
  device().blas().gemv_batched(da, dx, narrow, options, strides, 1.0f, 1.0f);
  device().blas().gemv_batched(da, dx, wide, options, strides, 1.0f, 1.0f);
  EXPECT_EQ(got(wide), sums);
  EXPECT_EQ(got(narrow), sums);
}

TEST_F(BadArguments, OfListsOfMatrices) {
  using namespace blas;
  const auto y_ref = put(std::vector<double>(16, 0.0));
  const auto y = y_ref.operand();
  const auto refused = [](const auto& op, const Parts& parts, Errc code = Errc::invalid) {
    const auto future = detail::submit(device().submitter(), op, parts);
    ASSERT_TRUE(future.ready());
    EXPECT_EQ(future.wait().code(), code);
  };
  GemvBatched gemv;
  gemv.dtype = gemv.y_dtype = DType::f64, gemv.m = gemv.n = gemv.lda = 2, gemv.batch = 2;
  gemv.stride_a = 4, gemv.stride_x = gemv.stride_y = 2;
  gemv.alpha = one, gemv.a = gemv.x = x, gemv.y = y;
  const auto gemv_refused = [&](auto change, Errc code = Errc::invalid) {
    auto op = gemv;
    change(op);
    expect_refused(op, code);
  };
  gemv_refused([](auto& op) { op.stride_y = 1; });
  gemv_refused([](auto& op) { op.stride_a = 14; });
  gemv_refused([](auto& op) { op.batch = -1; });
  gemv_refused([](auto& op) { op.incy = 0; });
  gemv_refused([](auto& op) { op.stride_y = std::int64_t{1} << 62; });
  gemv_refused([](auto& op) { op.y_dtype = DType::f32; }, Errc::unsupported);
  gemv_refused([&](auto& op) { op.y = x; });
  auto listed = gemv;
  listed.a = listed.x = listed.y = absent, listed.batch = 1;
  const TailOperand a{x, 0, Access::read}, v{x, 1, Access::read}, w{y, 2, Access::write};
  refused(listed, std::vector{a, v});
  refused(listed, std::vector{v, a, w});
  refused(listed, std::vector{a, v, {y, 2, Access::read}});
  refused(gemv, std::vector{a, v, w});

  const TailOperand updated{y, 1, Access::update};
  TrsmBatched trsm;
  trsm.dtype = DType::f64, trsm.m = trsm.n = trsm.lda = trsm.ldb = 2, trsm.batch = 1;
  trsm.alpha = one;
  refused(trsm, std::vector{a});
  refused(trsm, std::vector{a, {y, 1, Access::write}});
  auto large = trsm;
  large.m = large.lda = large.ldb = 9;
  refused(large, std::vector{a, updated});
  large = trsm, large.side = static_cast<Side>(2);
  refused(large, std::vector{a, updated});

  LapackBatched lapack;
  lapack.dtype = DType::f64, lapack.task = LapackBatched::Task::getrs;
  lapack.m = lapack.n = lapack.lda = lapack.ldb = 2, lapack.nrhs = 2, lapack.batch = 1;
  const auto lapack_refused = [&](auto change) {
    auto op = lapack;
    change(op);
    refused(op, std::vector{a, updated});
  };
  lapack_refused([](auto& op) { op.m = 3; });
  lapack_refused([](auto& op) { op.lda = 1; });
  lapack_refused([](auto& op) { op.task = static_cast<LapackBatched::Task>(5); });
  lapack_refused([&](auto& op) { op.info = i; });
  lapack_refused([&](auto& op) { op.task = LapackBatched::Task::matinv; });  // without info
  lapack_refused([&](auto& op) { op.pivots = i, op.pivots.bytes = 4; });
  lapack_refused([](auto& op) { op.nrhs = -1; });
  lapack_refused([](auto& op) { op.n = op.m = op.lda = std::int64_t{1} << 32; });
  refused(lapack, std::vector{a});

  GetrfBatched getrf;
  getrf.dtype = DType::f64, getrf.n = getrf.lda = 2, getrf.batch = 1, getrf.info = i;
  const auto getrf_refused = [&](auto change) {
    auto op = getrf;
    change(op);
    refused(op, std::vector{TailOperand{y, 0, Access::update}});
  };
  getrf_refused([](auto& op) { op.lda = 1; });
  getrf_refused([](auto& op) { op.n = op.lda = 9; });
  getrf_refused([](auto& op) { op.n = -1; });
  getrf_refused([&](auto& op) { op.info = absent; });
  getrf_refused([&](auto& op) { op.pivots = i; });  // which is info
  getrf_refused([](auto& op) { op.batch = 2; });
  refused(getrf, std::vector{a});

  const GemmGrouped grouped{DType::f64, 1};
  GemmGroup group;
  group.m = group.n = group.k = group.lda = group.ldb = group.ldc = 2, group.batch = 1;
  const auto bytes = [](const GemmGroup& one_group) {
    return std::as_bytes(std::span(&one_group, 1));
  };
  const std::vector tail{a, v, w};
  refused(grouped, Parts(tail));
  refused(GemmGrouped{DType::f64, 2}, Parts(tail, bytes(group)));
  refused(GemmGrouped{DType::c64, 1}, Parts(tail, bytes(group)), Errc::unsupported);
  auto changed = group;
  changed.batch = 2;
  refused(grouped, Parts(tail, bytes(changed)));
  changed = group, changed.m = changed.lda = changed.ldc = 9;
  refused(grouped, Parts(tail, bytes(changed)));
  changed = group, changed.beta = 1;  // then c is updated
  refused(grouped, Parts(tail, bytes(changed)));

  const std::vector<MatrixRef<GpuRef<double>>> unlike{{ref, 2, 2}, {ref, 3, 3}}, none;
  EXPECT_EQ(device().blas().getrf_batched(unlike, index).wait().code(), Errc::invalid);
}

}  // namespace
}  // namespace troupe::test::reference
