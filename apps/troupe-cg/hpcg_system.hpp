#pragma once

#include <chrono>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <span>
#include <vector>

#include <troupe/troupe.hpp>

#include "distributed_matrix.hpp"
#include "hpcg_result.hpp"
#include "load.hpp"
#include "multigrid.hpp"

namespace troupe::cg {

/// One system of HPCG on the devices of all ranks, and HPCG's conjugate gradient method for it: the
/// same products, updates and sums in the same order as in its CG_ref.cpp. All ranks make the same
/// calls. Calls submit and return, but for those that give numbers. They throw Exception.
template <troupe::IndexElement I>
class HpcgSystem {
 public:
  /// `plans`: of all grids, the finest first. `b`: in the order of the problem's rows.
  HpcgSystem(Runtime& runtime, const LocalProblem<I>& problem,
             const std::vector<CoarseGrid<I>>& coarser, const std::vector<ExchangePlan<I>>& plans,
             std::span<const double> b, std::int32_t threads)
      : device_(&runtime.device()),
        world_(&runtime.world()),
        global_rows_(problem.global_rows),
        matrix_(runtime, problem, plans[0], threads, DistributedMatrix<double, I>::Form::csr),
        multigrid_(runtime, matrix_, problem, coarser, plans) {
    for (auto* vector : {&b_, &x_, &r_, &p_, &q_, &z_})
      *vector = device_->alloc<double>(problem.rows);
    state_ = device_->alloc<double>(kStates);
    work_ = device_->alloc<double>(kWork);
    device_->upload(b, b_).get();
  }

  void add_to(Checkpoint& checkpoint) {
    checkpoint.add("x", x_);
    checkpoint.add("r", r_);
    checkpoint.add("p", p_);
    checkpoint.add("scalars", state_);
    for (auto* scratch : {&q_, &z_, &work_}) checkpoint.add_scratch(*scratch);
    multigrid_.register_scratch(checkpoint);
    matrix_.register_scratch(checkpoint);
  }

  /// x = 0, r = b - A x; p and r'z such that the first iteration has p = z. `each(part, results,
  /// call)` makes each call that is a part of a set.
  template <class Each>
  void start(Each each) {
    device_->fill(x_, 0.0);
    each(Part::spmv, {r_}, [&] {
      device_->copy(b_, r_);
      matrix_.multiply(x_, r_, -1.0, 1.0);
    });
    product(r_, r_, state(kRr), each);
    device_->copy(state(kRr), state(kRr0));
    device_->fill(p_, 0.0);
    device_->fill(state(kRz), 1.0);
  }
  void start() { start(kPlainly); }

  template <class Each>
  void iterate(bool preconditioned, Each each) {
    auto blas = device_->blas();
    auto vector = device_->vector();
    each(Part::multigrid, {z_}, [&] {
      if (preconditioned) {
        multigrid_.apply(r_, z_);
      } else {
        device_->copy(r_, z_);
      }
    });
    device_->copy(state(kRz), work(kRzBefore));
    product(r_, z_, state(kRz), each);
    each(Part::waxpby, {p_}, [&] {
      vector.divide(state(kRz), work(kRzBefore), work(kBeta));
      vector.axpby(1.0, z_, work(kBeta), p_);
    });
    each(Part::spmv, {q_}, [&] { matrix_.multiply(p_, q_); });
    product(p_, q_, work(kPap), each);
    each(Part::waxpby, {x_, r_}, [&] {
      vector.divide(state(kRz), work(kPap), work(kAlpha));
      vector.axpby(-1.0, work(kAlpha), 0.0, work(kMinusAlpha));
      blas.axpy(work(kAlpha), p_, x_);
      blas.axpy(work(kMinusAlpha), q_, r_);
    });
    product(r_, r_, state(kRr), each);
  }
  void iterate(bool preconditioned = true) { iterate(preconditioned, kPlainly); }

  /// |r| / |r of the start|
  double scaled_residual() {
    const auto values = device_->download(state_);
    return std::sqrt(values[kRr] / values[kRr0]);
  }
  /// |x - 1| / |1|, which overwrites q.
  double relative_error() {
    device_->fill(q_, 1.0);
    device_->vector().axpby(1.0, x_, -1.0, q_);
    return std::sqrt(sum_of_products(q_, q_) / static_cast<double>(global_rows_));
  }

  /// Departures from symmetry as HPCG's TestSymmetry.cpp has them: |x'Fy - y'Fx|, over epsilon and
  /// 2 x'x |A| y'y, where |A| is 52. Overwrites all vectors but b.
  struct Departures {
    double spmv, multigrid;
  };
  Departures departures(std::span<const double> x, std::span<const double> y) {
    device_->upload(x, x_).get();
    device_->upload(y, p_).get();
    constexpr double kNorm = 2 * 26.0;
    const double scale = 2 * sum_of_products(x_, x_) * kNorm * sum_of_products(p_, p_) *
                         std::numeric_limits<double>::epsilon();
    const auto departure = [&](auto apply) {
      apply(p_, q_);
      const double xfy = sum_of_products(x_, q_);
      apply(x_, q_);
      return std::abs(xfy - sum_of_products(p_, q_)) / scale;
    };
    using Vector = GpuRef<double>;
    const auto spmv =
        departure([&](const Vector& from, const Vector& to) { matrix_.multiply(from, to); });
    const auto multigrid =
        departure([&](const Vector& from, const Vector& to) { multigrid_.apply(from, to); });
    return {spmv, multigrid};
  }

  /// Seconds of a product and a multigrid cycle together, as a mean of `calls`, after one that does
  /// not count. Overwrites p, q and z.
  double time_kernels(int calls) {
    device_->fill(p_, 1.0);
    const auto both = [&] {
      matrix_.multiply(p_, q_);
      multigrid_.apply(q_, z_);
    };
    both();
    wait_for(z_);
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) both();
    wait_for(z_);
    return seconds_since(begin) / calls;
  }

  /// A number of each rank, reduced over all of them.
  double over_ranks(double value, ReduceOp op) {
    device_->upload(std::span<const double>(&value, 1), work(kSum)).get();
    world_->all_reduce(work(kSum), op);
    return device_->download(work(kSum))[0];
  }
  /// Waits until the vector has been written.
  void wait_for(const GpuRef<double>& vector) { (void)device_->download(vector.slice(0, 1)); }

 private:
  /// Places in state_, which an iteration reads.
  enum : std::int64_t { kRz, kRr, kRr0, kStates };
  /// Places in work_.
  enum : std::int64_t { kAlpha, kMinusAlpha, kBeta, kPap, kRzBefore, kSum, kWork };

  static constexpr auto kPlainly = [](Part, std::initializer_list<GpuRef<double>>, auto call) {
    call();
  };
  [[nodiscard]] GpuRef<double> state(std::int64_t place) const { return state_.slice(place, 1); }
  [[nodiscard]] GpuRef<double> work(std::int64_t place) const { return work_.slice(place, 1); }

  template <class Each>
  void product(const GpuRef<double>& x, const GpuRef<double>& y, const GpuRef<double>& result,
               Each each) {
    each(Part::dot, {result}, [&] { device_->blas().dot(x, y, result); });
    each(Part::all_reduce, {result}, [&] { world_->all_reduce(result, ReduceOp::sum); });
  }
  double sum_of_products(const GpuRef<double>& x, const GpuRef<double>& y) {
    product(x, y, work(kSum), kPlainly);
    return device_->download(work(kSum))[0];
  }

  Device* device_;
  World* world_;
  std::int64_t global_rows_;
  DistributedMatrix<double, I> matrix_;
  Multigrid<double, I> multigrid_;
  GpuRef<double> b_, x_, r_, p_, q_, z_, state_, work_;
};

}  // namespace troupe::cg
