#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <troupe/troupe.hpp>

#include "distributed_matrix.hpp"
#include "grids.hpp"

namespace troupe::cg {

/// The preconditioner of the HPCG benchmark (Dongarra, Heroux, Luszczek, IJHPCA 30(1), 2016): one
/// V-cycle of multigrid. On each grid one symmetric Gauss-Seidel sweep before and one after what
/// the coarser grid corrects, a single one on the coarsest; a value goes to the coarser grid and
/// comes back where both have a point.
///
/// The sweep of a rank takes the values of other ranks as they were before it. So it adds M^-1 (r -
/// A x) to x with M = (D + L) D^-1 (D + U), the parts being those of the rank's own block of A
/// (Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., section 4.1): two triangular solves
/// with the matrix itself. M is symmetric, and with it the whole cycle, as conjugate gradients want
/// it. What it is depends on the numbering of the rows, so on the number of ranks too.
template <RealElement T, troupe::IndexElement I>
class Multigrid {
 public:
  /// Uploads the coarser grids; `matrix`, which stays the caller's, is that of the finest one.
  /// `plans`: of all grids, the finest first. Throws Exception.
  Multigrid(Runtime& runtime, DistributedMatrix<T, I>& matrix, const LocalProblem<I>& problem,
            const std::vector<CoarseGrid<I>>& coarser, std::span<const ExchangePlan<I>> plans)
      : device_(&runtime.device()) {
    add({&matrix, upload_diagonal(problem), {}});
    for (const auto& coarse : coarser) {
      coarse_matrices_.push_back(std::make_unique<DistributedMatrix<T, I>>(
          runtime, coarse.problem, plans[grids_.size()], 1, DistributedMatrix<T, I>::Form::csr));
      auto fine = device_->template alloc<I>(coarse.problem.rows);
      device_->upload(std::span<const I>(coarse.fine), fine).get();
      add({coarse_matrices_.back().get(), upload_diagonal(coarse.problem), std::move(fine)});
    }
  }

  /// A grid whose matrix is on the device already.
  struct Part {
    DistributedMatrix<T, I>* matrix = nullptr;  ///< in CSR; outlives the Multigrid
    GpuRef<T> diagonal;
    GpuRef<I> fine;  ///< where its points are in the finer grid; empty for the finest
  };
  /// Takes such grids, the finest first.
  Multigrid(Runtime& runtime, std::vector<Part> parts) : device_(&runtime.device()) {
    for (auto& part : parts) add(std::move(part));
  }

  /// z = one cycle for A z = r from z = 0. Submits and returns. All ranks call it.
  void apply(const GpuRef<T>& r, const GpuRef<T>& z) { cycle(0, r, z); }

  void register_scratch(Checkpoint& checkpoint) {
    for (auto& grid : grids_) {
      for (auto* vector : {&grid.residual, &grid.r, &grid.z}) {
        if (*vector) checkpoint.add_scratch(*vector);
      }
    }
    for (std::size_t level = 1; level < grids_.size(); ++level)
      grids_[level].matrix->register_scratch(checkpoint);
  }

 private:
  struct Grid : Part {
    GpuRef<T> residual;
    GpuRef<T> r, z;  ///< right side and result, but of the finest grid, where they are the caller's
  };

  void add(Part part) {
    Grid made{std::move(part), {}, {}, {}};
    const auto rows = made.matrix->rows();
    made.residual = device_->template alloc<T>(rows);
    if (!grids_.empty()) {
      made.r = device_->template alloc<T>(rows);
      made.z = device_->template alloc<T>(rows);
    }
    grids_.push_back(std::move(made));
  }
  GpuRef<T> upload_diagonal(const LocalProblem<I>& problem) {
    const auto values = diagonal(problem);
    const std::vector<T> narrow(values.begin(), values.end());
    auto made = device_->template alloc<T>(problem.rows);
    device_->upload(std::span<const T>(narrow), made).get();
    return made;
  }

  void cycle(std::size_t level, const GpuRef<T>& r, const GpuRef<T>& z) {
    auto& grid = grids_[level];
    sweep(grid, r, z);
    if (level + 1 == grids_.size()) return;
    const auto& coarse = grids_[level + 1];
    subtract_product(grid, r, z);
    device_->sparse().gather(grid.residual, coarse.fine, coarse.r);
    cycle(level + 1, coarse.r, coarse.z);
    device_->sparse().axpby(T(1), coarse.z, coarse.fine, T(1), z);
    subtract_product(grid, r, z);
    sweep(grid, grid.residual, grid.residual);
    device_->blas().axpy(T(1), grid.residual, z);
  }
  /// z = M^-1 r; z may be r.
  void sweep(Grid& grid, const GpuRef<T>& r, const GpuRef<T>& z) {
    auto sparse = device_->sparse();
    const auto& own = grid.matrix->own_csr();
    sparse.spsv(own, r, z, {.uplo = blas::Uplo::lower});
    device_->vector().multiply(grid.diagonal, z, z);
    sparse.spsv(own, z, z, {.uplo = blas::Uplo::upper});
  }
  /// grid.residual = r - A z
  void subtract_product(Grid& grid, const GpuRef<T>& r, const GpuRef<T>& z) {
    device_->copy(r, grid.residual);
    grid.matrix->multiply(z, grid.residual, T(-1), T(1));
  }

  Device* device_;
  std::vector<Grid> grids_;  ///< finest first
  std::vector<std::unique_ptr<DistributedMatrix<T, I>>> coarse_matrices_;
};

}  // namespace troupe::cg
