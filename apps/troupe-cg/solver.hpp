#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <troupe/sequence.hpp>

#include "distributed_matrix.hpp"
#include "load.hpp"
#include "multigrid.hpp"
#include "options.hpp"
#include "redistribution.hpp"
#include "report.hpp"

namespace troupe::cg {

/// Shown at every check on rank 0: iteration, relative residual.
using Progress = std::function<void(std::int64_t iteration, double residual)>;

/// What one solve has over all its shares: a world that loses ranks deals the problem out anew.
struct Solve {
  Runtime* runtime;
  const Options* options;
  Report* report;
  Progress progress;
  FaultsOfRank faults;
  std::chrono::steady_clock::time_point began{};
  /// The first iteration (from 1) that came to nothing: p'Ap was not positive. 0: none
  std::int64_t breakdown = 0;
  double breakdown_value = 0;     ///< p'Ap, or the residual that is not finite
  bool underflow = false;         ///< p'Ap is 0 because its terms are too small for the dtype
  double breakdown_residual = 0;  ///< the relative residual before it

  /// The residual was down to rounding: what p'Ap is then says nothing about the matrix.
  [[nodiscard]] bool stagnated() const {
    const double epsilon = options->dtype == DType::f32 ? std::numeric_limits<float>::epsilon()
                                                        : std::numeric_limits<double>::epsilon();
    return breakdown != 0 && breakdown_residual <= 10 * epsilon;
  }
};

/// What the host makes of a problem: see partition.hpp.
struct HostVectors {
  Array<double> solution, right_hand_side, diagonal;
};

/// A rank's share of a solve, whatever its numbers and indices are.
class Share {
 public:
  Share() = default;
  virtual ~Share() = default;
  Share(const Share&) = delete;
  Share& operator=(const Share&) = delete;

  /// The state before the first iteration; all ranks.
  virtual void start() = 0;
  /// An iteration that is not counted: neighbours are connected, and what is recorded is made.
  virtual void warm_up() = 0;
  virtual void add_to(Checkpoint& checkpoint) = 0;
  /// This rank's rows from a state that another number of ranks has saved.
  virtual void take_over(const SavedState& state) = 0;
  /// Iteration i, from 0.
  virtual Step step(std::int64_t i) = 0;
  /// This rank's SpMV on its own, and a copy within the device, into the report.
  virtual void measure_kernels() = 0;
};

/// The preconditioned conjugate gradient method (Saad, Iterative Methods for Sparse Linear Systems,
/// 2nd ed., algorithm 9.1) over all devices of the world, without a host synchronisation but the
/// check every K iterations.
///
/// All scalars live on the device, three to an iteration (p'Ap, r'z, r'r). Every iteration leaves
/// them in the same places, so that all of them are one recorded sequence; copies of the last K + 1
/// are kept, so that a check sees everything that happened since the one before, breakdowns too.
template <RealElement T, troupe::IndexElement I>
class Solver final : public Share {
 public:
  /// `plans`: of all grids, the finest first. `threads`: on the host. Throws Exception.
  Solver(Solve& solve, LocalProblem<I> problem, const std::vector<CoarseGrid<I>>& coarser,
         const std::vector<ExchangePlan<I>>& plans, HostVectors vectors, std::int32_t threads)
      : solve_(&solve),
        device_(&solve.runtime->device()),
        world_(&solve.runtime->world()),
        problem_(std::move(problem)),
        matrix_(*solve.runtime, problem_, plans[0], threads,
                solve.options->preconditioner == Preconditioner::multigrid
                    ? DistributedMatrix<T, I>::Form::csr
                    : DistributedMatrix<T, I>::Form::fastest),
        mark_{problem_.global_rows, problem_.global_nonzeros,
              static_cast<std::int64_t>(solve.options->preconditioner),
              static_cast<std::int64_t>(solve.options->seed)},
        rows_{problem_.first_row, problem_.rows},
        options_(solve.options),
        threads_(threads),
        slots_(options_->check_every + 1),
        solution_(std::move(vectors.solution)),
        right_hand_side_(std::move(vectors.right_hand_side)) {
    const auto n = matrix_.rows();
    for (auto* vector : {&b_, &x_, &r_, &p_, &q_}) *vector = device_->template alloc<T>(n);
    if (preconditioned()) z_ = device_->template alloc<T>(n);
    if (options_->preconditioner == Preconditioner::multigrid)
      multigrid_.emplace(*solve.runtime, matrix_, problem_, coarser, plans);
    scalars_ = device_->template alloc<T>(kScalars);
    least_ = device_->template alloc<T>(2);
    device_->fill(least_, std::numeric_limits<T>::denorm_min());
    history_ = device_->template alloc<T>(3 * (slots_ + 1));
    seen_ = device_->template pinned<T>(static_cast<std::size_t>(history_.length()));
    upload(right_hand_side_, b_);
    if (options_->preconditioner == Preconditioner::jacobi) {
      inverse_diagonal_ = device_->template alloc<T>(n);
      inverses_ = std::move(vectors.diagonal);
      for (auto& value : inverses_) value = 1 / value;
      upload(inverses_, inverse_diagonal_);
    }
  }

  void add_to(Checkpoint& checkpoint) override {
    checkpoint.add("x", x_);
    checkpoint.add("r", r_);
    checkpoint.add("p", p_);
    checkpoint.add("scalars", history_);
    checkpoint.add_constant<std::int64_t>(kProblemEntry, mark_);
    checkpoint.add_constant<std::int64_t>(kRowsEntry, rows_);
    checkpoint.add_constant(kRowOrderEntry, std::span<const std::int64_t>(problem_.permutation));
    checkpoint.add_scratch(q_);
    checkpoint.add_scratch(scalars_);
    if (preconditioned()) checkpoint.add_scratch(z_);
    if (multigrid_) multigrid_->register_scratch(checkpoint);
    matrix_.register_scratch(checkpoint);
    matrix_.register_constants(checkpoint, problem_, threads_);
    checkpoint.add_constant("b", b_, [this] { upload(right_hand_side_, b_); });
    if (inverse_diagonal_)
      checkpoint.add_constant("inverse diagonal", inverse_diagonal_,
                              [this] { upload(inverses_, inverse_diagonal_); });
  }

  /// x = 0, r = b, p = z = M^-1 r; and the norms that everything is measured by.
  void start() override {
    upload(solution_, x_);
    device_->blas().dot(x_, x_, scalar(kSolutionNorm));
    device_->blas().dot(b_, b_, scalar(kRightHandSideNorm));
    device_->blas().asum(b_, scalar(kRightHandSideSum));
    world_->all_reduce(scalars_.slice(kSolutionNorm, 3), ReduceOp::sum);
    const auto norms = device_->download(scalars_.slice(kSolutionNorm, 3));
    solution_norm_ = std::sqrt(static_cast<double>(norms[0]));
    b_norm_ = std::sqrt(static_cast<double>(norms[1]));
    require_room_for_residuals(norms[1], norms[2]);
    device_->fill(x_, T(0));
    device_->fill(history_, T(1));
    device_->copy(b_, r_);
    precondition();
    device_->copy(z(), p_);
    residual_products();
    keep(-1);
    device_->nop().get();
    (void)device_->download(rz());
  }

  void warm_up() override {
    start();
    run_iteration(kUncounted);
    (void)device_->download(rz());
  }

  void take_over(const SavedState& state) override {
    const std::string names[] = {"x", "r", "p"};
    const auto vectors = redistribute<T>(state, problem_, mark_, names).take();
    // The scalars are sums over all ranks: those of any part do.
    const SavedPiece scalars{0, "scalars", 0, static_cast<std::uint64_t>(history_.length())};
    const auto values = SavedState::as<T>(state.read({&scalars, 1}).take()[0]);
    device_->upload(std::span<const T>(values), history_).get();
    GpuRef<T>* const targets[] = {&x_, &r_, &p_};
    for (std::size_t i = 0; i < vectors.size(); ++i)
      device_->upload(std::span<const T>(vectors[i]), *targets[i]).get();
  }

  Step step(std::int64_t i) override {
    auto& report = *solve_->report;
    run_iteration(i);
    const bool last = i + 1 >= options_->max_iterations;
    if ((i + 1) % options_->check_every != 0 && !last) return Step::again;
    device_->copy(history_, seen_).get();
    const double residual = look(i);
    if (world_->rank() == 0) solve_->progress(i + 1, residual);
    report.iterations = i + 1;
    report.relative_residual = residual;
    report.converged = residual <= options_->tolerance;
    if (solve_->breakdown != 0) return Step::done;
    if (!report.converged && !last) return Step::again;
    const auto verifying = std::chrono::steady_clock::now();
    report.solve_seconds = std::chrono::duration<double>(verifying - solve_->began).count();
    verify();
    report.verify_seconds = seconds_since(verifying);
    return Step::done;
  }

  void measure_kernels() override {
    constexpr int kRepeats = 20;
    auto& report = *solve_->report;
    const auto timed = [&](auto submit) {
      submit().get();
      const auto start = std::chrono::steady_clock::now();
      for (int i = 1; i < kRepeats; ++i) submit();
      submit().get();
      return seconds_since(start) / kRepeats;
    };
    device_->fill(x_, T(1));
    report.spmv_format = matrix_.own_format();
    report.spmv_bytes = matrix_.own_bytes();
    report.spmv_seconds = timed([&] { return matrix_.multiply_own(x_, q_); });
    // As large as the matrix, within reason, so that neither fits a cache that the other does not
    // fit.
    const auto length =
        static_cast<std::int64_t>(std::min(report.spmv_bytes / 2, 1e9) / sizeof(T)) + 1;
    auto from = device_->template try_alloc<T>(length);
    auto to = device_->template try_alloc<T>(length);
    if (!from.ok() || !to.ok()) return;
    device_->fill(*from, T(1));
    report.copy_bytes = 2.0 * static_cast<double>(from->bytes());
    report.copy_seconds = timed([&] { return device_->copy(*from, *to); });
  }

 private:
  /// Places in scalars_.
  enum : std::int64_t {
    kAlpha,
    kMinusAlpha,
    kBeta,
    kSolutionNorm,
    kRightHandSideNorm,
    kRightHandSideSum,
    kCheck,
    kCheck2,
    kDivisors,  ///< p'Ap
    kRzBefore,  ///< behind it
    kScalars
  };

  static constexpr std::int64_t kUncounted = -1;  ///< the number of an iteration that is no step

  [[nodiscard]] GpuRef<T> scalar(std::int64_t place) const { return scalars_.slice(place, 1); }
  /// The three scalars of the newest iteration: of history_, that they are in its checkpoints.
  [[nodiscard]] GpuRef<T> newest(std::int64_t place, std::int64_t count = 1) const {
    return history_.slice(3 * slots_ + place, count);
  }
  /// Where those of an iteration are kept.
  [[nodiscard]] std::int64_t kept(std::int64_t iteration) const {
    return 3 * ((iteration + slots_) % slots_);
  }
  /// M^-1 r
  [[nodiscard]] const GpuRef<T>& z() const { return preconditioned() ? z_ : r_; }
  [[nodiscard]] bool preconditioned() const {
    return options_->preconditioner != Preconditioner::none;
  }
  [[nodiscard]] GpuRef<T> pap() const { return newest(0); }
  [[nodiscard]] GpuRef<T> rz() const { return newest(1); }
  [[nodiscard]] GpuRef<T> rr() const { return newest(2); }

  void upload(std::span<const double> values, const GpuRef<T>& destination) {
    if constexpr (std::is_same_v<T, double>) {
      device_->upload(values, destination).get();
    } else {
      const std::vector<T> narrow(values.begin(), values.end());
      device_->upload(std::span<const T>(narrow), destination).get();
    }
  }

  /// The squares of residuals that matter, down to those of rounding, are numbers of T. Throws
  /// CollectiveException on all ranks.
  void require_room_for_residuals(T b_squared, T b_sum) const {
    const double tolerance =
        std::max(options_->tolerance, double{std::numeric_limits<T>::epsilon()});
    if (b_sum == T(0) ||
        static_cast<double>(b_squared) * tolerance * tolerance >= std::numeric_limits<T>::min())
      return;
    throw CollectiveException({Errc::invalid, 0,
                               "the numbers of the problem are so small that the squares of "
                               "residuals underflow: scale it"});
  }

  void precondition() {
    if (options_->preconditioner == Preconditioner::jacobi) {
      device_->vector().multiply(inverse_diagonal_, r_, z_);
    } else if (multigrid_) {
      multigrid_->apply(r_, z_);
    }
  }

  /// r'z and r'r, over all ranks
  void residual_products() {
    device_->blas().dot(r_, z(), rz());
    if (preconditioned()) {
      device_->blas().dot(r_, r_, rr());
      world_->all_reduce(newest(1, 2), ReduceOp::sum);
    } else {
      world_->all_reduce(rz(), ReduceOp::sum);
    }
  }

  /// The scalars of iteration i, which are the newest, for the next check.
  void keep(std::int64_t i) { device_->copy(newest(0, 3), history_.slice(kept(i), 3)); }

  /// As one command where nothing strikes in its middle.
  void run_iteration(std::int64_t i) {
    const auto& faults = options_->faults;  // of any rank: all of them run the same
    // A fault in a phase of a recovery has no iteration, and neither has the one that warms up.
    const bool struck =
        i != kUncounted && std::any_of(faults.begin(), faults.end(),
                                       [i](const auto& fault) { return fault.iteration == i; });
    if (!options_->record || struck) {
      iterate(i);
    } else {
      if (!recorded_) recorded_ = device_->record([&] { iterate(i); });
      recorded_.run();
    }
    keep(i);
  }

  void iterate(std::int64_t i) {
    auto blas = device_->blas();
    auto vector = device_->vector();
    matrix_.multiply(p_, q_);
    if (i != kUncounted) solve_->faults.strike(i);
    blas.dot(p_, q_, pap());
    world_->all_reduce(pap(), ReduceOp::sum);
    // At the exact solution both are 0, and so are r and p: the quotients have to be 0 as well. To
    // other divisors the least number adds nothing, or one unit in the last place.
    device_->copy(newest(0, 2), scalars_.slice(kDivisors, 2));
    vector.axpby(T(1), least_, T(1), scalars_.slice(kDivisors, 2));
    vector.divide(rz(), scalar(kDivisors), scalar(kAlpha));
    vector.axpby(T(-1), scalar(kAlpha), T(0), scalar(kMinusAlpha));
    blas.axpy(scalar(kMinusAlpha), q_, r_);
    blas.axpy(scalar(kAlpha), p_, x_);
    precondition();
    residual_products();
    vector.divide(rz(), scalar(kRzBefore), scalar(kBeta));
    vector.axpby(T(1), z(), scalar(kBeta), p_);
  }

  /// Reads the scalars since the last check; returns the relative residual after iteration i.
  double look(std::int64_t i) {
    auto& report = *solve_->report;
    const auto place = [&](std::int64_t iteration, std::int64_t which) {
      return static_cast<double>(seen_[static_cast<std::size_t>(kept(iteration) + which)]);
    };
    const std::int64_t squared = preconditioned() ? 2 : 1;
    auto& breakdown = solve_->breakdown;
    breakdown = 0;
    const auto relative = [&](std::int64_t iteration) {
      return relative_to(b_norm_, place(iteration, squared));
    };
    const auto note = [&](std::int64_t iteration, double value) {
      if (breakdown != 0) return;
      breakdown = iteration + 1;
      solve_->breakdown_value = value;
      solve_->breakdown_residual = relative(iteration - 1);
      // Without a preconditioner p'Ap is about r'r times the size of A, and with one about r'z.
      const double size = preconditioned() ? 1 : b_norm_ / solution_norm_;
      solve_->underflow =
          value == 0 && place(iteration - 1, 1) * size < std::numeric_limits<T>::min();
    };
    for (auto j = std::max<std::int64_t>(0, i - i % options_->check_every); j <= i; ++j) {
      if (place(j - 1, squared) == 0) break;  // the solution is exact
      if (!(place(j, 0) > 0)) note(j, place(j, 0));
    }
    const double residual = relative(i);
    if (!std::isfinite(residual)) note(i, residual);
    if (options_->history) {
      // A rollback repeats checks: keep one entry for each.
      std::erase_if(report.history, [&](const auto& entry) { return entry.first >= i + 1; });
      report.history.emplace_back(i + 1, residual);
    }
    return residual;
  }

  /// From scratch: q = b - A x, and the distance to the known solution.
  void verify() {
    auto& report = *solve_->report;
    device_->copy(b_, q_);
    matrix_.multiply(x_, q_, T(-1), T(1));
    device_->blas().dot(q_, q_, scalar(kCheck));
    auto& difference = q_;
    const auto residual = reduced(kCheck);
    upload(solution_, difference);
    device_->vector().axpby(T(1), x_, T(-1), difference);
    device_->blas().dot(difference, difference, scalar(kCheck2));
    report.true_relative_residual = relative_to(b_norm_, residual);
    report.relative_error = relative_to(solution_norm_, reduced(kCheck2));
  }

  /// Divides the root of `squared` by `norm`. The result is 0 if `squared` is 0, also if `norm` is.
  static double relative_to(double norm, double squared) {
    return squared == 0 ? 0 : std::sqrt(squared) / norm;
  }
  double reduced(std::int64_t place) {
    world_->all_reduce(scalar(place), ReduceOp::sum);
    return static_cast<double>(device_->download(scalar(place))[0]);
  }

  Solve* solve_;
  Device* device_;
  World* world_;
  LocalProblem<I> problem_;
  DistributedMatrix<T, I> matrix_;
  std::optional<Multigrid<T, I>> multigrid_;
  ProblemMark mark_;
  std::array<std::int64_t, 2> rows_;
  const Options* options_;
  std::int32_t threads_;
  std::int64_t slots_;
  Sequence recorded_;                         ///< an iteration
  Array<double> solution_;                    ///< the known one
  Array<double> right_hand_side_, inverses_;  ///< on the host, should the device lose them
  GpuRef<T> b_, x_, r_, z_, p_, q_, inverse_diagonal_, scalars_, history_;
  GpuRef<T> least_;  ///< two of the least number above 0
  PinnedBuffer<T> seen_;
  double b_norm_ = 0, solution_norm_ = 0;
};

}  // namespace troupe::cg
