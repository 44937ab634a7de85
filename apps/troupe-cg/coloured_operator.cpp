#include "coloured_operator.hpp"

#include <algorithm>

namespace troupe::cg {
namespace {

/// The part of a vector that a colour's rows have.
GpuRef<double> part(const GpuRef<double>& vector, const RowsOfColour& colour) {
  return vector.slice(colour.first, colour.rows());
}

}  // namespace

template <troupe::IndexElement I>
ColouredOperator::ColouredOperator(Runtime& runtime, const HpcgKernels& kernels,
                                   const std::vector<HpcgGrid<I>>& grids)
    : device_(&runtime.device()), world_(&runtime.world()), kernels_(&kernels) {
  for (const auto& grid : grids) {
    Level level;
    level.grid = ColouredGrid(*device_, kernels, grid);
    const auto rows = level.grid.rows;
    level.higher = device_->alloc<double>(rows);
    if (!levels_.empty()) {
      level.r = device_->alloc<double>(rows);
      level.z = device_->alloc<double>(rows);
      levels_.back().grid.match(*device_, kernels, grid, level.grid);
      levels_.back().rest = device_->alloc<double>(levels_.back().grid.rows);
      levels_.back().correction = device_->alloc<double>(rows);
    }
    if (!level.grid.messages.empty()) {
      level.outgoing = device_->alloc<double>(level.grid.gather.length());
      level.halo = device_->alloc<double>(level.grid.gather.length());
      level.foreign = device_->alloc<double>(level.grid.boundary_rows);
    }
    levels_.push_back(std::move(level));
  }
  none_ = device_->alloc<double>(1);
  no_rows_ = device_->alloc<std::int32_t>(1);
}

void ColouredOperator::register_scratch(Checkpoint& checkpoint) {
  for (auto& level : levels_) {
    for (auto* vector : {&level.higher, &level.rest, &level.correction, &level.r, &level.z,
                         &level.outgoing, &level.halo, &level.foreign}) {
      if (*vector) checkpoint.add_scratch(*vector);
    }
  }
}

void ColouredOperator::multiply(const GpuRef<double>& x, const GpuRef<double>& y) {
  auto& level = levels_[0];
  const auto& grid = level.grid;
  const bool alone = grid.messages.empty();
  if (!alone) {
    launch(kernels_->gather, HpcgKernels::each(grid.gather.length()),
           static_cast<std::int32_t>(grid.gather.length()), read(grid.gather), read(x),
           write(level.outgoing));
    exchange(level);
  }
  std::int64_t most = 0;
  for (const auto& colour : grid.colours.of) most = std::max(most, colour.rows());
  constexpr auto kThreads = HpcgKernels::kThreads;
  const auto threads = (most + kThreads - 1) / kThreads * kThreads * kColours;
  launch(grid.kernels(*kernels_).multiply, HpcgKernels::each(threads), grid.colours,
         read(grid.value), read(grid.base), grid.offset(), read(grid.diagonal), read(x), write(y));
  if (alone) return;
  launch(kernels_->add_foreign, HpcgKernels::each_once(grid.boundary_rows),
         static_cast<std::int32_t>(grid.boundary_rows), read(grid.boundary_row),
         read(grid.foreign_count), read(grid.foreign_value), read(grid.foreign_column),
         read(level.halo), update(y));
}

void ColouredOperator::cycle(std::size_t number, const GpuRef<double>& r, const GpuRef<double>& z) {
  auto& level = levels_[number];
  sweep_from_zero(level, r, z);
  if (number + 1 == levels_.size()) return;
  auto& coarse = levels_[number + 1];
  restrict_residual(level, coarse, r, z);
  cycle(number + 1, coarse.r, coarse.z);
  const auto rows = coarse.grid.rows;
  launch(kernels_->lift, HpcgKernels::each(rows), static_cast<std::int32_t>(rows),
         read(level.grid.coarse_row), read(coarse.z), write(level.correction));
  sweep_again(level, r, z);
}

void ColouredOperator::sweep_from_zero(Level& level, const GpuRef<double>& r,
                                       const GpuRef<double>& z) {
  const auto& grid = level.grid;
  const auto& kernels = grid.kernels(*kernels_);
  for (int which = 0; which < kColours; ++which) {
    const auto& colour = grid.colour(which);
    launch(kernels.forward, HpcgKernels::each_once(colour.rows()), colour, read(grid.value),
           read(grid.base), grid.offset(), read(grid.diagonal), read(r), update(z));
  }
  for (int which = kColours - 2; which >= 0; --which) {
    const auto& colour = grid.colour(which);
    launch(kernels.backward, HpcgKernels::each_once(colour.rows()), colour, read(grid.value),
           read(grid.base), grid.offset(), read(grid.diagonal), update(z),
           write(part(level.higher, colour)));
  }
}

void ColouredOperator::restrict_residual(Level& level, Level& coarse, const GpuRef<double>& r,
                                         const GpuRef<double>& z) {
  const auto& grid = level.grid;
  const auto& last = grid.last();
  const auto all = static_cast<std::int32_t>(grid.boundary_rows);
  if (!grid.messages.empty()) {
    launch(kernels_->gather, HpcgKernels::each(grid.gather.length()),
           static_cast<std::int32_t>(grid.gather.length()), read(grid.gather), read(z),
           write(level.outgoing));
    exchange(level);
  }
  launch(grid.kernels(*kernels_).restrict_residual, HpcgKernels::each(last.rows()), last,
         read(grid.value), read(grid.base), grid.offset(), read(grid.diagonal), read(r), read(z),
         read(grid.coarse_row), write(coarse.r));
  if (last.foreign == all) return;
  sum_foreign(level, last.foreign);
  launch(kernels_->less_foreign, HpcgKernels::each_once(all - last.foreign), last.foreign, all,
         last.first, read(grid.boundary_row), read(level.foreign), read(grid.coarse_row),
         update(coarse.r));
}

void ColouredOperator::sweep_again(Level& level, const GpuRef<double>& r, const GpuRef<double>& z) {
  const auto& grid = level.grid;
  const auto& first = grid.colour(0);
  const bool halo = !grid.messages.empty();
  if (halo) {
    launch(kernels_->gather_lifted, HpcgKernels::each(grid.gather.length()),
           static_cast<std::int32_t>(grid.gather.length()), grid.last().first, read(grid.gather),
           read(z), read(level.correction), write(level.outgoing));
    exchange(level);
  }
  forward_again(level, first, false, r, z);
  if (halo) sum_foreign(level, 0);
  if (const auto there = grid.colour(1).foreign; there != 0) {
    launch(kernels_->correct_first, HpcgKernels::each_once(there), there,
           read(grid.boundary_row.slice(0, there)), read(level.foreign.slice(0, there)),
           read(grid.diagonal), update(z), update(level.rest));
  }
  for (int which = 1; which < kColours; ++which)
    forward_again(level, grid.colour(which), halo, r, z);
  for (int which = kColours - 2; which >= 0; --which) {
    const auto& colour = grid.colour(which);
    launch(grid.kernels(*kernels_).backward_again, HpcgKernels::each_once(colour.rows()), colour,
           read(grid.value), read(grid.base), grid.offset(), read(grid.diagonal),
           read(part(level.rest, colour)), update(z));
  }
}

void ColouredOperator::forward_again(Level& level, const RowsOfColour& colour, bool halo,
                                     const GpuRef<double>& r, const GpuRef<double>& z) {
  const auto& grid = level.grid;
  launch(grid.kernels(*kernels_).forward_again, HpcgKernels::each_once(colour.rows()), colour,
         grid.last().first, std::int32_t{halo}, read(grid.value), read(grid.base), grid.offset(),
         read(grid.diagonal), read(r), read(halo ? grid.boundary : no_rows_),
         read(halo ? level.foreign : none_), read(part(level.higher, colour)),
         read(level.correction), update(z), write(part(level.rest, colour)));
}

void ColouredOperator::exchange(Level& level) {
  std::vector<Transfer<double>> sends, receives;
  for (const auto& message : level.grid.messages) {
    sends.push_back({level.outgoing.slice(message.offset, message.count), message.peer});
    receives.push_back({level.halo.slice(message.offset, message.count), message.peer});
  }
  world_->exchange<double>(sends, receives);
}

void ColouredOperator::sum_foreign(Level& level, std::int32_t begin) {
  const auto& grid = level.grid;
  const auto all = static_cast<std::int32_t>(grid.boundary_rows);
  launch(kernels_->foreign_sums, HpcgKernels::each(all - begin), begin, all, all,
         read(grid.foreign_count), read(grid.foreign_value), read(grid.foreign_column),
         read(level.halo), write(level.foreign.slice(begin, all - begin)));
}

GpuRef<double> ColouredOperator::in_order(const GpuRef<double>& x) const {
  auto result = device_->alloc<double>(rows());
  launch(kernels_->permute, HpcgKernels::each(rows()), rows(), read(levels_[0].grid.old_row),
         read(x), write(result));
  return result;
}

void ColouredOperator::randomise(std::int64_t seed, const GpuRef<double>& x) const {
  const auto& grid = levels_[0].grid;
  launch(kernels_->randomise, HpcgKernels::each(rows()), rows(), grid.first_row, seed,
         read(grid.old_row), write(x));
}

GpuRef<double> ColouredOperator::exaggerated(const GpuRef<double>& x) const {
  const auto& grid = levels_[0].grid;
  auto result = device_->alloc<double>(rows());
  launch(kernels_->exaggerate, HpcgKernels::each(rows()), rows(), grid.first_row,
         read(grid.old_row), read(x), write(result));
  return result;
}

template ColouredOperator::ColouredOperator(Runtime&, const HpcgKernels&,
                                            const std::vector<HpcgGrid<std::int32_t>>&);
template ColouredOperator::ColouredOperator(Runtime&, const HpcgKernels&,
                                            const std::vector<HpcgGrid<std::int64_t>>&);

}  // namespace troupe::cg
