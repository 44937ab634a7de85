#pragma once

#include <chrono>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <memory>
#include <utility>

#include <troupe/troupe.hpp>

#include "hpcg_kernels.hpp"
#include "hpcg_result.hpp"
#include "load.hpp"

namespace troupe::cg {

/// One system of HPCG on the devices of all ranks, and HPCG's conjugate gradient method for it: the
/// same products, updates and sums in the same order as in its CG_ref.cpp. `Operator` is
/// HpcgReference or ColouredOperator. All ranks make the same calls. Calls submit and return, but
/// for those that give numbers. They throw Exception.
template <class Operator>
class HpcgSystem {
 public:
  /// `b`: in the operator's order of rows. `kernels` outlive the system.
  HpcgSystem(Runtime& runtime, const HpcgKernels& kernels, std::unique_ptr<Operator> matrix,
             GpuRef<double> b)
      : device_(&runtime.device()),
        world_(&runtime.world()),
        kernels_(&kernels),
        rows_(matrix->rows()),
        operator_(std::move(matrix)),
        b_(std::move(b)) {
    for (auto* vector : {&x_, &r_, &p_, &q_, &z_}) *vector = device_->template alloc<double>(rows_);
    state_ = device_->template alloc<double>(kStates);
    work_ = device_->template alloc<double>(kWork);
  }

  [[nodiscard]] Operator& matrix() { return *operator_; }
  /// The right side; another one for the next start().
  [[nodiscard]] const GpuRef<double>& right_side() const { return b_; }
  void set_right_side(const GpuRef<double>& b) { b_ = b; }

  void add_to(Checkpoint& checkpoint) {
    checkpoint.add("x", x_);
    checkpoint.add("r", r_);
    checkpoint.add("p", p_);
    checkpoint.add("scalars", state_);
    for (auto* scratch : {&q_, &z_, &work_}) checkpoint.add_scratch(*scratch);
    operator_->register_scratch(checkpoint);
  }

  /// x = 0, r = b - A x; p and r'z such that the first iteration has p = z. `each(part, results,
  /// call)` makes each call that is a part of a set.
  template <class Each>
  void start(Each each) {
    device_->fill(x_, 0.0);
    each(Part::spmv, {r_}, [&] {
      operator_->multiply(x_, r_);
      device_->vector().axpby(1.0, b_, -1.0, r_);
    });
    product(r_, r_, state(kRr), each);
    device_->copy(state(kRr), state(kRr0));
    device_->fill(p_, 0.0);
    device_->fill(state(kRzBefore), 1.0);
  }
  void start() { start(kPlainly); }

  template <class Each>
  void iterate(bool preconditioned, Each each) {
    const auto n = static_cast<std::int32_t>(rows_);
    each(Part::multigrid, {z_}, [&] {
      if (preconditioned) {
        operator_->precondition(r_, z_);
      } else {
        device_->copy(r_, z_);
      }
    });
    product(r_, z_, work(kRz), each);
    each(Part::waxpby, {p_}, [&] {
      device_->launch(kernels_->direction, HpcgKernels::each_once(n), n, read(work(kRz)),
                      read(state(kRzBefore)), read(z_), update(p_));
    });
    each(Part::spmv, {q_}, [&] { operator_->multiply(p_, q_); });
    product(p_, q_, work(kPap), each);
    each(Part::waxpby, {x_, r_}, [&] {
      device_->launch(kernels_->update, HpcgKernels::each_once(n), n, read(work(kRz)),
                      read(work(kPap)), read(p_), read(q_), update(x_), update(r_),
                      write(state(kRzBefore)));
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
    return std::sqrt(sum_of_products(q_, q_) / static_cast<double>(rows_ * world_->size()));
  }

  /// Departures from symmetry as HPCG's TestSymmetry.cpp has them: |x'Fy - y'Fx|, over epsilon and
  /// 2 x'x |A| y'y, where |A| is 52. Overwrites all vectors but b.
  struct Departures {
    double spmv, multigrid;
  };
  Departures departures() {
    operator_->randomise(1, x_);
    operator_->randomise(2, p_);
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
        departure([&](const Vector& from, const Vector& to) { operator_->multiply(from, to); });
    const auto multigrid =
        departure([&](const Vector& from, const Vector& to) { operator_->precondition(from, to); });
    return {spmv, multigrid};
  }

  /// Seconds of a product and a multigrid cycle together, as a mean of `calls`, after one that does
  /// not count. Overwrites p, q and z.
  double time_kernels(int calls) {
    device_->fill(p_, 1.0);
    const auto both = [&] {
      operator_->multiply(p_, q_);
      operator_->precondition(q_, z_);
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
  enum : std::int64_t { kRzBefore, kRr, kRr0, kStates };
  /// Places in work_.
  enum : std::int64_t { kRz, kPap, kSum, kWork };

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
  const HpcgKernels* kernels_;
  std::int64_t rows_;
  std::unique_ptr<Operator> operator_;
  GpuRef<double> b_, x_, r_, p_, q_, z_, state_, work_;
};

}  // namespace troupe::cg
