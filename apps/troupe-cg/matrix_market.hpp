#pragma once

#include <cstdint>
#include <string>

#include <troupe/error.hpp>

#include "csr.hpp"

namespace troupe::cg {

/// Reads rank `rank`'s block of rows (RowBlocks) of a Matrix Market file: coordinate, real or
/// integer, general or symmetric (only the lower triangle stored; the mirror image is added),
/// numerically symmetric in any case because conjugate gradients need that. Format:
/// https://math.nist.gov/MatrixMarket/formats.html, and beyond it CRLF line ends, blank lines,
/// banner words in any case and Fortran exponents (1.0D+00). Entries stored as 0 stay entries.
///
/// The file is streamed: memory is what this rank's rows need, plus the audit below. The first pass
/// checks everything and counts, the second fills; the path must therefore name a regular file that
/// does not change. Every rank checks the whole file, so all ranks return the same outcome.
///
/// Duplicates and symmetry without holding the matrix: entries in strictly ascending order (by row
/// or by column) cannot repeat; and a general matrix is symmetric if the entries below and above
/// the diagonal are, mirrored, the same multiset, which is compared by a commutative 128-bit hash
/// of (smaller index, larger index, value): different multisets agree by accident only. Where
/// either test does not settle it, an exact audit follows that names the first offending line. It
/// re-reads the file in as many passes as keep its memory at about 256 MiB.
///
/// Errors: Errc::io if the file cannot be read; Errc::invalid "FILE:LINE: what is wrong" for a file
/// that is not as above, for a matrix with fewer rows than ranks and for one that must have empty
/// rows (more rows than the entries can reach: singular). Errc::out_of_memory if this rank's rows
/// do not fit. Requires 0 <= rank < ranks.
Result<LocalRows> read_matrix_market(const std::string& path, std::int32_t rank,
                                     std::int32_t ranks);

}  // namespace troupe::cg
