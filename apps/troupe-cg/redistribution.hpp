#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <troupe/troupe.hpp>

#include "partition.hpp"

namespace troupe::cg {

/// What a saved state says of the problem, so that it is not taken up by another one: global rows
/// and nonzeros, the preconditioner, the seed of the known solution.
using ProblemMark = std::array<std::int64_t, 4>;

/// The entries of a saved part that say which rows it has: "rows" is {first global row, number},
/// "row_order" the permutation (see LocalProblem), "problem" a ProblemMark.
inline constexpr const char *kRowsEntry = "rows", *kRowOrderEntry = "row_order",
                            *kProblemEntry = "problem";

/// Vectors as another number of ranks has saved them, dealt out anew: the values of this rank's
/// rows, in its own order, one vector per name. All ranks call it. Errors: invalid (the state is of
/// another problem or precision), io.
template <RealElement T, class I>
Result<std::vector<std::vector<T>>> redistribute(const SavedState& state,
                                                 const LocalProblem<I>& problem,
                                                 const ProblemMark& mark,
                                                 std::span<const std::string> names) {
  const auto other = [&](const std::string& what) {
    return Error{Errc::invalid, 0,
                 "the state of step " + std::to_string(state.step()) + " is of another " + what};
  };
  std::vector<SavedPiece> pieces;
  for (int part = 0; part < state.parts(); ++part) {
    pieces.push_back({part, kProblemEntry, 0, mark.size()});
    pieces.push_back({part, kRowsEntry, 0, 2});
  }
  const auto marks = state.read(pieces);
  if (!marks) return marks.error();

  // The parts that have rows of this rank: their order of rows and their vectors, whole.
  struct Rows {
    std::int64_t first, count;
  };
  std::vector<Rows> found;
  pieces.clear();
  for (int part = 0; part < state.parts(); ++part) {
    const auto at = 2 * static_cast<std::size_t>(part);
    if ((*marks)[at].size() != sizeof mark || (*marks)[at + 1].size() != sizeof(Rows))
      return other("program");
    const auto its = SavedState::as<std::int64_t>((*marks)[at]);
    if (!std::equal(its.begin(), its.end(), mark.begin(), mark.end()))
      return other("problem: of " + std::to_string(its[0]) + " rows and " + std::to_string(its[1]) +
                   " nonzeros, and this one has " + std::to_string(mark[0]) + " and " +
                   std::to_string(mark[1]) + " (points of --stencil are those of each rank)");
    const auto rows = SavedState::as<std::int64_t>((*marks)[at + 1]);
    if (rows[0] >= problem.first_row + problem.rows || rows[0] + rows[1] <= problem.first_row)
      continue;
    found.push_back({rows[0], rows[1]});
    const auto count = static_cast<std::uint64_t>(rows[1]);
    pieces.push_back({part, kRowOrderEntry, 0, count});
    for (const auto& name : names) pieces.push_back({part, name, 0, count});
  }
  const auto saved = state.read(pieces);
  if (!saved) return saved.error();

  std::vector<std::size_t> place(static_cast<std::size_t>(problem.rows));  // of an old local row
  for (std::size_t i = 0; i < place.size(); ++i)
    place[static_cast<std::size_t>(problem.permutation[i])] = i;
  std::vector<std::vector<T>> mine(names.size(), std::vector<T>(place.size()));
  std::size_t filled = 0;
  auto bytes = saved->begin();
  for (const auto& rows : found) {
    if (bytes->size() != static_cast<std::uint64_t>(rows.count) * sizeof(std::int64_t))
      return other("program");
    const auto order = SavedState::as<std::int64_t>(*bytes++);
    const auto from = problem.first_row - rows.first;
    for (std::size_t v = 0; v < names.size(); ++v) {
      if (bytes->size() != order.size() * sizeof(T)) return other("precision");
      const auto values = SavedState::as<T>(*bytes++);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const auto row = order[i] - from;
        if (row < 0 || row >= problem.rows) continue;
        mine[v][place[static_cast<std::size_t>(row)]] = values[i];
        ++filled;
      }
    }
  }
  if (filled != names.size() * place.size()) return other("set of rows");
  return mine;
}

}  // namespace troupe::cg
