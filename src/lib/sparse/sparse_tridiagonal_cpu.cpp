#include "lib/sparse/band_cpu.hpp"
#include "lib/sparse/sparse_cpu.hpp"

/// Matrices with three or five diagonals on the cpu engine.
namespace troupe::host::cpu {
namespace {

/// Solves for one system after the other: number j starts at element j * start, and the rows of
/// each are `step` apart.
template <class T, std::int64_t kBand>
void solve_each(std::int64_t n, std::int64_t batch, std::int64_t start, std::int64_t step,
                const std::array<const T*, BandSolver<T, kBand>::kDiagonals>& diagonals, T* x) {
  for (std::int64_t j = 0; j < batch; ++j) {
    std::array<Spread<const T>, BandSolver<T, kBand>::kDiagonals> own{};
    for (std::size_t d = 0; d < own.size(); ++d) own[d] = {diagonals[d] + j * start, step};
    BandSolver<T, kBand>(n, own).solve({x + j * start, step});
  }
}

template <class T, class Op>
std::array<const T*, 3> diagonals_of(const Op& op, const Call& call) {
  return {call.at<const T>(op.lower), call.at<const T>(op.diagonal), call.at<const T>(op.upper)};
}

}  // namespace

Result<void> Sparse::run(const sparse::Gtsv& op, const Call& call) {
  return with_number(op.dtype, [&]<class T>(T) {
    return services_.submit(call, [op, d = diagonals_of<T>(op, call), b = call.at<T>(op.b)] {
      const BandSolver<T, 1> solver(op.n, {{{d[0], 1}, {d[1], 1}, {d[2], 1}}});
      for (std::int64_t j = 0; j < op.nrhs; ++j) solver.solve({b + j * op.ldb, 1});
    });
  });
}

Result<void> Sparse::run(const sparse::GtsvStrided& op, const Call& call) {
  return with_number(op.dtype, [&]<class T>(T) {
    return services_.submit(call, [op, d = diagonals_of<T>(op, call), x = call.at<T>(op.x)] {
      solve_each<T, 1>(op.n, op.batch, op.stride, 1, d, x);
    });
  });
}

Result<void> Sparse::run(const sparse::GtsvInterleaved& op, const Call& call) {
  return with_number(op.dtype, [&]<class T>(T) {
    return services_.submit(call, [op, d = diagonals_of<T>(op, call), x = call.at<T>(op.x)] {
      solve_each<T, 1>(op.n, op.batch, 1, op.batch, d, x);
    });
  });
}

Result<void> Sparse::run(const sparse::GpsvInterleaved& op, const Call& call) {
  return with_number(op.dtype, [&]<class T>(T) {
    const std::array<const T*, 5> d{call.at<const T>(op.lower2), call.at<const T>(op.lower),
                                    call.at<const T>(op.diagonal), call.at<const T>(op.upper),
                                    call.at<const T>(op.upper2)};
    return services_.submit(call, [op, d, x = call.at<T>(op.x)] {
      solve_each<T, 2>(op.n, op.batch, 1, op.batch, d, x);
    });
  });
}

}  // namespace troupe::host::cpu
