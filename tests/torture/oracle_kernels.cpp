#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "catalogue/values.hpp"
#include "oracle.hpp"

// What the operations of libraries come to.

namespace troupe::torture {

void Oracle::product(const Operation& op) {
  const auto &a = op.at[0], &b = op.at[1], &c = op.at[2];
  const bool matrix = op.kind == Kind::gemm;
  // gemv: y = op(A) x with A m x n; as a product, op(A) has `rows` rows and `inner` columns.
  const auto rows = matrix ? op.m : op.transpose_a ? op.n : op.m;
  const auto inner = matrix ? op.k : op.transpose_a ? op.m : op.n;
  const auto columns = matrix ? op.n : 1;
  std::vector<double> result;
  for (std::int64_t j = 0; j < columns; ++j) {
    for (std::int64_t i = 0; i < rows; ++i) {
      double sum = 0;
      for (std::int64_t l = 0; l < inner; ++l) {
        const auto from_a = op.transpose_a ? get(a, l + i * inner) : get(a, i + l * rows);
        sum += from_a * (op.transpose_b ? get(b, j + l * columns) : get(b, l + j * inner));
      }
      result.push_back(op.alpha * sum + op.beta * get(c, i + j * rows));
    }
  }
  for (std::int64_t i = 0; i < std::ssize(result); ++i)
    put(c, i, result[static_cast<std::size_t>(i)]);
}

void Oracle::special_product(const Operation& op) {
  const auto &a = op.at[0], &b = op.at[1], &c = op.at[2];
  const bool upper = op.transpose_b;
  const auto rows = op.kind == Kind::syrk ? op.n : op.m;
  const auto factor = [&](std::int64_t i, std::int64_t l) {
    return op.transpose_a ? get(a, l + i * op.m) : get(a, i + l * op.n);
  };
  std::vector<double> result;
  for (std::int64_t j = 0; j < op.n; ++j) {
    for (std::int64_t i = 0; i < rows; ++i) {
      const auto before = get(c, i + j * rows);
      double sum = 0;
      switch (op.kind) {
        case Kind::ger: sum = get(a, i) * get(b, j); break;
        case Kind::trmm:
          for (auto l = upper ? i : 0; l < (upper ? op.m : i + 1); ++l)
            sum += get(a, i + l * op.m) * get(b, l + j * op.m);
          break;
        default:
          for (std::int64_t l = 0; l < op.m; ++l) sum += factor(i, l) * factor(j, l);
      }
      const bool stays = op.kind == Kind::syrk && (upper ? i > j : i < j);
      result.push_back(stays ? before : op.alpha * sum + op.beta * before);
    }
  }
  for (std::int64_t i = 0; i < std::ssize(result); ++i)
    put(c, i, result[static_cast<std::size_t>(i)]);
}

void Oracle::extreme(const Operation& op) {
  std::int64_t found = 0;
  for (std::int64_t i = 1; i < op.at[0].count; ++i) {
    const auto value = std::abs(get(op.at[0], i)), so_far = std::abs(get(op.at[0], found));
    if (op.transpose_a ? value < so_far : value > so_far) found = i;
  }
  put(op.at[1], 0, static_cast<double>(found));
}

/// The lower half, column by column. The upper half stays.
void Oracle::factorise(const Operation& op) {
  const auto& a = op.at[0];
  const auto n = op.m;
  const auto element = [&](std::int64_t i, std::int64_t j) { return get(a, j * n + i); };
  for (std::int64_t j = 0; j < n; ++j) {
    double diagonal = element(j, j);
    for (std::int64_t k = 0; k < j; ++k) diagonal -= element(j, k) * element(j, k);
    put(a, j * n + j, std::sqrt(diagonal));
    for (std::int64_t i = j + 1; i < n; ++i) {
      double sum = element(i, j);
      for (std::int64_t k = 0; k < j; ++k) sum -= element(i, k) * element(j, k);
      put(a, j * n + i, sum / element(j, j));
    }
  }
}

void Oracle::of_diagonal(const Operation& op) {
  auto values = diagonal_of(op);
  if (op.kind == Kind::gesvd) {
    for (auto& value : values) value = std::abs(value);
    std::sort(values.rbegin(), values.rend());
  } else if (op.kind == Kind::syevd) {
    std::sort(values.begin(), values.end());
  }
  for (std::int64_t i = 0; i < op.m; ++i) put(op.at[0], i, values[static_cast<std::size_t>(i)]);
}

/// Zeros are equal, whatever their sign, and keep their order.
void Oracle::sort(const Operation& op) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < op.at[0].count; ++i) values.push_back(get(op.at[0], i));
  std::stable_sort(values.begin(), values.end(),
                   [&](double a, double b) { return op.transpose_a ? a > b : a < b; });
  for (std::int64_t i = 0; i < op.at[1].count; ++i)
    put(op.at[1], i, values[static_cast<std::size_t>(i)]);
}

void Oracle::sparse(const Operation& op) {
  const auto &value = op.at[0], &x = op.at[1], &y = op.at[2], &begin = op.at[3], &column = op.at[4];
  const auto index = [this](const Slice& slice, std::int64_t i) { return index_at(slice, i); };
  if (op.kind == Kind::gather) {
    for (std::int64_t i = 0; i < begin.count; ++i) put(x, i, get(value, index(begin, i)));
    return;
  }
  for (std::int64_t row = 0; row < op.m; ++row) {
    double sum = 0;
    if (op.kind == Kind::spmv) {
      for (auto j = index(begin, row); j < index(begin, row + 1); ++j)
        sum += get(value, j) * get(x, index(column, j));
    } else {
      const auto slice = row / op.k;
      for (auto j = index(begin, slice) + row % op.k; j < index(begin, slice + 1); j += op.k)
        sum += get(value, j) * get(x, index(column, j));
    }
    put(y, row, op.alpha * sum + op.beta * get(y, row));
  }
}

/// The rows of A select rows of B, which are added up; the columns of a row of the result ascend.
/// Where there is no room for all of them, the row starts are written and nothing else.
void Oracle::multiply_sparse(const Operation& op) {
  const auto& [a, b, c, a_begin, a_column, b_begin, b_column, c_begin, c_column] = op.at;
  const auto has_room = value_of(op) <= c.count;
  std::int64_t stored = 0;
  put(c_begin, 0, 0);
  for (std::int64_t row = 0; row < op.m; ++row) {
    std::map<std::int64_t, double> sums;
    for (auto i = index_at(a_begin, row); i < index_at(a_begin, row + 1); ++i) {
      const auto k = index_at(a_column, i);
      for (auto j = index_at(b_begin, k); j < index_at(b_begin, k + 1); ++j)
        sums[index_at(b_column, j)] += get(a, i) * get(b, j);
    }
    for (const auto& [column, sum] : sums) {
      if (has_room) put(c, stored, sum), put(c_column, stored, static_cast<double>(column));
      ++stored;
    }
    put(c_begin, row + 1, static_cast<double>(stored));
  }
}

void Oracle::select(const Operation& op) {
  std::int64_t found = 0;
  for (std::int64_t i = 0; i < op.at[0].count; ++i) {
    if (get(op.at[0], i) == 0) continue;
    if (found < op.at[1].count) put(op.at[1], found, static_cast<double>(i));
    ++found;
  }
  for (; found < op.at[1].count; ++found) put(op.at[1], found, -1);
}

std::int64_t Oracle::value_of(const Operation& op) const {
  if (is_call(op.kind)) return 0;
  if (op.kind == Kind::factor_info) return op.n;
  if (op.kind == Kind::select) {
    std::int64_t found = 0;
    for (std::int64_t i = 0; i < op.at[0].count; ++i) found += get(op.at[0], i) != 0 ? 1 : 0;
    return found;
  }
  std::int64_t count = 0;
  for (std::int64_t row = 0; row < op.m; ++row) {
    std::set<std::int64_t> columns;
    for (auto i = index_at(op.at[3], row); i < index_at(op.at[3], row + 1); ++i) {
      const auto k = index_at(op.at[4], i);
      for (auto j = index_at(op.at[5], k); j < index_at(op.at[5], k + 1); ++j)
        columns.insert(index_at(op.at[6], j));
    }
    count += std::ssize(columns);
  }
  return count;
}

void Oracle::reduce_local(const Operation& op) {
  double value = get(op.at[0], 0);
  for (std::int64_t i = 1; i < op.at[0].count; ++i) {
    const auto next = get(op.at[0], i);
    value = op.reduce == ReduceOp::min   ? std::min(value, next)
            : op.reduce == ReduceOp::max ? std::max(value, next)
                                         : value + next;
  }
  put(op.at[1], 0, value);
}

void Oracle::scan(const Operation& op) {
  double sum = 0;
  for (std::int64_t i = 0; i < op.at[0].count; ++i) {
    const auto next = get(op.at[0], i);  // before it is written, for it may be in place
    put(op.at[1], i, op.transpose_a ? sum : sum + next);
    sum += next;
  }
}

std::vector<std::complex<double>> transformed(const Operation& op,
                                              const std::vector<std::complex<double>>& from,
                                              bool inverse) {
  const std::complex<double> quarters[] = {{1, 0}, {0, -1}, {-1, 0}, {0, 1}};
  // How many quarters of a turn belong to element j of the source and k of the result.
  const auto turns = [&](std::int64_t j, std::int64_t k) {
    std::int64_t sum = 0;
    for (const auto n : {op.k, op.n, op.m}) {
      sum += (j % n) * (k % n) * (4 / n);
      j /= n, k /= n;
    }
    return static_cast<std::size_t>((inverse ? 4 - sum % 4 : sum) % 4);
  };
  std::vector<std::complex<double>> result(from.size());
  for (std::size_t k = 0; k < from.size(); ++k) {
    for (std::size_t j = 0; j < from.size(); ++j)
      result[k] +=
          from[j] * quarters[turns(static_cast<std::int64_t>(j), static_cast<std::int64_t>(k))];
  }
  return result;
}

void Oracle::transform(const Operation& op) {
  const TransformShape shape(op);
  const auto &x = op.at[0], &y = op.at[1];
  const bool back = op.kind == Kind::transform_back;
  const auto stored = op.transpose_a || back ? shape.length : shape.stored;
  std::vector<std::vector<std::complex<double>>> results;
  for (std::int64_t first = 0; first < x.count; first += shape.length) {
    std::vector<std::complex<double>> from;
    for (std::int64_t i = 0; i < shape.length; ++i) from.push_back(get_complex(x, first + i));
    auto result = transformed(op, from, op.transpose_b);
    results.push_back(back ? transformed(op, result, true) : std::move(result));
  }
  std::int64_t place = 0;
  for (const auto& result : results) {
    for (std::int64_t i = 0; i < std::ssize(result); ++i) {
      // A real source has only the first half of the last dimension stored.
      const bool is_stored = stored == shape.length || i % shape.last <= shape.last / 2;
      if (is_stored) put_complex(y, place++, result[static_cast<std::size_t>(i)]);
    }
  }
}

void Oracle::convolve(const Operation& op) {
  const auto &x = op.at[0], &w = op.at[1], &bias = op.at[2], &y = op.at[3];
  const ConvolutionShape shape(op);
  const auto pixel = [&](std::int64_t row, std::int64_t column, std::int64_t channel) {
    const bool inside = row >= 0 && row < op.m && column >= 0 && column < op.m;
    return inside ? get(x, (row * op.m + column) * op.k + channel) : 0;
  };
  std::int64_t place = 0;
  for (std::int64_t p = 0; p < shape.out * shape.out; ++p) {
    const auto row = p / shape.out * op.peer - shape.padding,
               column = p % shape.out * op.peer - shape.padding;
    for (std::int64_t to = 0; to < op.k; ++to) {
      double sum = bias.present() ? get(bias, to) : 0;
      for (std::int64_t r = 0; r < op.n * op.n; ++r) {
        for (std::int64_t from = 0; from < op.k; ++from)
          sum += pixel(row + r / op.n, column + r % op.n, from) *
                 get(w, (to * op.n * op.n + r) * op.k + from);
      }
      put(y, place++, sum);
    }
  }
}

/// All keys have the same weight: there is one, or the scale is 0.
void Oracle::attend(const Operation& op) {
  for (std::int64_t query = 0; query < op.m; ++query) {
    for (std::int64_t i = 0; i < op.k; ++i) {
      double sum = 0;
      for (std::int64_t key = 0; key < op.n; ++key) sum += get(op.at[2], key * op.k + i);
      put(op.at[3], query * op.k + i, sum / static_cast<double>(op.n));
    }
  }
}

void Oracle::smooth(const Operation& op) {
  const auto& x = op.at[0];
  for (std::int64_t i = 0; i < x.count; ++i) {
    double sum = 0;
    for (auto j = std::max<std::int64_t>(i - 1, 0); j < std::min(i + 2, x.count); ++j)
      sum += get(x, j);
    put(op.at[1], i, sum);
  }
}

void Oracle::tally(const Operation& op) {
  const auto bins = op.at[1].count;
  for (std::int64_t i = 0; i < op.at[0].count; ++i) {
    const auto bin = (index_at(op.at[0], i) % bins + bins) % bins;
    put(op.at[1], bin, get(op.at[1], bin) + 1);
  }
}

std::vector<double> diagonal_of(const Operation& op) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < op.m; ++i) {
    const bool definite = i + 1 != op.n;
    values.push_back((definite ? 1 : -1) * static_cast<double>((op.data >> (4 * i) & 7) + 1));
  }
  return values;
}

}  // namespace troupe::torture
