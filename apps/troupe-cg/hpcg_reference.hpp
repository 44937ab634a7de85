#pragma once

#include <memory>
#include <vector>

#include "hpcg_grids.hpp"
#include "multigrid.hpp"

namespace troupe::cg {

/// Products and multigrid cycles by calls of libraries, on the rows in the old order: the reference
/// of a rating. All ranks make the same calls, which submit and return.
template <troupe::IndexElement I>
class HpcgReference {
 public:
  HpcgReference(Runtime& runtime, const std::vector<HpcgGrid<I>>& grids) {
    std::vector<typename Multigrid<double, I>::Part> parts;
    for (const auto& grid : grids) {
      matrices_.push_back(std::make_unique<DistributedMatrix<double, I>>(runtime, grid.plan,
                                                                         grid.own, grid.foreign));
      parts.push_back({matrices_.back().get(), grid.diagonal, grid.fine});
    }
    multigrid_ = std::make_unique<Multigrid<double, I>>(runtime, std::move(parts));
  }

  [[nodiscard]] std::int64_t rows() const { return matrices_[0]->rows(); }
  /// y = A x
  void multiply(const GpuRef<double>& x, const GpuRef<double>& y) { matrices_[0]->multiply(x, y); }
  /// z = one cycle for A z = r from z = 0.
  void precondition(const GpuRef<double>& r, const GpuRef<double>& z) { multigrid_->apply(r, z); }

 private:
  std::vector<std::unique_ptr<DistributedMatrix<double, I>>> matrices_;  ///< finest first
  std::unique_ptr<Multigrid<double, I>> multigrid_;
};

}  // namespace troupe::cg
