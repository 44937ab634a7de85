#include "stencil.hpp"

#include <algorithm>
#include <limits>
#include <new>
#include <numeric>
#include <string>

namespace troupe::cg {
namespace {

constexpr std::int64_t kMaxThreads = 1024;

std::size_t at(std::int64_t index) {
  return static_cast<std::size_t>(index);
}

/// One axis of this rank's box of points.
struct Axis {
  std::int64_t points = 0;                    // local
  std::int64_t ranks = 0;                     // of the process grid
  bool has_lower = false, has_upper = false;  // neighbouring ranks
  std::int64_t begin = 0, end = 0;            // the points that touch no neighbouring rank

  [[nodiscard]] std::int64_t inner() const { return end - begin; }
  [[nodiscard]] bool is_inner(std::int64_t c) const { return c >= begin && c < end; }
  /// How many inner points lie before coordinate c.
  [[nodiscard]] std::int64_t inner_before(std::int64_t c) const {
    return std::clamp<std::int64_t>(c - begin, 0, inner());
  }
  [[nodiscard]] std::int64_t own_neighbours(std::int64_t c) const {
    return 1 + (c > 0 ? 1 : 0) + (c < points - 1 ? 1 : 0);
  }
  [[nodiscard]] std::int64_t all_neighbours(std::int64_t c) const {
    return own_neighbours(c) + (c == 0 && has_lower ? 1 : 0) +
           (c == points - 1 && has_upper ? 1 : 0);
  }
  /// The same two, summed over all points.
  [[nodiscard]] std::int64_t own_sum() const { return 3 * points - 2; }
  [[nodiscard]] std::int64_t all_sum() const { return own_sum() + has_lower + has_upper; }
  [[nodiscard]] std::int64_t global_sum() const { return 3 * points * ranks - 2; }
  /// Which neighbouring rank's box c lies in: -1, 0 (this one), 1.
  [[nodiscard]] int side(std::int64_t c) const { return c < 0 ? -1 : c >= points ? 1 : 0; }
  [[nodiscard]] bool has_side(int side) const {
    return side == 0 || (side < 0 ? has_lower : has_upper);
  }
  /// How many coordinates of a neighbour's box the halo covers.
  [[nodiscard]] std::int64_t extent(int side) const { return side == 0 ? points : 1; }
};

struct Box {
  Axis x, y, z;

  explicit Box(const StencilOptions& options) {
    const ProcessGrid grid = ProcessGrid::of(options.ranks);
    const auto where = grid.coordinates(options.rank);
    auto axis = [](std::int64_t points, std::int64_t ranks, std::int64_t coordinate) {
      Axis result{points, ranks, coordinate > 0, coordinate < ranks - 1, 0, 0};
      result.begin = result.has_lower ? 1 : 0;
      result.end = std::max(result.begin, points - (result.has_upper ? 1 : 0));
      return result;
    };
    x = axis(options.nx, grid.px, where[0]);
    y = axis(options.ny, grid.py, where[1]);
    z = axis(options.nz, grid.pz, where[2]);
  }
  [[nodiscard]] std::int64_t rows() const { return x.points * y.points * z.points; }
  [[nodiscard]] std::int64_t interior_rows() const { return x.inner() * y.inner() * z.inner(); }
  [[nodiscard]] bool is_interior(std::int64_t cx, std::int64_t cy, std::int64_t cz) const {
    return x.is_inner(cx) && y.is_inner(cy) && z.is_inner(cz);
  }
  [[nodiscard]] std::int64_t old_row(std::int64_t cx, std::int64_t cy, std::int64_t cz) const {
    return (cz * y.points + cy) * x.points + cx;
  }
  /// Interior points are counted among themselves; a boundary point comes after all of them and
  /// after the boundary points before it, which are the points before it less the interior ones.
  [[nodiscard]] std::int64_t new_row(std::int64_t cx, std::int64_t cy, std::int64_t cz) const {
    if (is_interior(cx, cy, cz)) {
      return ((cz - z.begin) * y.inner() + cy - y.begin) * x.inner() + cx - x.begin;
    }
    std::int64_t interior_before = z.inner_before(cz) * y.inner() * x.inner();
    if (z.is_inner(cz)) interior_before += y.inner_before(cy) * x.inner();
    if (z.is_inner(cz) && y.is_inner(cy)) interior_before += x.inner_before(cx);
    return interior_rows() + old_row(cx, cy, cz) - interior_before;
  }
};

using Offsets = std::array<std::int64_t, 27>;  // of the halo, by direction

std::size_t direction(int sx, int sy, int sz) {
  return static_cast<std::size_t>((sz + 1) * 9 + (sy + 1) * 3 + sx + 1);
}

/// Calls body(rank, sx, sy, sz) for each adjoining box, ranks ascending.
template <class Body>
void for_neighbours(const StencilOptions& options, const Box& box, Body body) {
  // Ascending directions are ascending ranks.
  for (int sz = -1; sz <= 1; ++sz) {
    for (int sy = -1; sy <= 1; ++sy) {
      for (int sx = -1; sx <= 1; ++sx) {
        if ((sx == 0 && sy == 0 && sz == 0) || !box.x.has_side(sx) || !box.y.has_side(sy) ||
            !box.z.has_side(sz)) {
          continue;
        }
        body(options.rank + sx + box.x.ranks * (sy + box.y.ranks * static_cast<std::int64_t>(sz)),
             sx, sy, sz);
      }
    }
  }
}

/// Calls body(old row) for the points of a box that touch the box in a direction, ascending.
template <class Body>
void for_layer(const Box& box, int sx, int sy, int sz, Body body) {
  const auto first = [](const Axis& axis, int side) { return side > 0 ? axis.points - 1 : 0; };
  const std::int64_t x0 = first(box.x, sx), y0 = first(box.y, sy), z0 = first(box.z, sz);
  for (std::int64_t cz = z0; cz < z0 + box.z.extent(sz); ++cz) {
    for (std::int64_t cy = y0; cy < y0 + box.y.extent(sy); ++cy) {
      for (std::int64_t cx = x0; cx < x0 + box.x.extent(sx); ++cx) body(box.old_row(cx, cy, cz));
    }
  }
}

template <class Index>
Offsets make_halo(const StencilOptions& options, const Box& box, std::int64_t halo_size,
                  LocalProblem<Index>& problem) {
  Offsets offsets{};
  problem.halo_columns.reserve(at(halo_size));
  for_neighbours(options, box, [&](std::int64_t rank, int sx, int sy, int sz) {
    const auto offset = static_cast<std::int64_t>(problem.halo_columns.size());
    offsets[direction(sx, sy, sz)] = offset;
    // The neighbour's boxes are as large, and this one lies in the opposite direction.
    for_layer(box, -sx, -sy, -sz, [&](std::int64_t old_row) {
      problem.halo_columns.push_back(rank * box.rows() + old_row);
    });
    problem.halo.push_back({static_cast<std::int32_t>(rank), offset,
                            static_cast<std::int64_t>(problem.halo_columns.size()) - offset});
  });
  return offsets;
}

/// Permutation and, at new row + 1, the number of entries of each row; then their running sums.
template <class Index>
void count_rows(const Box& box, std::int32_t threads, LocalProblem<Index>& problem) {
  problem.permutation.resize(at(problem.rows));
  problem.own.row_begin.resize(at(problem.rows) + 1);
  problem.foreign.row_begin.resize(at(problem.rows - problem.interior_rows) + 1);
  problem.own.row_begin[0] = problem.foreign.row_begin[0] = 0;
  for_ranges(threads, box.z.points * box.y.points, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t line = begin; line < end; ++line) {
      const std::int64_t cz = line / box.y.points, cy = line % box.y.points;
      const std::int64_t own = box.z.own_neighbours(cz) * box.y.own_neighbours(cy);
      const std::int64_t all = box.z.all_neighbours(cz) * box.y.all_neighbours(cy);
      for (std::int64_t cx = 0; cx < box.x.points; ++cx) {
        const std::int64_t row = box.new_row(cx, cy, cz);
        const std::int64_t own_count = own * box.x.own_neighbours(cx);
        problem.permutation[at(row)] = box.old_row(cx, cy, cz);
        problem.own.row_begin[at(row) + 1] = own_count;
        if (row < problem.interior_rows) continue;
        problem.foreign.row_begin[at(row - problem.interior_rows) + 1] =
            all * box.x.all_neighbours(cx) - own_count;
      }
    }
  });
  for (auto* begin : {&problem.own.row_begin, &problem.foreign.row_begin}) {
    std::partial_sum(begin->begin(), begin->end(), begin->begin());
  }
}

/// Writes the entries of one point's row. Own columns: the interior neighbours in lexicographic
/// order are ascending, then the boundary ones are; the foreign ones need sorting by rank.
template <class Index>
void fill_row(const Box& box, const Offsets& offsets, std::array<std::int64_t, 3> point,
              LocalProblem<Index>& problem) {
  const auto [cx, cy, cz] = point;
  const std::int64_t row = box.new_row(cx, cy, cz);
  auto k = at(problem.own.row_begin[at(row)]);
  std::array<Index, 27> boundary, foreign;
  std::size_t boundary_count = 0, foreign_count = 0;
  auto put = [&](Index column) {
    problem.own.column[k] = column;
    problem.own.value[k++] = static_cast<std::int64_t>(column) == row ? 26.0 : -1.0;
  };
  for (std::int64_t z = cz - 1; z <= cz + 1; ++z) {
    const int sz = box.z.side(z);
    if (!box.z.has_side(sz)) continue;
    for (std::int64_t y = cy - 1; y <= cy + 1; ++y) {
      const int sy = box.y.side(y);
      if (!box.y.has_side(sy)) continue;
      for (std::int64_t x = cx - 1; x <= cx + 1; ++x) {
        const int sx = box.x.side(x);
        if (!box.x.has_side(sx)) continue;
        if (sx != 0 || sy != 0 || sz != 0) {
          const std::int64_t hx = sx == 0 ? x : 0, hy = sy == 0 ? y : 0, hz = sz == 0 ? z : 0;
          foreign[foreign_count++] =
              static_cast<Index>(offsets[direction(sx, sy, sz)] +
                                 (hz * box.y.extent(sy) + hy) * box.x.extent(sx) + hx);
        } else if (box.is_interior(x, y, z)) {
          put(static_cast<Index>(box.new_row(x, y, z)));
        } else {
          boundary[boundary_count++] = static_cast<Index>(box.new_row(x, y, z));
        }
      }
    }
  }
  for (std::size_t i = 0; i < boundary_count; ++i) put(boundary[i]);
  if (foreign_count == 0) return;
  std::sort(foreign.begin(), foreign.begin() + foreign_count);
  auto to = at(problem.foreign.row_begin[at(row - problem.interior_rows)]);
  for (std::size_t i = 0; i < foreign_count; ++i, ++to) {
    problem.foreign.column[to] = foreign[i];
    problem.foreign.value[to] = -1.0;
  }
}

template <class Index>
LocalProblem<Index> generate(const StencilOptions& options, const StencilSize& size) {
  const Box box(options);
  LocalProblem<Index> problem;
  problem.first_row = options.rank * size.rows;
  problem.rows = size.rows;
  problem.interior_rows = size.interior_rows;
  problem.global_rows = size.global_rows;
  problem.global_nonzeros = size.global_nonzeros;
  const Offsets offsets = make_halo(options, box, size.halo, problem);
  count_rows(box, options.threads, problem);
  problem.own.rows = problem.own.columns = size.rows;
  problem.own.column.resize(at(size.own_nonzeros));
  problem.own.value.resize(at(size.own_nonzeros));
  problem.foreign.rows = size.rows - size.interior_rows;
  problem.foreign.columns = size.halo;
  problem.foreign.column.resize(at(size.foreign_nonzeros));
  problem.foreign.value.resize(at(size.foreign_nonzeros));
  for_ranges(options.threads, box.z.points * box.y.points,
             [&](std::int64_t begin, std::int64_t end) {
               for (std::int64_t line = begin; line < end; ++line) {
                 for (std::int64_t cx = 0; cx < box.x.points; ++cx) {
                   fill_row(box, offsets, {cx, line % box.y.points, line / box.y.points}, problem);
                 }
               }
             });
  return problem;
}

}  // namespace

ProcessGrid ProcessGrid::of(std::int32_t ranks) {
  check(ranks >= 1, "ProcessGrid::of() needs a rank");
  ProcessGrid best{1, 1, ranks};
  for (std::int32_t px = 1; std::int64_t{px} * px * px <= ranks; ++px) {
    if (ranks % px != 0) continue;
    const std::int32_t rest = ranks / px;
    for (std::int32_t py = px; std::int64_t{py} * py <= rest; ++py) {
      if (rest % py != 0) continue;
      const std::int32_t pz = rest / py;
      const std::int64_t sum = std::int64_t{px} + py + pz;
      const std::int64_t best_sum = std::int64_t{best.px} + best.py + best.pz;
      if (sum < best_sum || (sum == best_sum && pz < best.pz)) best = {px, py, pz};
    }
  }
  return best;
}

std::array<std::int32_t, 3> ProcessGrid::coordinates(std::int32_t rank) const noexcept {
  return {rank % px, rank / px % py, rank / px / py};
}

bool StencilSize::needs_64_bit() const noexcept {
  return cg::needs_64_bit(rows, halo, std::max(own_nonzeros, foreign_nonzeros));
}

std::int64_t StencilSize::bytes(std::int64_t index_bytes) const noexcept {
  const std::int64_t entries = own_nonzeros + foreign_nonzeros;
  return entries * (8 + index_bytes) + 8 * (2 * rows + (rows - interior_rows) + halo + 2);
}

Result<StencilSize> stencil_size(const StencilOptions& options) {
  auto invalid = [](const char* what) {
    return Error{Errc::invalid, 0, std::string("stencil: ") + what};
  };
  if (options.nx < 1 || options.ny < 1 || options.nz < 1) {
    return invalid("every axis needs at least one point");
  }
  if (options.ranks < 1 || options.rank < 0 || options.rank >= options.ranks) {
    return invalid("the rank is out of range");
  }
  if (options.threads < 1 || options.threads > kMaxThreads) {
    return invalid("the number of threads must be from 1 to 1024");
  }
  // 27 entries a row bound everything that is computed from here on, bytes(8) * ranks included.
  std::int64_t bound = 64 * 27;
  for (const std::int64_t factor :
       {options.nx, options.ny, options.nz, static_cast<std::int64_t>(options.ranks)}) {
    if (__builtin_mul_overflow(bound, factor, &bound)) {
      return invalid("the global problem is too large to be numbered in 64 bits");
    }
  }
  const Box box(options);
  StencilSize size;
  size.rows = box.rows();
  size.interior_rows = box.interior_rows();
  size.own_nonzeros = box.x.own_sum() * box.y.own_sum() * box.z.own_sum();
  size.foreign_nonzeros = box.x.all_sum() * box.y.all_sum() * box.z.all_sum() - size.own_nonzeros;
  size.halo = (box.x.points + box.x.has_lower + box.x.has_upper) *
                  (box.y.points + box.y.has_lower + box.y.has_upper) *
                  (box.z.points + box.z.has_lower + box.z.has_upper) -
              size.rows;
  size.global_rows = size.rows * options.ranks;
  size.global_nonzeros = box.x.global_sum() * box.y.global_sum() * box.z.global_sum();
  const std::int64_t needed = size.bytes(size.needs_64_bit() ? 8 : 4);
  if (needed > options.memory_limit_bytes) {
    return Error{Errc::out_of_memory, 0,
                 "stencil: " + std::to_string(needed) + " bytes of host memory needed, " +
                     std::to_string(options.memory_limit_bytes) + " allowed"};
  }
  return size;
}

template <class Index>
Result<LocalProblem<Index>> make_stencil_problem(const StencilOptions& options) {
  const auto size = stencil_size(options);
  if (!size) return size.error();
  if (sizeof(Index) < 8 && size->needs_64_bit()) {
    return Error{Errc::invalid, 0, "stencil: this many rows or entries need 64-bit indices"};
  }
  const std::int64_t needed = size->bytes(sizeof(Index));
  if (needed > options.memory_limit_bytes) {
    return Error{Errc::out_of_memory, 0,
                 "stencil: " + std::to_string(needed) + " bytes of host memory needed, " +
                     std::to_string(options.memory_limit_bytes) + " allowed"};
  }
  try {
    return generate<Index>(options, *size);
  } catch (const std::bad_alloc&) {
    return Error{Errc::out_of_memory, 0, "stencil: the matrix does not fit into host memory"};
  }
}

StencilExchange stencil_exchange(const StencilOptions& options) {
  const Box box(options);
  StencilExchange result;
  const std::array axes{box.x, box.y, box.z};
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    result.box.points[axis] = axes[axis].points;
    result.box.lower[axis] = axes[axis].has_lower ? 1 : 0;
    result.box.upper[axis] = axes[axis].has_upper ? 1 : 0;
  }
  for_neighbours(options, box, [&](std::int64_t rank, int sx, int sy, int sz) {
    const auto offset = static_cast<std::int64_t>(result.gather.size());
    result.box.halo[direction(sx, sy, sz)] = offset;
    for_layer(box, sx, sy, sz, [&](std::int64_t old_row) { result.gather.push_back(old_row); });
    result.halo.push_back({static_cast<std::int32_t>(rank), offset,
                           static_cast<std::int64_t>(result.gather.size()) - offset});
  });
  return result;
}

Result<LocalRows> stencil_rows(const StencilOptions& whole, const RowBlocks& blocks,
                               std::int32_t rank) {
  check(rank >= 0 && rank < blocks.ranks, "stencil_rows() of a rank that there is not");
  const auto size = stencil_size(whole);
  if (!size) return size.error();
  check(blocks.rows == size->global_rows, "stencil_rows() for blocks of another problem");
  LocalRows local;
  local.first_row = blocks.first(rank);
  local.rows = blocks.count(rank);
  local.global_rows = size->global_rows;
  local.global_nonzeros = size->global_nonzeros;
  // A column and a value to an entry, and partition() makes as much again.
  const std::int64_t needed = local.rows * 27 * 32;
  if (needed > whole.memory_limit_bytes) {
    return Error{Errc::out_of_memory, 0,
                 "stencil: " + std::to_string(needed) + " bytes of host memory needed, " +
                     std::to_string(whole.memory_limit_bytes) + " allowed"};
  }
  const auto grid = ProcessGrid::of(whole.ranks);
  const std::array<std::int64_t, 3> box{whole.nx, whole.ny, whole.nz},
      points{box[0] * grid.px, box[1] * grid.py, box[2] * grid.pz};
  const auto row_of = [&](std::int64_t x, std::int64_t y, std::int64_t z) {
    const auto owner = x / box[0] + grid.px * (y / box[1] + grid.py * (z / box[2]));
    return owner * size->rows + x % box[0] + box[0] * (y % box[1] + box[1] * (z % box[2]));
  };
  local.row_begin.push_back(0);
  local.row_begin.reserve(at(local.rows) + 1);
  local.column.reserve(at(27 * local.rows));
  local.value.reserve(at(27 * local.rows));
  std::vector<std::int64_t> columns;
  for (auto row = local.first_row; row < local.first_row + local.rows; ++row) {
    const auto where = grid.coordinates(static_cast<std::int32_t>(row / size->rows));
    const auto inside = row % size->rows;
    const auto x = where[0] * box[0] + inside % box[0],
               y = where[1] * box[1] + inside / box[0] % box[1],
               z = where[2] * box[2] + inside / box[0] / box[1];
    columns.clear();
    for (auto cz = std::max<std::int64_t>(0, z - 1); cz <= std::min(points[2] - 1, z + 1); ++cz) {
      for (auto cy = std::max<std::int64_t>(0, y - 1); cy <= std::min(points[1] - 1, y + 1); ++cy) {
        for (auto cx = std::max<std::int64_t>(0, x - 1); cx <= std::min(points[0] - 1, x + 1); ++cx)
          columns.push_back(row_of(cx, cy, cz));
      }
    }
    std::sort(columns.begin(), columns.end());
    for (const auto column : columns) {
      local.column.push_back(column);
      local.value.push_back(column == row ? 26 : -1);
    }
    local.row_begin.push_back(static_cast<std::int64_t>(local.column.size()));
  }
  return local;
}

bool has_coarser(const StencilOptions& fine) noexcept {
  return std::ranges::all_of(std::array{fine.nx, fine.ny, fine.nz},
                             [](std::int64_t points) { return points % 2 == 0 && points > 2; });
}

StencilOptions coarser(const StencilOptions& fine) noexcept {
  auto coarse = fine;
  coarse.nx /= 2, coarse.ny /= 2, coarse.nz /= 2;
  return coarse;
}

std::int64_t fine_row(const StencilOptions& fine, std::int64_t coarse_row) noexcept {
  const auto coarse = coarser(fine);
  const auto points = coarse.nx * coarse.ny * coarse.nz;
  const auto box = coarse_row / points, inside = coarse_row % points;
  const auto x = inside % coarse.nx, y = inside / coarse.nx % coarse.ny,
             z = inside / (coarse.nx * coarse.ny);
  return box * fine.nx * fine.ny * fine.nz + 2 * ((z * fine.ny + y) * fine.nx + x);
}

RowBlocks coarser_blocks(const StencilOptions& fine, const RowBlocks& blocks) {
  RowBlocks coarse{blocks.rows / 8, blocks.ranks};
  std::int64_t row = 0;
  for (std::int32_t rank = 0; rank < blocks.ranks; ++rank) {
    // fine_row() ascends.
    std::int64_t end = coarse.rows;
    while (row < end) {
      const auto middle = row + (end - row) / 2;
      if (fine_row(fine, middle) < blocks.first(rank)) {
        row = middle + 1;
      } else {
        end = middle;
      }
    }
    coarse.begins.push_back(row);
  }
  return coarse;
}

std::int32_t colour(const StencilOptions& grid, std::int64_t row) noexcept {
  constexpr std::array<std::int32_t, 8> kPlaces{7, 1, 2, 5,
                                                6, 3, 4, 0};  // of the parities 4z + 2y + x
  const auto inside = row % (grid.nx * grid.ny * grid.nz);
  const auto x = inside % grid.nx, y = inside / grid.nx % grid.ny, z = inside / (grid.nx * grid.ny);
  return kPlaces[at(x % 2 + 2 * (y % 2) + 4 * (z % 2))];
}

template Result<LocalProblem<std::int32_t>> make_stencil_problem(const StencilOptions&);
template Result<LocalProblem<std::int64_t>> make_stencil_problem(const StencilOptions&);

}  // namespace troupe::cg
