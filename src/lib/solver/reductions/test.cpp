// Steps of factorisations and eigenvalue problems: arguments that are refused.
#include "solver_reference.hpp"

namespace troupe::test::reference {
namespace {

using solver::Order;

TEST_F(BadArguments, OfReductions) {
  const auto put_more = [] { return put(std::vector<double>(16, 1.0)); };
  const auto second = put_more(), third = put_more(), fourth = put_more(), fifth = put_more();
  const Operand d = second.operand(), e = third.operand(), tau = fourth.operand(),
                tau_p = fifth.operand();
  const auto rows = put(std::vector<std::int64_t>(4, 1));
  const auto refuse = [](const auto& good, auto change) {
    auto op = good;
    change(op);
    expect_refused(op);
  };
  const auto refuse_squares = [&](const auto& good) {
    refuse(good, [](auto& op) { op.n = 5; });
    refuse(good, [](auto& op) { op.n = -1; });
    refuse(good, [](auto& op) { op.lda = 3; });
    refuse(good, [](auto& op) { op.uplo = static_cast<Uplo>(2); });
    refuse(good, [&](auto& op) { op.a = unaligned; });
  };
  const solver::Sytrd sytrd{DType::f64, Uplo::lower, 0, 4, 4, x, d, e, tau};
  refuse_squares(sytrd);
  refuse(sytrd, [](auto& op) { op.d.bytes = 24; });
  refuse(sytrd, [](auto& op) { op.e.bytes = 16; });
  refuse(sytrd, [](auto& op) { op.tau.bytes = 16; });
  refuse(sytrd, [](auto& op) { op.tau = op.a; });
  const solver::Orgtr orgtr{DType::f64, Uplo::lower, 0, 4, 4, x, tau};
  refuse_squares(orgtr);
  refuse(orgtr, [&](auto& op) { op.tau = absent; });
  const solver::Ormtr ormtr{DType::f64, Side::left, Uplo::lower, {}, 0, 4, 4, 4, 4, x, tau, d};
  refuse_squares(ormtr);
  refuse(ormtr, [](auto& op) { op.side = static_cast<Side>(2); });
  refuse(ormtr, [](auto& op) { op.transpose = static_cast<Transpose>(3); });
  refuse(ormtr, [](auto& op) { op.ldc = 3; });
  refuse(ormtr, [&](auto& op) { op.c = x; });
  const solver::Gebrd gebrd{DType::f64, 4, 4, 4, x, d, e, tau, tau_p};
  refuse(gebrd, [](auto& op) { op.m = 3; });
  refuse(gebrd, [](auto& op) { op.n = -1; });
  refuse(gebrd, [](auto& op) { op.lda = 5; });
  refuse(gebrd, [](auto& op) { op.tau_p = op.tau_q; });
  const solver::Orgbr orgbr{DType::f64, Side::right, 0, 4, 4, 4, x, tau};
  refuse(orgbr, [](auto& op) { op.m = 3; });
  refuse(orgbr, [](auto& op) { op.side = static_cast<Side>(2); });
  refuse(orgbr, [](auto& op) { op.tau.bytes = 24; });
  const solver::Larft larft{DType::f64, 4, 4, 4, 4, x, tau, d};
  refuse(larft, [](auto& op) { op.k = 5; });
  refuse(larft, [](auto& op) { op.ldt = 3; });
  refuse(larft, [&](auto& op) { op.t = x; });
  const solver::Laswp laswp{DType::f64, {}, 0, 4, 4, 4, 1, 4, x, rows.operand()};
  refuse(laswp, [](auto& op) { op.order = static_cast<Order>(2); });
  refuse(laswp, [](auto& op) { op.first = 0; });
  refuse(laswp, [](auto& op) { op.last = 5; });
  refuse(laswp, [](auto& op) { op.first = 4, op.last = 2; });
  refuse(laswp, [&](auto& op) { op.pivots = absent; });
  refuse_squares(solver::Lauum{DType::f64, Uplo::lower, 0, 4, 4, x});
}

}  // namespace
}  // namespace troupe::test::reference
