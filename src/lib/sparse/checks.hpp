#pragma once

#include <algorithm>
#include <initializer_list>

#include <troupe/lib/sparse.hpp>

#include "common/wire/checker.hpp"

/// What the checks of operations on sparse matrices have in common.
namespace troupe::sparse {

using wire::checker;
using wire::Checker;

inline bool is_index(DType dtype) {
  return dtype == DType::i32 || dtype == DType::i64;
}
/// Indices of 32 bits reach all of these.
inline Checker& within_indices(Checker& checks, DType index_dtype,
                               std::initializer_list<std::int64_t> extents) {
  return checks.require(index_dtype != DType::i32 || std::max(extents) <= INT32_MAX,
                        "the matrix is too large for 32-bit indices");
}

/// A matrix in one of these formats, with its buffers. Requires all that Form says of it; indices
/// themselves are in device memory, and nobody looks at them here.
Checker& sparse_matrix(Checker& checks, const Form& form, std::initializer_list<Format> taken,
                       const Operand& outer, const Operand& inner, const Operand& value);

}  // namespace troupe::sparse
