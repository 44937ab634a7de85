#include <algorithm>
#include <numeric>
#include <vector>

#include "lib/sparse/common/rows_cpu.hpp"
#include "lib/sparse/cpu.hpp"

/// Rows of elements, and elements in order, on the cpu engine. Indices that are out of range write
/// nothing of others.
namespace troupe::host::cpu {
namespace {

std::vector<std::int64_t> numbers_up_to(std::int64_t count) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), std::int64_t{0});
  return numbers;
}

/// sorted[k] = given[place[k]], for parts that are there.
template <class T>
void permute(const std::vector<std::int64_t>& place, const T* given, T* sorted) {
  if (sorted == nullptr) return;
  std::transform(place.begin(), place.end(), sorted, [&](std::int64_t at) { return given[at]; });
}
template <class I>
void write_permutation(const std::vector<std::int64_t>& place, I* permutation) {
  if (permutation == nullptr) return;
  std::transform(place.begin(), place.end(), permutation,
                 [](std::int64_t at) { return static_cast<I>(at); });
}

}  // namespace

Result<void> run(const sparse::Csr2Coo& op, const Call& call, Sparse& library) {
  return with_index(op.dtype, [&](auto zero_index) {
    using I = decltype(zero_index);
    return library.services.submit(
        call, [op, row_begin = call.at<const I>(op.row_begin), row = call.at<I>(op.row)] {
          for (std::int64_t i = 0; i < op.rows; ++i) {
            const auto [begin, end] = row_range(row_begin, i, op.nonzeros);
            std::fill(row + begin, row + end, static_cast<I>(i));
          }
        });
  });
}

Result<void> run(const sparse::Coo2Csr& op, const Call& call, Sparse& library) {
  return with_index(op.dtype, [&](auto zero_index) {
    using I = decltype(zero_index);
    return library.services.submit(
        call, [op, row = call.at<const I>(op.row), row_begin = call.at<I>(op.row_begin)] {
          std::fill_n(row_begin, op.rows + 1, I{0});
          for (std::int64_t k = 0; k < op.nonzeros; ++k) {
            const auto i = static_cast<std::int64_t>(row[k]);
            if (i >= 0 && i < op.rows) ++row_begin[i + 1];
          }
          std::partial_sum(row_begin, row_begin + op.rows + 1, row_begin);
        });
  });
}

Result<void> run(const sparse::CooSort& op, const Call& call, Sparse& library) {
  return with_number(op.dtype, [&](auto zero) {
    return with_index(op.index_dtype, [&](auto zero_index) {
      using T = decltype(zero);
      using I = decltype(zero_index);
      return library.services.submit(
          call,
          [op, row = call.at<const I>(op.row), column = call.at<const I>(op.column),
           value = if_present<const T>(op.value, call), sorted_row = call.at<I>(op.sorted_row),
           sorted_column = call.at<I>(op.sorted_column),
           sorted_value = if_present<T>(op.sorted_value, call),
           permutation = if_present<I>(op.permutation, call)] {
            auto place = numbers_up_to(op.nonzeros);
            const bool by_row = op.by == sparse::SortBy::row;
            const I* const first = by_row ? row : column;
            const I* const second = by_row ? column : row;
            std::stable_sort(place.begin(), place.end(), [&](std::int64_t a, std::int64_t b) {
              return first[a] != first[b] ? first[a] < first[b] : second[a] < second[b];
            });
            permute(place, row, sorted_row);
            permute(place, column, sorted_column);
            permute(place, value, sorted_value);
            write_permutation(place, permutation);
          });
    });
  });
}

Result<void> run(const sparse::CsrSort& op, const Call& call, Sparse& library) {
  return with_number(op.dtype, [&](auto zero) {
    return with_index(op.index_dtype, [&](auto zero_index) {
      using T = decltype(zero);
      using I = decltype(zero_index);
      return library.services.submit(call, [op, row_begin = call.at<const I>(op.row_begin),
                                            column = call.at<const I>(op.column),
                                            value = if_present<const T>(op.value, call),
                                            sorted_column = call.at<I>(op.sorted_column),
                                            sorted_value = if_present<T>(op.sorted_value, call),
                                            permutation = if_present<I>(op.permutation, call)] {
        auto place = numbers_up_to(op.nonzeros);
        for (std::int64_t i = 0; i < op.rows; ++i) {
          const auto [begin, end] = row_range(row_begin, i, op.nonzeros);
          std::stable_sort(place.begin() + begin, place.begin() + end,
                           [&](std::int64_t a, std::int64_t b) { return column[a] < column[b]; });
        }
        permute(place, column, sorted_column);
        permute(place, value, sorted_value);
        write_permutation(place, permutation);
      });
    });
  });
}

TROUPE_HANDLERS(Sparse)

}  // namespace troupe::host::cpu
