#include "coloured_grid.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <utility>

namespace troupe::cg {
namespace {

std::size_t at(std::int64_t index) {
  return static_cast<std::size_t>(index);
}
std::int32_t narrow(std::int64_t number) {
  return static_cast<std::int32_t>(number);
}

/// As kernels take it: the place of a colour by the parities of a point's coordinates.
struct ColourOrder {
  std::int32_t place[kColours];
};
ColourOrder colour_order() {
  ColourOrder order{};
  const StencilOptions cube{.nx = 2, .ny = 2, .nz = 2};
  for (std::int64_t row = 0; row < kColours; ++row) order.place[row] = colour(cube, row);
  return order;
}

/// Calls body(old row) for the points of a colour that another rank's box adjoins, ascending.
template <class Body>
void for_boundary(const StencilBox& box, std::int32_t which, Body body) {
  const auto order = colour_order();
  const auto parities = std::find(order.place, order.place + kColours, which) - order.place;
  const auto on_face = [&](int axis, std::int64_t c) {
    return (c == 0 && box.lower[axis] != 0) || (c == box.points[axis] - 1 && box.upper[axis] != 0);
  };
  for (std::int64_t z = parities / 4; z < box.points[2]; z += 2) {
    for (std::int64_t y = parities / 2 % 2; y < box.points[1]; y += 2) {
      const auto line = (z * box.points[1] + y) * box.points[0];
      const bool whole = on_face(2, z) || on_face(1, y);
      for (std::int64_t x = parities % 2; x < box.points[0]; x += 2) {
        if (whole || on_face(0, x)) body(line + x);
      }
    }
  }
}

}  // namespace

template <troupe::IndexElement I>
ColouredGrid::ColouredGrid(Device& device, const HpcgKernels& kernels, const HpcgGrid<I>& grid)
    : rows(grid.rows()), first_row(grid.first_row()) {
  order(device, kernels, grid);
  fill(device, kernels, grid);
  if (grid.size.halo != 0) fill_foreign(device, kernels, grid);
}

/// A counting sort, the sums of which the host makes.
template <class I>
void ColouredGrid::order(Device& device, const HpcgKernels& kernels, const HpcgGrid<I>& grid) {
  constexpr std::int64_t kChunk = 512;
  const auto chunks = (rows + kChunk - 1) / kChunk;
  const auto places = colour_order();
  auto counts = device.alloc<std::int32_t>(kColours * chunks);
  device.launch(kernels.count_rows, HpcgKernels::each(chunks), grid.box, places, rows,
                narrow(kChunk), narrow(chunks), write(counts));
  std::vector<std::int32_t> next = device.download(counts);
  std::int32_t row = 0;
  for (int which = 0; which < kColours; ++which) {
    colours.of[which].first = row;
    for (auto& count : std::span(next).subspan(at(which * chunks), at(chunks)))
      row += std::exchange(count, row);
    colours.of[which].end = row;
  }
  device.upload(std::span<const std::int32_t>(next), counts).get();
  new_row = device.alloc<std::int32_t>(rows);
  old_row = device.alloc<std::int32_t>(rows);
  device.launch(kernels.number_rows, HpcgKernels::each(chunks), grid.box, places, rows,
                narrow(kChunk), narrow(chunks), read(counts), write(new_row), write(old_row));
}

template <class I>
void ColouredGrid::fill(Device& device, const HpcgKernels& kernels, const HpcgGrid<I>& grid) {
  const auto& own = grid.own;
  auto most = device.alloc<std::int32_t>(kColours * kColours);
  device.fill(most, 0);
  device.launch(kernels.measure, HpcgKernels::each_once(rows), colours, rows, read(own.row_begin),
                read(own.column), read(new_row), read(old_row), update(most));
  const auto widths = device.download(most);
  ColourSections sections;
  std::int64_t entries = 0;
  for (int which = 0; which < kColours; ++which) {
    auto& colour = colours.of[which];
    colour.entries = entries;
    std::int32_t width = 0;
    const auto put = [&](int other) {
      const auto section = which * kColours + other;
      sections.begin[section] = width;
      sections.width[section] = widths[at(section)];
      width += widths[at(section)];
      return widths[at(section)];
    };
    if (put(which) != 0) throw Exception({Errc::invalid, 0, "rows of one colour are neighbours"});
    for (int other = 0; other < which; ++other) colour.lower += put(other);
    if (which + 1 < kColours) colour.coarse = put(kColours - 1);
    for (int other = which + 1; other + 1 < kColours; ++other) colour.upper += put(other);
    entries += (colour.rows() + kSliceRows - 1) / kSliceRows * kSliceRows * colour.width();
  }
  value = device.alloc<double>(entries);
  const auto column = device.alloc<std::int32_t>(entries);
  device.fill(column, -1);  // a slice may have more rows than there are
  diagonal = device.alloc<double>(rows);
  device.launch(kernels.fill_own, HpcgKernels::each_once(rows), colours, sections, rows,
                read(own.row_begin), read(own.column), read(own.value), read(new_row),
                read(old_row), update(value), update(column), write(diagonal));
  compress(device, kernels, column);
}

void ColouredGrid::compress(Device& device, const HpcgKernels& kernels,
                            const GpuRef<std::int32_t>& column) {
  const auto entries = column.length(), parts = entries / kSliceRows;
  base = device.alloc<std::int32_t>(parts);
  auto most = device.alloc<std::int32_t>(1);
  device.fill(most, 0);
  device.launch(kernels.find_bases, HpcgKernels::each_once(parts), parts, read(column), write(base),
                update(most));
  const auto fill = [&](const Kernel& kernel, const auto& offset) {
    device.launch(kernel, HpcgKernels::each(entries), entries, read(column), read(base),
                  write(offset));
  };
  if (device.download(most)[0] <= std::numeric_limits<std::uint16_t>::max()) {
    narrow_offset = device.alloc<std::uint16_t>(entries);
    fill(kernels.narrow.fill_offsets, narrow_offset);
  } else {
    wide_offset = device.alloc<std::int32_t>(entries);
    fill(kernels.wide.fill_offsets, wide_offset);
  }
}

template <class I>
void ColouredGrid::fill_foreign(Device& device, const HpcgKernels& kernels,
                                const HpcgGrid<I>& grid) {
  for (const auto& part : grid.plan.sends) messages.push_back({part.peer, part.offset, part.count});
  const auto sent = std::ssize(grid.plan.gather);
  auto old_rows = device.alloc<I>(sent);
  device.upload(std::span<const I>(grid.plan.gather), old_rows).get();
  gather = device.alloc<std::int32_t>(sent);
  device.launch(kernels.renumber, HpcgKernels::each(sent), sent, read(new_row), read(old_rows),
                write(gather));

  std::vector<std::int32_t> list;
  for (int which = 0; which < kColours; ++which) {
    colours.of[which].foreign = narrow(std::ssize(list));
    for_boundary(grid.box, which, [&](std::int64_t row) { list.push_back(narrow(row)); });
  }
  boundary_rows = std::ssize(list);
  const auto& foreign = grid.foreign;
  const auto all = narrow(boundary_rows);
  auto old_boundary = device.alloc<std::int32_t>(all);
  device.upload(std::span<const std::int32_t>(list), old_boundary).get();
  auto most = device.alloc<std::int32_t>(1);
  device.fill(most, 0);
  boundary = device.alloc<std::int32_t>(rows);
  device.fill(boundary, -1);
  boundary_row = device.alloc<std::int32_t>(all);
  foreign_count = device.alloc<std::int32_t>(all);
  device.launch(kernels.list_boundary, HpcgKernels::each_once(all), all, read(old_boundary),
                read(foreign.row_begin), read(new_row), write(boundary_row), write(foreign_count),
                update(boundary), update(most));
  const std::int64_t entries = boundary_rows * device.download(most)[0];
  foreign_column = device.alloc<std::int32_t>(entries);
  foreign_value = device.alloc<double>(entries);
  device.launch(kernels.fill_foreign, HpcgKernels::each_once(all), all, read(old_boundary),
                read(foreign.row_begin), read(foreign.column), read(foreign.value),
                update(foreign_value), update(foreign_column));
}

template <troupe::IndexElement I>
void ColouredGrid::match(Device& device, const HpcgKernels& kernels, const HpcgGrid<I>& coarse,
                         const ColouredGrid& coarse_rows) {
  check(coarse.rows() == last().rows(), "a coarser grid that is not the last colour");
  coarse_row = device.alloc<std::int32_t>(coarse.rows());
  device.launch(kernels.match_coarse, HpcgKernels::each(coarse.rows()), coarse.rows(), last().first,
                read(coarse.fine), read(new_row), read(coarse_rows.new_row), write(coarse_row));
}

#define TROUPE_CG_INSTANTIATE(Index)                                                        \
  template ColouredGrid::ColouredGrid(Device&, const HpcgKernels&, const HpcgGrid<Index>&); \
  template void ColouredGrid::match(Device&, const HpcgKernels&, const HpcgGrid<Index>&,    \
                                    const ColouredGrid&);
TROUPE_CG_INSTANTIATE(std::int32_t)
TROUPE_CG_INSTANTIATE(std::int64_t)
#undef TROUPE_CG_INSTANTIATE

}  // namespace troupe::cg
