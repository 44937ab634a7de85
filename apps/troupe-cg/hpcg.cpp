#include "hpcg.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <troupe/sequence.hpp>

#include "coloured_operator.hpp"
#include "hpcg_grids.hpp"
#include "hpcg_kernels.hpp"
#include "hpcg_reference.hpp"
#include "hpcg_result.hpp"
#include "hpcg_system.hpp"
#include "job_report.hpp"
#include "load.hpp"

namespace troupe::cg {
namespace {

using Clock = std::chrono::steady_clock;
using Watch = std::function<void(std::int64_t iteration, double residual)>;

/// What all of its ranks do, which a fault of any device may end for all: on any of them.
template <class Work>
void together(World& world, Work work) {
  Result<void> done;
  try {
    work();
  } catch (const Exception& e) {
    done = e.error();
  }
  world.agree(done);
}

/// A rating run, whatever its indices are.
class AnyRating {
 public:
  AnyRating() = default;
  virtual ~AnyRating() = default;
  AnyRating(const AnyRating&) = delete;
  AnyRating& operator=(const AnyRating&) = delete;

  /// Iteration i of all sets, from 0.
  virtual Step step(std::int64_t i) = 0;
};

/// What comes before the timed sets is done by the constructor. A fault in it ends it on all ranks.
template <troupe::IndexElement I>
class Rating final : public AnyRating {
 public:
  Rating(Runtime& runtime, const Options& options, HpcgResult& result, const Watch& progress,
         FaultsOfRank& faults, Checkpoint& checkpoint, const HpcgKernels& kernels,
         const StencilOptions& finest)
      : device_(runtime.device()),
        world_(runtime.world()),
        options_(options),
        result_(result),
        progress_(progress),
        faults_(faults) {
    together(world_, [&] {
      const auto grids = run_reference(runtime, kernels, finest);
      optimise(runtime, kernels, grids);
    });
    together(world_, [&] {
      count_iterations();
      time_parts();
      plan_sets();
      system_->add_to(checkpoint);
      result_.held_bytes =
          system_->over_ranks(static_cast<double>(device_.bytes_held()), ReduceOp::sum);
    });
    began_ = Clock::now();
    result_.first_epoch = world_.epoch().value;
  }

  Step step(std::int64_t i) override {
    const auto in_set = i % result_.set_iterations;
    if (in_set == 0) system_->start();
    iterate(i);
    if (in_set + 1 < result_.set_iterations) return Step::again;
    auto& set = result_.sets[static_cast<std::size_t>(i / result_.set_iterations)];
    set.scaled_residual = system_->scaled_residual();
    set.seconds = seconds_since(began_);  // at its end, until all have ended
    set.epoch = world_.epoch().value;
    if (world_.rank() == 0) progress_(i + 1, set.scaled_residual);
    if (i + 1 < result_.iterations()) return Step::again;
    result_.relative_error = system_->relative_error();
    return Step::done;
  }

 private:
  using Reference = HpcgSystem<HpcgReference<I>>;
  using System = HpcgSystem<ColouredOperator>;

  /// The setup, and the reference: HPCG's order of rows, its timing of kernels and its iterations.
  /// Returns the problem.
  std::vector<HpcgGrid<I>> run_reference(Runtime& runtime, const HpcgKernels& kernels,
                                         const StencilOptions& finest) {
    const auto begin = Clock::now();
    auto grids = make_hpcg_grids<I>(device_, kernels, finest);
    Reference reference(runtime, kernels, std::make_unique<HpcgReference<I>>(runtime, grids),
                        grids[0].b);
    reference.wait_for(grids.back().b);  // which is made last
    result_.setup_seconds = seconds_since(begin);
    result_.reference_kernels_seconds = reference.time_kernels(quick() ? 1 : 10);
    reference.start();
    result_.reference_history.clear();
    for (std::int64_t i = 0; i < kReferenceIterations; ++i) {
      reference.iterate();
      if (options_.history) result_.reference_history.push_back(reference.scaled_residual());
    }
    result_.reference_residual = reference.scaled_residual();
    return grids;
  }

  /// Orders the rows by colours, and validates what it has made.
  void optimise(Runtime& runtime, const HpcgKernels& kernels,
                const std::vector<HpcgGrid<I>>& grids) {
    const auto begin = Clock::now();
    auto made = std::make_unique<ColouredOperator>(runtime, kernels, grids);
    const auto b = made->in_order(grids[0].b);
    system_ = std::make_unique<System>(runtime, kernels, std::move(made), b);
    system_->start();
    system_->iterate();  // kernels are loaded when they are first launched
    (void)system_->scaled_residual();
    result_.optimisation_seconds = seconds_since(begin);
    auto& matrix = system_->matrix();
    const auto diagonal = matrix.diagonal();
    matrix.set_diagonal(matrix.exaggerated(diagonal));
    system_->set_right_side(matrix.exaggerated(b));
    result_.plain_iterations = spectral_iterations(*system_, false);
    result_.preconditioned_iterations = spectral_iterations(*system_, true);
    matrix.set_diagonal(diagonal);
    system_->set_right_side(b);
    const auto departures = system_->departures();
    result_.spmv_departure = departures.spmv;
    result_.multigrid_departure = departures.multigrid;
  }

  /// The larger number of two solves, as in TestCG.cpp.
  static std::int64_t spectral_iterations(System& system, bool preconditioned) {
    constexpr std::int64_t kMost = 50;
    std::int64_t most = 0;
    for (int solve = 0; solve < 2; ++solve) {
      system.start();
      std::int64_t i = 0;
      while (i < kMost && (i == 0 || system.scaled_residual() > 1e-12)) {
        system.iterate(preconditioned);
        ++i;
      }
      most = std::max(most, i);
    }
    return most;
  }

  /// How many iterations take a set as far as the reference: as many as the reference at least.
  void count_iterations() {
    constexpr std::int64_t kMost = 10 * kReferenceIterations;
    std::int64_t i = 0;
    double residual = 1;
    for (system_->start(); i < kMost && residual > result_.reference_residual; ++i) {
      system_->iterate();
      residual = system_->scaled_residual();
    }
    result_.reached = residual <= result_.reference_residual * (1 + 1e-6);
    result_.set_iterations = std::max(i, kReferenceIterations);
  }

  /// One set whose parts are waited for one by one.
  void time_parts() {
    result_.parts.fill(0);
    const auto timed = [&](Part part, std::initializer_list<GpuRef<double>> results, auto call) {
      const auto begin = Clock::now();
      call();
      for (const auto& one : results) system_->wait_for(one);
      result_.parts[static_cast<std::size_t>(part)] += seconds_since(begin);
    };
    system_->start(timed);
    for (std::int64_t i = 0; i < result_.set_iterations; ++i) system_->iterate(true, timed);
    const double mine = result_.parts[static_cast<std::size_t>(Part::all_reduce)];
    result_.all_reduce = {system_->over_ranks(mine, ReduceOp::min),
                          system_->over_ranks(mine, ReduceOp::max),
                          system_->over_ranks(mine, ReduceOp::sum) / world_.size()};
  }

  /// How many sets fill the time, after one on trial.
  void plan_sets() {
    recorded_ = {};
    const auto begin = Clock::now();
    system_->start();
    for (std::int64_t i = 0; i < result_.set_iterations; ++i) run_plain();
    (void)system_->scaled_residual();
    const double slowest = system_->over_ranks(seconds_since(begin), ReduceOp::max);
    const auto count = static_cast<std::int64_t>(options_.seconds / slowest) + 1;
    result_.sets.assign(static_cast<std::size_t>(count), {});
    for (const auto& fault : options_.faults) {
      if (fault.iteration >= result_.iterations())
        throw Exception({Errc::invalid, 0,
                         fmt::format("--fault: there is no iteration {} among the {} of {} sets",
                                     fault.iteration, result_.iterations(), count)});
    }
  }

  void run_plain() {
    if (!options_.record) return system_->iterate();
    if (!recorded_) recorded_ = device_.record([&] { system_->iterate(); });
    recorded_.run();
  }

  /// As one command where nothing strikes in its middle.
  void iterate(std::int64_t i) {
    const auto& faults = options_.faults;  // of any rank: all of them run the same
    const bool struck = std::any_of(faults.begin(), faults.end(),
                                    [i](const auto& fault) { return fault.iteration == i; });
    if (!struck) return run_plain();
    system_->iterate(true, [&](Part part, std::initializer_list<GpuRef<double>>, auto call) {
      call();
      if (part == Part::spmv) faults_.strike(i);
    });
  }

  [[nodiscard]] bool quick() const { return options_.seconds == 0; }

  Device& device_;
  World& world_;
  const Options& options_;
  HpcgResult& result_;
  const Watch& progress_;
  FaultsOfRank& faults_;
  std::unique_ptr<System> system_;
  Sequence recorded_;  ///< an iteration
  Clock::time_point began_;
};

/// HPCG refuses a long row of ranks.
Result<void> check_grid(int ranks) {
  const auto grid = ProcessGrid::of(ranks);
  const auto [least, most] = std::minmax({grid.px, grid.py, grid.pz});
  if (8 * least >= most) return {};
  return Error{
      Errc::invalid, 0,
      fmt::format("--hpcg: {} ranks form {} x {} x {}, HPCG wants a ratio of sides up to 8", ranks,
                  grid.px, grid.py, grid.pz)};
}

/// The device memory that a rating takes at most, against what there is, before anything is made.
/// The analysis of a triangle takes about as much as the matrix, and the reference has two on each
/// grid; what the timed sets have in their place is smaller.
Result<void> check_memory(const std::vector<StencilSize>& sizes, Runtime& runtime) {
  std::int64_t need = 0;
  for (const auto& size : sizes) {
    const std::int64_t index = sizes[0].needs_64_bit() ? 8 : 4;
    need += (3 * size.own_nonzeros + size.foreign_nonzeros) * (8 + index);
    // Both systems' vectors, and two copies of those that are committed; both numberings.
    need += size.rows * (&size == sizes.data() ? 18 * 8 + 4 * 4 : 8 * 8 + 4 * 4);
  }
  auto there = runtime.device().info().memory_bytes;
  const auto limit = runtime.config().bytes("memory-limit");
  if (limit != 0) there = std::min(there, limit);
  if (std::cmp_less_equal(need, there)) return {};
  return Error{
      Errc::out_of_memory, 0,
      fmt::format("--hpcg needs {} MiB on each device, of {} MiB", need >> 20, there >> 20)};
}

/// From when each set has ended to how long it took.
void take_differences(HpcgResult& result) {
  double before = 0;
  for (auto& set : result.sets) before = std::exchange(set.seconds, set.seconds - before);
}

}  // namespace

int rate(Runtime& runtime, const Options& options, const Watch& progress) {
  auto& world = runtime.world();
  world.agree(check_grid(world.size()));
  app::require_report_file(world, options.json);
  HpcgResult result;
  result.engine = runtime.device().info().engine;
  result.ranks = world.size();
  result.points = options.stencil;
  result.commit_every = options.commit_every;
  result.devices = app::devices_of(runtime);
  auto finest = stencil_options(options, world, world.size());
  finest.rank = world.rank();
  const auto sizes = hpcg_sizes(finest);
  world.agree(sizes.ok() ? check_memory(*sizes, runtime) : Result<void>(sizes.error()));
  for (const auto& size : *sizes) {
    result.grid_rows.push_back(size.global_rows);
    result.grid_nonzeros.push_back(size.global_nonzeros);
  }
  const bool wide = sizes->front().needs_64_bit();
  result.index_bytes = wide ? 8 : 4;
  std::unique_ptr<HpcgKernels> kernels;
  together(world, [&] { kernels = std::make_unique<HpcgKernels>(runtime.device(), wide ? 8 : 4); });
  FaultsOfRank faults(runtime, options.faults);
  std::unique_ptr<AnyRating> rating;
  Checkpoint checkpoint(runtime.device());
  const auto prepare = [&] {
    rating.reset();  // its memory is needed
    const auto make = [&]<class I>(I) {
      rating = std::make_unique<Rating<I>>(runtime, options, result, progress, faults, checkpoint,
                                           *kernels, finest);
    };
    wide ? make(std::int64_t{}) : make(std::int32_t{});
  };
  world.run(checkpoint, [&](std::int64_t i) { return rating->step(i); },
            {.commit_every = options.commit_every, .prepare = prepare});
  result.seconds = result.sets.back().seconds;
  take_differences(result);
  result.recoveries = world.recoveries();
  return app::conclude(
      world, result.valid(), options.json, [&] { return to_text(result); },
      [&] { return to_json(result); });
}

}  // namespace troupe::cg
