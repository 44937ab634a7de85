#include "hpcg_problem.hpp"

#include <algorithm>

namespace troupe::cg {
namespace {

std::size_t at(std::int64_t index) {
  return static_cast<std::size_t>(index);
}

}  // namespace

template <class Index>
Array<double> ones_times(const LocalProblem<Index>& problem) {
  Array<double> b(at(problem.rows));
  for (std::int64_t row = 0; row < problem.rows; ++row) {
    auto neighbours = problem.own.row_begin[at(row + 1)] - problem.own.row_begin[at(row)] - 1;
    if (row >= problem.interior_rows) {
      const auto boundary = at(row - problem.interior_rows);
      neighbours += problem.foreign.row_begin[boundary + 1] - problem.foreign.row_begin[boundary];
    }
    b[at(row)] = 26.0 - static_cast<double>(neighbours);
  }
  return b;
}

template <class Index>
void exaggerate_diagonal(LocalProblem<Index>& problem, std::span<double> b) {
  for (std::int64_t row = 0; row < problem.rows; ++row) {
    const auto global = problem.first_row + problem.permutation[at(row)];
    const double scale = global < 9 ? static_cast<double>(global + 2) * 1e6 : 1e6;
    const auto begin = problem.own.column.begin() + problem.own.row_begin[at(row)];
    const auto end = problem.own.column.begin() + problem.own.row_begin[at(row + 1)];
    const auto diagonal = std::lower_bound(begin, end, static_cast<Index>(row));
    problem.own.value[at(diagonal - problem.own.column.begin())] *= scale;
    b[at(row)] *= scale;
  }
}

template Array<double> ones_times(const LocalProblem<std::int32_t>&);
template Array<double> ones_times(const LocalProblem<std::int64_t>&);
template void exaggerate_diagonal(LocalProblem<std::int32_t>&, std::span<double>);
template void exaggerate_diagonal(LocalProblem<std::int64_t>&, std::span<double>);

}  // namespace troupe::cg
