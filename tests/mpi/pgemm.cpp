#include <complex>
#include <optional>

#include <troupe/distributed.hpp>

#include "mpi_tests.hpp"

// Products of matrices that are spread over a grid of ranks: small integers, so that each is exact.

namespace troupe::test {
namespace {

using blas::Transpose;
using distributed::Grid;
using distributed::Layout;
using distributed::Matrix;
using distributed::Pgemm;
using distributed::PgemmOptions;

/// Element (i, j) of a matrix, of which there are several.
template <class T>
T at(int which, std::int64_t i, std::int64_t j) {
  const auto real = static_cast<RealOf<T>>((i * (which + 1) + 3 * j + which) % 7 - 3);
  if constexpr (ComplexElement<T>)
    return {real, static_cast<RealOf<T>>((2 * i + j * (which + 2)) % 5 - 2)};
  else
    return real;
}

template <class T>
void fill(Context& c, int which, Matrix<T>& matrix) {
  std::vector<T> values;
  for (std::int64_t j = 0; j < matrix.local_columns(); ++j) {
    for (std::int64_t i = 0; i < matrix.local_rows(); ++i)
      values.push_back(at<T>(which, matrix.row_at(i), matrix.column_at(j)));
  }
  c.device().upload<T>(values, matrix.local()).get();
}

template <class T>
T of_op(Transpose transpose, int which, std::int64_t i, std::int64_t j) {
  if (transpose == Transpose::no) return at<T>(which, i, j);
  const T mirrored = at<T>(which, j, i);
  if constexpr (ComplexElement<T>)
    return transpose == Transpose::conjugate ? std::conj(mirrored) : mirrored;
  return mirrored;
}

struct Product {
  std::int64_t m, n, k;
  Layout a, b, c;
  PgemmOptions options;
};

/// What this rank should have of alpha op(A) op(B) + beta C.
template <class T>
std::vector<T> expected(const Product& product, const Matrix<T>& c, T alpha, T beta) {
  std::vector<T> values;
  for (std::int64_t j = 0; j < c.local_columns(); ++j) {
    for (std::int64_t i = 0; i < c.local_rows(); ++i) {
      T sum{};
      for (std::int64_t k = 0; k < product.k; ++k)
        sum += of_op<T>(product.options.transpose_a, 0, c.row_at(i), k) *
               of_op<T>(product.options.transpose_b, 1, k, c.column_at(j));
      values.push_back(alpha * sum + beta * at<T>(2, c.row_at(i), c.column_at(j)));
    }
  }
  return values;
}

template <class T>
void multiply(Context& c, Grid& grid, const Product& product, const std::string& what) {
  Matrix<T> a(c.device(), grid, product.a), b(c.device(), grid, product.b),
      result(c.device(), grid, product.c);
  fill(c, 0, a), fill(c, 1, b), fill(c, 2, result);
  Pgemm<T> plan(c.device(), grid, product.a, product.b, product.c, product.options);
  const auto run = plan.multiply(T(2), a, b, T(-3), result);
  c.require(run.wait_for(kDeadline), what + " does not resolve");
  c.expect(run.wait().ok(), what + ": " + (run.wait().ok() ? "" : run.wait().error().message));
  c.expect_equal(c.device().download(result.local()), expected<T>(product, result, T(2), T(-3)),
                 what + " is wrong");
  // What stands in c is not read with beta = 0; the plan serves again.
  c.device().fill(result.local(), T(std::numeric_limits<RealOf<T>>::quiet_NaN()));
  plan.multiply(T(1), a, b, T(0), result).get();
  c.expect_equal(c.device().download(result.local()), expected<T>(product, result, T(1), T(0)),
                 what + " is wrong with beta = 0");
}

/// A product with all matrices in blocks of these extents, those of A and B transposed with them.
Product product_of(std::int64_t m, std::int64_t n, std::int64_t k, Transpose of_a, Transpose of_b,
                   std::int64_t block_m, std::int64_t block_n, std::int64_t block_k) {
  const auto layout = [](Transpose transpose, std::int64_t rows, std::int64_t columns,
                         std::int64_t block_rows, std::int64_t block_columns) {
    return transpose == Transpose::no ? Layout{rows, columns, block_rows, block_columns}
                                      : Layout{columns, rows, block_columns, block_rows};
  };
  return {m,
          n,
          k,
          layout(of_a, m, k, block_m, block_k),
          layout(of_b, k, n, block_k, block_n),
          {m, n, block_m, block_n},
          {of_a, of_b, 5}};
}

/// A recorded product, run more than once: of one communicator, as a sequence must be.
void recorded(Context& c, Grid& grid, const std::string& of_grid) {
  const auto product = product_of(23, 19, 29, Transpose::no, Transpose::no, 4, 3, 6);
  Matrix<double> a(c.device(), grid, product.a), b(c.device(), grid, product.b),
      result(c.device(), grid, product.c);
  fill(c, 0, a), fill(c, 1, b), fill(c, 2, result);
  Pgemm<double> plan(c.device(), grid, product.a, product.b, product.c, product.options);
  const auto sequence = c.device().record([&] { plan.multiply(1.0, a, b, 1.0, result); });
  for (int i = 0; i < 3; ++i) sequence.run();
  c.expect_equal(c.device().download(result.local()), expected(product, result, 3.0, 1.0),
                 of_grid + ": a recorded product is wrong");
}

constexpr std::array kTransposes{Transpose::no, Transpose::yes, Transpose::conjugate};

template <class T>
void products(Context& c, Grid& grid, const std::string& of_grid) {
  for (const auto of_a : kTransposes) {
    for (const auto of_b : kTransposes)
      multiply<T>(c, grid, product_of(23, 19, 29, of_a, of_b, 4, 3, 6),
                  of_grid + ", transposes " + std::to_string(static_cast<int>(of_a)) + " and " +
                      std::to_string(static_cast<int>(of_b)));
  }
}

void others(Context& c, Grid& grid, const std::string& of_grid) {
  const auto blocks = [&](std::int64_t rows, std::int64_t columns) {
    return Layout::blocks(rows, columns, grid.rows(), grid.columns());
  };
  const auto no = Transpose::no;
  const int last_row = grid.rows() - 1, last_column = grid.columns() - 1;
  multiply<double>(c, grid, {31, 33, 35, blocks(31, 35), blocks(35, 33), blocks(31, 33), {}},
                   of_grid + ", one block each");
  multiply<double>(c, grid,
                   {31,
                    33,
                    35,
                    {31, 35, 3, 4, last_row, 0},
                    {35, 33, 5, 2, 0, last_column},
                    {31, 33, 7, 6, last_row, last_column},
                    {no, no, 3}},
                   of_grid + ", layouts that have nothing in common");
  multiply<double>(c, grid, product_of(2, 3, 1, no, no, 2, 3, 1), of_grid + ", ranks with nothing");
  multiply<double>(c, grid, product_of(0, 3, 2, no, no, 2, 2, 2), of_grid + ", no rows");
  multiply<double>(c, grid, product_of(5, 4, 0, no, no, 2, 2, 2), of_grid + ", an empty sum");
  multiply<double>(c, grid, product_of(150, 170, 190, no, no, 32, 32, 64), of_grid + ", larger");

  Matrix<double> matrix(c.device(), grid, {9, 7, 2, 3, last_row, last_column});
  std::vector<double> whole;
  for (int i = 0; i < 63; ++i) whole.push_back(i);
  matrix.scatter(c.first() ? whole : std::vector<double>());
  const int root = c.size() - 1;
  c.expect_equal(matrix.gather(root), (c.rank() == root ? whole : std::vector<double>()),
                 of_grid + ": scatter and gather");
}

template <class F>
void expect_invalid(Context& c, const std::string& what, const F& make) {
  bool refused = false;
  try {
    make();
  } catch (const CollectiveException& e) {
    refused = e.code() == Errc::invalid;
  }
  c.expect(refused, what + " is not refused");
}

}  // namespace

TROUPE_MPI_CASE(pgemm) {
  for (int rows = 1; rows <= c.size(); ++rows) {
    if (c.size() % rows != 0) continue;
    Grid grid(c.world(), rows, c.size() / rows);
    const auto of_grid = std::to_string(rows) + " x " + std::to_string(grid.columns());
    products<float>(c, grid, "f32 on " + of_grid);
    products<double>(c, grid, "f64 on " + of_grid);
    products<std::complex<float>>(c, grid, "c64 on " + of_grid);
    products<std::complex<double>>(c, grid, "c128 on " + of_grid);
    others(c, grid, of_grid);
    if (rows == 1 || grid.columns() == 1) recorded(c, grid, of_grid);
  }
  // On a group whose ranks are in another order than the world's.
  auto reversed = c.world().split(0, -c.rank());
  Grid grid(reversed, reversed.size(), 1);
  products<double>(c, grid, "reversed");
}

/// Each is the same error on all ranks, and what comes afterwards is right.
TROUPE_MPI_CASE(pgemm_refusals) {
  auto& device = c.device();
  expect_invalid(c, "a grid that is too large", [&] { Grid(c.world(), c.size() + 1, 1); });
  expect_invalid(c, "a grid of nothing", [&] { Grid(c.world(), 0, 0); });
  expect_invalid(c, "a grid that differs",
                 [&] { c.first() ? Grid(c.world(), 1, c.size()) : Grid(c.world(), 7, 9); });
  Grid grid(c.world(), 1, c.size()), other(c.world(), c.size(), 1);
  const Layout square{12, 12, 4, 4}, wide{12, 13, 4, 4};
  expect_invalid(c, "blocks of nothing", [&] { Matrix<double>(device, grid, {4, 4, 0, 1}); });
  expect_invalid(c, "a negative extent", [&] { Matrix<double>(device, grid, {-4, 4, 1, 1}); });
  expect_invalid(c, "a first row outside", [&] {
    Matrix<double>(device, grid, {4, 4, 1, 1, 1, 0});
  });
  expect_invalid(c, "layouts that differ between ranks",
                 [&] { Matrix<double>(device, grid, c.first() ? square : wide); });
  expect_invalid(c, "shapes that do not fit",
                 [&] { Pgemm<double>(device, grid, wide, square, square); });
  expect_invalid(c, "a panel of nothing",
                 [&] { Pgemm<double>(device, grid, square, square, square, {.panel = 0}); });
  expect_invalid(c, "plans that differ between ranks", [&] {
    Pgemm<double>(device, grid, square, square, square, {.panel = c.first() ? 4 : 5});
  });
  Matrix<double> a(device, grid, square), b(device, grid, square), result(device, grid, square),
      small(device, grid, {4, 4, 4, 4}), elsewhere(device, other, square);
  expect_invalid(c, "a whole of another length",
                 [&] { a.scatter(std::vector<double>(c.first() ? 5 : 0)); });
  fill(c, 0, a), fill(c, 1, b), fill(c, 2, result);
  const auto before = device.download(result.local());
  Pgemm<double> plan(device, grid, square, square, square);
  const auto is_refused = [&](const Future<void>& run, const std::string& what) {
    c.require(run.wait_for(kDeadline), what + " does not resolve");
    c.expect_equal(run.wait().code(), Errc::invalid, what + " is not refused");
  };
  is_refused(plan.multiply(1.0, small, b, 0.0, result), "a matrix of another layout");
  is_refused(plan.multiply(1.0, a, elsewhere, 0.0, result), "a matrix on another grid");
  is_refused(plan.multiply(1.0, a, b, 0.0, a), "a product in place of its factor");
  c.expect_equal(device.download(result.local()), before,
                 "a refused product has changed something");
  (void)device.take_error();
  plan.multiply(1.0, a, b, 0.0, result).get();
  const Product product{12, 12, 12, square, square, square, {}};
  c.expect_equal(device.download(result.local()), expected(product, result, 1.0, 0.0),
                 "the product after the refusals");
}

/// Device hosts die in the middle of products within a run; all factors are part of the state.
TROUPE_MPI_CASE(pgemm_faults) {
  constexpr std::int64_t kSteps = 24;
  auto& device = c.device();
  const int rows = c.size() % 2 == 0 ? 2 : 1;
  Grid grid(c.world(), rows, c.size() / rows);
  const auto product = product_of(64, 48, 80, Transpose::yes, Transpose::no, 8, 8, 16);
  Matrix<double> a(device, grid, product.a), b(device, grid, product.b),
      sum(device, grid, product.c);
  fill(c, 0, a), fill(c, 1, b);
  device.fill(sum.local(), 0.0);
  Pgemm<double> plan(device, grid, product.a, product.b, product.c, product.options);
  Checkpoint state(device);
  state.add("a", a.local()), state.add("b", b.local()), state.add("sum", sum.local());
  std::set<std::int64_t> strikes{5, 13, 14};
  c.world().run(state,
                [&](std::int64_t i) {
                  plan.multiply(1.0, a, b, 1.0, sum);
                  if (strikes.erase(i) != 0 && c.rank() == i % c.size())
                    device.inject(memory::FaultKind::kill);
                  plan.multiply(1.0, a, b, -1.0, sum);  // AB - (S + AB) = -S
                  plan.multiply(2.0, a, b, -1.0, sum);  // 2 AB + S
                  return i + 1 < kSteps ? Step::again : Step::done;
                },
                {.commit_every = 6});
  auto wanted = expected(product, sum, 2.0 * kSteps, 0.0);
  c.expect_equal(device.download(sum.local()), wanted, "the sum after the faults");
  c.expect(c.world().recoveries().size() >= 2, "no fault was overcome");
}

}  // namespace troupe::test
