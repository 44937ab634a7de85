#pragma once

#include <array>
#include <cstdint>
#include <list>

#include "device_host/engine/cuda/library.hpp"
#include "device_host/engine/cuda/stream_memory.hpp"
#include "lib/sparse/transpose/kernels.cuh"

/// Sparse matrices by columns: where the elements of each column are.
namespace troupe::host::cuda {

/// What a buffer contains, as far as its operand tells.
inline std::uint64_t contents_of(const Operand& operand) {
  return std::uint64_t{operand.buffer} << 32 | operand.generation;
}
inline bool overlap(const Operand& a, const Operand& b) {
  return a.region == b.region && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

/// Those of one queue that were used last.
class Transpositions {
 public:
  /// The transposed structure of a matrix with elements, made if it is not there. `outer` and
  /// `inner` are where its row_begin or row, and its column, are: see sparse::Form. It stays until
  /// others have been asked for, or overwrites(). Errors: out_of_memory, unsupported (not there
  /// while a graph is recorded).
  template <class I>
  Result<kernels::TransposedStructure<I>> find(Services& services, const Call& call,
                                               const kernels::Structure<I>& matrix,
                                               const Operand& outer, const Operand& inner);
  /// Forgets the matrices whose structure is in this range.
  void overwrites(Services& services, const Operand& range);
  /// Keeps the `keep` most recently used ones.
  void forget(Services& services, std::size_t keep);

 private:
  /// Everything that a structure depends on. Buffer and generation stand for the contents.
  struct Key {
    const void *row_begin, *row, *column;
    std::int64_t rows, columns, nonzeros, slice_rows, width;
    std::uint64_t outer_contents, inner_contents;
    std::size_t index_bytes;
    bool operator==(const Key&) const = default;
  };
  struct Entry {
    Key key;
    std::array<Operand, 2> structure;  ///< written anew they are another matrix
    StreamMemory memory;
  };
  static constexpr std::size_t kMost = 8;  ///< each takes about as much memory as its matrix

  template <class I>
  static kernels::TransposedStructure<I> parts_of(const kernels::Structure<I>& matrix,
                                                  void* memory);

  std::list<Entry> entries_;  ///< the most recently used first
};

}  // namespace troupe::host::cuda
