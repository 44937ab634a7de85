#include <algorithm>
#include <vector>

#include "lib/sparse/common/rows_cpu.hpp"
#include "lib/sparse/cpu.hpp"

/// Transposed sparse matrices on the cpu engine.
namespace troupe::host::cpu {

Result<void> run(const sparse::Transposition& op, const Call& call, Sparse& library) {
  return with_number(op.dtype, [&](auto zero) {
    return with_index(op.index_dtype, [&](auto zero_index) {
      using T = decltype(zero);
      using I = decltype(zero_index);
      return library.services.submit(
          call,
          [op, row_begin = call.at<const I>(op.row_begin), column = call.at<const I>(op.column),
           value = call.at<const T>(op.value), t_row_begin = call.at<I>(op.t_row_begin),
           t_column = call.at<I>(op.t_column), t_value = call.at<T>(op.t_value)] {
            std::fill_n(t_row_begin, op.columns + 1, I{0});
            // Wrong columns and row_begins read and write nothing of others.
            const auto is_column = [&](I j) {
              return j >= 0 && static_cast<std::int64_t>(j) < op.columns;
            };
            for (std::int64_t i = 0; i < op.nonzeros; ++i)
              if (is_column(column[i])) ++t_row_begin[column[i] + 1];
            for (std::int64_t j = 0; j < op.columns; ++j) t_row_begin[j + 1] += t_row_begin[j];
            std::vector<std::int64_t> next(t_row_begin, t_row_begin + op.columns);
            for (std::int64_t row = 0; row < op.rows; ++row) {
              const auto elements = row_range(row_begin, row, op.nonzeros);
              for (auto i = elements.begin; i < elements.end; ++i) {
                if (!is_column(column[i])) continue;
                const auto at = next[static_cast<std::size_t>(column[i])]++;
                if (at >= op.nonzeros) continue;
                t_column[at] = static_cast<I>(row);
                t_value[at] = value[i];
              }
            }
          });
    });
  });
}

TROUPE_HANDLERS(Sparse)

}  // namespace troupe::host::cpu
