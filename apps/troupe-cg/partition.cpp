#include "partition.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>
#include <numeric>
#include <string>

namespace troupe::cg {
namespace {

std::size_t at(std::int64_t index) {
  return static_cast<std::size_t>(index);
}

/// Writes permutation, interior_rows and both row_begin arrays.
template <class Index>
void order_rows(const LocalRows& rows, LocalProblem<Index>& problem) {
  const std::int64_t end_row = rows.first_row + rows.rows;
  std::vector<std::int64_t> foreign_count(at(rows.rows));
  for (std::int64_t row = 0; row < rows.rows; ++row) {
    const auto begin = rows.column.begin() + rows.row_begin[at(row)];
    const auto end = rows.column.begin() + rows.row_begin[at(row + 1)];
    foreign_count[at(row)] = std::count_if(begin, end, [&](std::int64_t column) {
      return column < rows.first_row || column >= end_row;
    });
  }
  problem.permutation.resize(at(rows.rows));
  std::iota(problem.permutation.begin(), problem.permutation.end(), std::int64_t{0});
  const auto middle =
      std::stable_partition(problem.permutation.begin(), problem.permutation.end(),
                            [&](std::int64_t row) { return foreign_count[at(row)] == 0; });
  problem.interior_rows = middle - problem.permutation.begin();

  problem.own.row_begin.reserve(at(rows.rows) + 1);
  problem.own.row_begin.push_back(0);
  problem.foreign.row_begin.reserve(at(rows.rows - problem.interior_rows) + 1);
  problem.foreign.row_begin.push_back(0);
  for (std::int64_t row = 0; row < rows.rows; ++row) {
    const std::int64_t old_row = problem.permutation[at(row)];
    const std::int64_t all = rows.row_begin[at(old_row + 1)] - rows.row_begin[at(old_row)];
    const std::int64_t foreign = foreign_count[at(old_row)];
    problem.own.row_begin.push_back(problem.own.row_begin.back() + all - foreign);
    if (row < problem.interior_rows) continue;
    problem.foreign.row_begin.push_back(problem.foreign.row_begin.back() + foreign);
  }
}

template <class Index>
void collect_halo(const LocalRows& rows, const RowBlocks& blocks, LocalProblem<Index>& problem) {
  auto& wanted = problem.halo_columns;
  for (const std::int64_t column : rows.column) {
    if (column < rows.first_row || column >= rows.first_row + rows.rows) wanted.push_back(column);
  }
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const std::int32_t owner = blocks.owner(wanted[i]);
    if (problem.halo.empty() || problem.halo.back().rank != owner) {
      problem.halo.push_back({owner, static_cast<std::int64_t>(i), 0});
    }
    ++problem.halo.back().receive_count;
  }
}

template <class Index>
LocalProblem<Index> split(const LocalRows& rows, const RowBlocks& blocks) {
  LocalProblem<Index> problem;
  problem.first_row = rows.first_row;
  problem.rows = rows.rows;
  problem.global_rows = rows.global_rows;
  problem.global_nonzeros = rows.global_nonzeros;
  order_rows(rows, problem);
  collect_halo(rows, blocks, problem);
  const auto halo_size = static_cast<std::int64_t>(problem.halo_columns.size());
  CsrMatrix<Index>&own = problem.own, &foreign = problem.foreign;
  own.rows = own.columns = rows.rows;
  foreign.rows = rows.rows - problem.interior_rows;
  foreign.columns = halo_size;
  own.column.reserve(at(own.row_begin.back()));
  own.value.reserve(at(own.row_begin.back()));
  foreign.column.reserve(at(foreign.row_begin.back()));
  foreign.value.reserve(at(foreign.row_begin.back()));

  const auto new_of_old = new_numbers(problem);
  std::vector<std::pair<Index, double>> entries;
  for (const std::int64_t old_row : problem.permutation) {
    entries.clear();
    for (auto k = at(rows.row_begin[at(old_row)]); k < at(rows.row_begin[at(old_row + 1)]); ++k) {
      const std::int64_t column = rows.column[k];
      if (column >= rows.first_row && column < rows.first_row + rows.rows) {
        entries.emplace_back(new_of_old[at(column - rows.first_row)], rows.value[k]);
      } else {  // ascending global columns are ascending halo positions
        const auto& wanted = problem.halo_columns;
        const auto found = std::lower_bound(wanted.begin(), wanted.end(), column);
        foreign.column.push_back(static_cast<Index>(found - wanted.begin()));
        foreign.value.push_back(rows.value[k]);
      }
    }
    std::sort(entries.begin(), entries.end());
    for (const auto& [column, value] : entries) {
      own.column.push_back(column);
      own.value.push_back(value);
    }
  }
  return problem;
}

/// The rows of `matrix` in another order: row i is row order[i] - first of it. Column c becomes
/// moved_to(c), and the entries of a row are sorted anew.
template <class Index, class MovedTo>
CsrMatrix<Index> reordered(const CsrMatrix<Index>& matrix, std::span<std::int64_t> order,
                           std::int64_t first, std::int32_t threads, MovedTo moved_to) {
  CsrMatrix<Index> result;
  result.rows = matrix.rows;
  result.columns = matrix.columns;
  result.row_begin.reserve(order.size() + 1);
  result.row_begin.push_back(0);
  for (const auto from : order) {
    const auto row = at(from - first);
    result.row_begin.push_back(result.row_begin.back() + matrix.row_begin[row + 1] -
                               matrix.row_begin[row]);
  }
  result.column.resize(matrix.column.size());
  result.value.resize(matrix.value.size());
  for_ranges(threads, std::ssize(order), [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::pair<Index, double>> entries;
    for (auto i = begin; i < end; ++i) {
      const auto row = at(order[at(i)] - first);
      entries.clear();
      for (auto k = at(matrix.row_begin[row]); k < at(matrix.row_begin[row + 1]); ++k)
        entries.emplace_back(moved_to(matrix.column[k]), matrix.value[k]);
      std::sort(entries.begin(), entries.end());
      auto to = at(result.row_begin[at(i)]);
      for (const auto& [column, value] : entries) {
        result.column[to] = column;
        result.value[to++] = value;
      }
    }
  });
  return result;
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// 53 random bits as a double in [0, 1).
double unit(std::uint64_t bits) {
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

template <class Index>
double row_times(const CsrMatrix<Index>& matrix, std::int64_t row, const double* x) {
  double sum = 0;
  for (auto k = at(matrix.row_begin[at(row)]); k < at(matrix.row_begin[at(row + 1)]); ++k) {
    sum += matrix.value[k] * x[matrix.column[k]];
  }
  return sum;
}

}  // namespace

bool needs_64_bit(std::int64_t rows, std::int64_t halo, std::int64_t nonzeros) noexcept {
  return std::max({rows, halo, nonzeros}) > std::numeric_limits<std::int32_t>::max();
}

bool needs_64_bit(const LocalRows& rows) noexcept {
  const auto nonzeros = static_cast<std::int64_t>(rows.column.size());
  return needs_64_bit(rows.rows, nonzeros, nonzeros);
}

template <class Index>
Result<LocalProblem<Index>> partition(const LocalRows& rows, const RowBlocks& blocks,
                                      std::int32_t rank) {
  check(rank >= 0 && rank < blocks.ranks && rows.global_rows == blocks.rows &&
            rows.first_row == blocks.first(rank) && rows.rows == blocks.count(rank) &&
            rows.row_begin.size() == at(rows.rows) + 1,
        "partition(): the rows are not the rank's block");
  if (sizeof(Index) < 8 && needs_64_bit(rows)) {
    return Error{Errc::invalid, 0, "partition: this many rows or entries need 64-bit indices"};
  }
  try {
    return split<Index>(rows, blocks);
  } catch (const std::bad_alloc&) {
    return Error{Errc::out_of_memory, 0, "partition: the matrix does not fit into host memory"};
  }
}

template <class Index>
std::vector<Index> new_numbers(const LocalProblem<Index>& problem) {
  std::vector<Index> numbers(at(problem.rows));
  for (std::int64_t row = 0; row < problem.rows; ++row)
    numbers[at(problem.permutation[at(row)])] = static_cast<Index>(row);
  return numbers;
}

template <class Index>
void renumber(LocalProblem<Index>& problem, std::span<const std::int32_t> colours,
              std::int32_t threads) {
  std::vector<std::int64_t> order(at(problem.rows));  // the present number of each new one
  // A counting sort, first of the interior rows and then of the boundary.
  const auto sort_by_colour = [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::int64_t> place;  // of each colour's next row
    const auto colour_of = [&](std::int64_t row) {
      return at(colours[at(problem.permutation[at(row)])]);
    };
    for (auto row = begin; row < end; ++row) {
      if (colour_of(row) + 1 >= place.size()) place.resize(colour_of(row) + 2);
      ++place[colour_of(row) + 1];
    }
    std::partial_sum(place.begin(), place.end(), place.begin());
    for (auto row = begin; row < end; ++row) order[at(begin + place[colour_of(row)]++)] = row;
  };
  sort_by_colour(0, problem.interior_rows);
  sort_by_colour(problem.interior_rows, problem.rows);
  std::vector<Index> moved_to(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) moved_to[at(order[i])] = static_cast<Index>(i);

  Array<std::int64_t> permutation(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) permutation[i] = problem.permutation[at(order[i])];
  problem.permutation = std::move(permutation);
  const std::span rows(order);
  problem.own =
      reordered(problem.own, rows, 0, threads, [&](Index row) { return moved_to[at(row)]; });
  problem.foreign =
      reordered(problem.foreign, rows.subspan(at(problem.interior_rows)), problem.interior_rows,
                threads, [](Index in_halo) { return in_halo; });
}

template <class Index>
Result<SendPlan<Index>> send_plan(const LocalProblem<Index>& problem,
                                  std::span<const Request> requests) {
  SendPlan<Index> plan;
  const auto new_of_old = new_numbers(problem);
  for (const Request& request : requests) {
    plan.neighbours.push_back({request.rank, static_cast<std::int64_t>(plan.gather.size()),
                               static_cast<std::int64_t>(request.rows.size())});
    for (const std::int64_t row : request.rows) {
      if (row < problem.first_row || row - problem.first_row >= problem.rows) {
        return Error{Errc::invalid, 0,
                     "rank " + std::to_string(request.rank) + " wants row " + std::to_string(row) +
                         ", which is not among the " + std::to_string(problem.rows) +
                         " rows from " + std::to_string(problem.first_row)};
      }
      plan.gather.push_back(new_of_old[at(row - problem.first_row)]);
    }
  }
  return plan;
}

template <class Index>
Array<double> diagonal(const LocalProblem<Index>& problem) {
  Array<double> result(at(problem.rows), 0.0);
  for (std::int64_t row = 0; row < problem.rows; ++row) {
    const auto first = problem.own.column.begin();
    const auto begin = first + problem.own.row_begin[at(row)];
    const auto end = first + problem.own.row_begin[at(row + 1)];
    const auto found = std::lower_bound(begin, end, static_cast<Index>(row));
    if (found != end && *found == static_cast<Index>(row)) {
      result[at(row)] = problem.own.value[at(found - first)];
    }
  }
  return result;
}

double known_solution(std::int64_t global_row, std::uint64_t seed) noexcept {
  const double phase = 6.283185307179586 * unit(mix(seed));
  const double noise =
      unit(mix(mix(seed ^ 0x632be59bd9b4e019u) + static_cast<std::uint64_t>(global_row)));
  return 1 + 0.5 * std::sin(0.001 * static_cast<double>(global_row) + phase) + 0.5 * (noise - 0.5);
}

template <class Index>
Array<double> known_solution(const LocalProblem<Index>& problem, std::uint64_t seed,
                             std::int32_t threads) {
  Array<double> x(at(problem.rows));
  for_ranges(threads, problem.rows, [&](std::int64_t begin, std::int64_t end) {
    for (auto row = begin; row < end; ++row) {
      x[at(row)] = known_solution(problem.first_row + problem.permutation[at(row)], seed);
    }
  });
  return x;
}

template <class Index>
Array<double> right_hand_side(const LocalProblem<Index>& problem, std::uint64_t seed,
                              std::int32_t threads) {
  const auto x = known_solution(problem, seed, threads);
  Array<double> halo(problem.halo_columns.size());
  std::transform(problem.halo_columns.begin(), problem.halo_columns.end(), halo.begin(),
                 [&](std::int64_t row) { return known_solution(row, seed); });
  Array<double> b(at(problem.rows));
  for_ranges(threads, problem.rows, [&](std::int64_t begin, std::int64_t end) {
    for (auto row = begin; row < end; ++row) {
      b[at(row)] = row_times(problem.own, row, x.data());
      if (row < problem.interior_rows) continue;
      b[at(row)] += row_times(problem.foreign, row - problem.interior_rows, halo.data());
    }
  });
  return b;
}

#define TROUPE_CG_INSTANTIATE(Index)                                                              \
  template Result<LocalProblem<Index>> partition(const LocalRows&, const RowBlocks&,              \
                                                 std::int32_t);                                   \
  template std::vector<Index> new_numbers(const LocalProblem<Index>&);                            \
  template void renumber(LocalProblem<Index>&, std::span<const std::int32_t>, std::int32_t);      \
  template Result<SendPlan<Index>> send_plan(const LocalProblem<Index>&,                          \
                                             std::span<const Request>);                           \
  template Array<double> diagonal(const LocalProblem<Index>&);                                    \
  template Array<double> known_solution(const LocalProblem<Index>&, std::uint64_t, std::int32_t); \
  template Array<double> right_hand_side(const LocalProblem<Index>&, std::uint64_t, std::int32_t);
TROUPE_CG_INSTANTIATE(std::int32_t)
TROUPE_CG_INSTANTIATE(std::int64_t)
#undef TROUPE_CG_INSTANTIATE

}  // namespace troupe::cg
