#include "hpcg_grids.hpp"

#include <algorithm>
#include <utility>

namespace troupe::cg {
namespace {

template <class I>
troupe::CsrMatrix<double, I> csr(Device& device, std::int64_t rows, std::int64_t columns,
                                 std::int64_t nonzeros) {
  return {rows, columns, device.alloc<I>(rows + 1), device.alloc<I>(nonzeros),
          device.alloc<double>(nonzeros)};
}

template <class I>
HpcgGrid<I> make_grid(Device& device, const HpcgKernels& kernels, const StencilOptions& options,
                      bool finest) {
  HpcgGrid<I> grid;
  grid.options = options;
  grid.size = stencil_size(options).take();
  const auto exchange = stencil_exchange(options);
  grid.box = exchange.box;
  for (const auto& neighbour : exchange.halo)
    grid.plan.receives.push_back(
        {Rank(neighbour.rank), neighbour.receive_offset, neighbour.receive_count});
  grid.plan.sends = grid.plan.receives;
  grid.plan.gather.assign(exchange.gather.begin(), exchange.gather.end());
  const auto rows = grid.rows();
  grid.diagonal = device.alloc<double>(rows);
  grid.b = device.alloc<double>(rows);
  grid.own = csr<I>(device, rows, rows, grid.size.own_nonzeros);
  device.launch(kernels.make_rows, HpcgKernels::each(rows + 1), grid.box, rows,
                write(grid.own.row_begin), write(grid.diagonal), write(grid.b));
  device.launch(kernels.make_entries, HpcgKernels::each(rows), grid.box, rows,
                read(grid.own.row_begin), write(grid.own.column), write(grid.own.value));
  if (grid.size.halo != 0) {
    grid.foreign = csr<I>(device, rows, grid.size.halo, grid.size.foreign_nonzeros);
    device.launch(kernels.make_foreign, HpcgKernels::each(rows + 1), grid.box, rows,
                  write(grid.foreign.row_begin), write(grid.foreign.column),
                  write(grid.foreign.value));
  }
  if (!finest) {
    grid.fine = device.alloc<I>(rows);
    device.launch(kernels.fine_rows, HpcgKernels::each(rows), grid.box, rows, write(grid.fine));
  }
  return grid;
}

}  // namespace

Result<std::vector<StencilSize>> hpcg_sizes(StencilOptions finest) {
  std::vector<StencilSize> sizes;
  for (auto options = finest;; options = coarser(options)) {
    const auto size = stencil_size(options);
    if (!size) return size.error();
    sizes.push_back(*size);
    if (std::ssize(sizes) == kMaxGrids || !has_coarser(options)) return sizes;
  }
}

template <troupe::IndexElement I>
std::vector<HpcgGrid<I>> make_hpcg_grids(Device& device, const HpcgKernels& kernels,
                                         StencilOptions finest) {
  std::vector<HpcgGrid<I>> grids;
  for (auto options = finest;; options = coarser(options)) {
    grids.push_back(make_grid<I>(device, kernels, options, grids.empty()));
    if (std::ssize(grids) == kMaxGrids || !has_coarser(options)) return grids;
  }
}

template std::vector<HpcgGrid<std::int32_t>> make_hpcg_grids(Device&, const HpcgKernels&,
                                                             StencilOptions);
template std::vector<HpcgGrid<std::int64_t>> make_hpcg_grids(Device&, const HpcgKernels&,
                                                             StencilOptions);

}  // namespace troupe::cg
