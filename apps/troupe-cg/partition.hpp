#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <troupe/error.hpp>

#include "csr.hpp"

namespace troupe::cg {

/// A rank whose entries of the vector this rank needs; they lie together in the halo vector.
struct Neighbour {
  std::int32_t rank = 0;
  std::int64_t receive_offset = 0, receive_count = 0;  ///< in elements of the halo vector
  bool operator==(const Neighbour&) const = default;
};

/// One rank's part of y = A x, split so that the larger part needs no communication.
///
/// Three numberings of a row: global; local old = global - first_row; local new, which everything
/// here uses: the interior rows (no column of another rank) come first, then the boundary rows,
/// both in ascending old order unless renumber() gave them another one. The halo vector holds what
/// comes from other ranks, sorted by global row, so by rank. Then y = own * x, and y[interior_rows
/// + i] += (foreign * halo)[i].
///
/// A is structurally symmetric, so a rank receives from exactly the ranks that it sends to.
template <class Index>
struct LocalProblem {
  std::int64_t first_row = 0, rows = 0, interior_rows = 0;
  std::int64_t global_rows = 0, global_nonzeros = 0;
  Array<std::int64_t> permutation;         ///< local new -> local old
  CsrMatrix<Index> own;                    ///< all rows; columns are local new
  CsrMatrix<Index> foreign;                ///< row 0 = row interior_rows; columns index the halo
  std::vector<Neighbour> halo;             ///< sorted by rank
  std::vector<std::int64_t> halo_columns;  ///< the global row of each element of the halo vector

  /// The global rows that this rank wants from `neighbour`, ascending: what it must tell that rank.
  [[nodiscard]] std::span<const std::int64_t> wanted_from(const Neighbour& neighbour) const {
    return std::span(halo_columns)
        .subspan(static_cast<std::size_t>(neighbour.receive_offset),
                 static_cast<std::size_t>(neighbour.receive_count));
  }
};

/// Whether a part of these dimensions needs Index = int64: a row, halo element or entry number
/// beyond int32. Entries count so that row offsets and columns can have one type on the GPU.
[[nodiscard]] bool needs_64_bit(std::int64_t rows, std::int64_t halo,
                                std::int64_t nonzeros) noexcept;

/// needs_64_bit() for partition(); the halo is bounded by the entries.
[[nodiscard]] bool needs_64_bit(const LocalRows& rows) noexcept;

/// Splits the rows that `blocks` gives to `rank`. `rows` must be that block of a square matrix.
/// Errors: Errc::out_of_memory; Errc::invalid if Index is too narrow (see needs_64_bit()).
template <class Index>
Result<LocalProblem<Index>> partition(const LocalRows& rows, const RowBlocks& blocks,
                                      std::int32_t rank);

/// Gives the rows new numbers, the interior ones and the boundary ones each among themselves: those
/// of the first colour come first, and within a colour they keep their order. A Gauss-Seidel sweep
/// over rows that are ordered by colours has as many steps as there are colours, because rows of
/// one colour do not depend on each other. `colours` has the colour of each row, by its old local
/// number, from 0. Runs on `threads` threads.
template <class Index>
void renumber(LocalProblem<Index>& problem, std::span<const std::int32_t> colours,
              std::int32_t threads);

/// local old -> local new
template <class Index>
std::vector<Index> new_numbers(const LocalProblem<Index>& problem);

/// What another rank wants from this one, as global rows in the order in which it wants them.
struct Request {
  std::int32_t rank = 0;
  std::vector<std::int64_t> rows;
};

/// The elements to gather into a send buffer: those for `rank` are [send_offset, + send_count).
struct SendNeighbour {
  std::int32_t rank = 0;
  std::int64_t send_offset = 0, send_count = 0;
};
template <class Index>
struct SendPlan {
  std::vector<SendNeighbour> neighbours;  ///< in the order of the requests
  std::vector<Index> gather;              ///< local new indices into x
};

/// Turns the other ranks' wishes into indices. Errc::invalid if one asks for a row that is not
/// here.
template <class Index>
Result<SendPlan<Index>> send_plan(const LocalProblem<Index>& problem,
                                  std::span<const Request> requests);

/// The diagonal in local new order, for the Jacobi preconditioner; 0 where no entry is stored.
template <class Index>
Array<double> diagonal(const LocalProblem<Index>& problem);

/// The known solution at a global row: 1 + a sine of period 2000 pi rows + noise in [-1/4, 1/4), so
/// between 1/4 and 7/4. It depends on row and seed alone, not on how rows are spread over ranks.
[[nodiscard]] double known_solution(std::int64_t global_row, std::uint64_t seed) noexcept;

/// The known solution of this rank's rows, local new order. Runs on `threads` threads.
template <class Index>
Array<double> known_solution(const LocalProblem<Index>& problem, std::uint64_t seed,
                             std::int32_t threads);

/// b = A x for the known solution, local new order; needs no communication.
template <class Index>
Array<double> right_hand_side(const LocalProblem<Index>& problem, std::uint64_t seed,
                              std::int32_t threads);

}  // namespace troupe::cg
