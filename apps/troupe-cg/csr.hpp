#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace troupe::cg {

/// std::allocator, except that resize() leaves plain values uninitialised: the gigabytes of a large
/// matrix are then touched first by the threads that fill them, not by one thread writing zeros.
template <class T>
class UninitializedAllocator : public std::allocator<T> {
 public:
  template <class U>
  struct rebind {
    using other = UninitializedAllocator<U>;
  };
  UninitializedAllocator() = default;
  template <class U>
  explicit UninitializedAllocator(const UninitializedAllocator<U>&) noexcept {}

  template <class U>
  void construct(U* where) noexcept(std::is_nothrow_default_constructible_v<U>) {
    ::new (static_cast<void*>(where)) U;
  }
  template <class U, class... Arguments>
  void construct(U* where, Arguments&&... arguments) {
    ::new (static_cast<void*>(where)) U(std::forward<Arguments>(arguments)...);
  }
};

/// A std::vector whose resize() does not clear what it adds.
template <class T>
using Array = std::vector<T, UninitializedAllocator<T>>;

/// Rows dealt to ranks in contiguous blocks. Without `begins` they are as even as possible: the
/// first rows % ranks ranks have one row more than the others. Requires rows >= 0, ranks >= 1.
struct RowBlocks {
  std::int64_t rows = 0;
  std::int32_t ranks = 1;
  /// The first row of each rank, ascending from 0; or empty.
  std::vector<std::int64_t> begins = {};

  [[nodiscard]] std::int64_t first(std::int32_t rank) const noexcept;
  [[nodiscard]] std::int64_t count(std::int32_t rank) const noexcept;
  /// The rank that owns `row`; requires 0 <= row < rows.
  [[nodiscard]] std::int32_t owner(std::int64_t row) const noexcept;
};

/// One rank's block of rows of a square matrix, columns numbered globally from 0. The entries of
/// row first_row + i are [row_begin[i], row_begin[i + 1]), sorted by column, each column at most
/// once.
struct LocalRows {
  std::int64_t first_row = 0, rows = 0, global_rows = 0, global_nonzeros = 0;
  std::vector<std::int64_t> row_begin;
  std::vector<std::int64_t> column;
  std::vector<double> value;
};

/// Compressed sparse rows, zero-based; the entries of each row are sorted by column.
template <class Index>
struct CsrMatrix {
  std::int64_t rows = 0, columns = 0;
  Array<std::int64_t> row_begin;  ///< rows + 1 offsets into column and value
  Array<Index> column;
  Array<double> value;

  [[nodiscard]] std::int64_t nonzeros() const noexcept {
    return static_cast<std::int64_t>(column.size());
  }
};

/// Splits [0, count) into one contiguous range per thread and calls body(begin, end) for each, one
/// of them here; returns when all are done. `body` must not throw. Requires threads >= 1.
void for_ranges(std::int32_t threads, std::int64_t count,
                const std::function<void(std::int64_t, std::int64_t)>& body);

}  // namespace troupe::cg
