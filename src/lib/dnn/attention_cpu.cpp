#include "lib/dnn/attention_cpu.hpp"

#include <cblas.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "common/core/narrow.hpp"

namespace troupe::dnn {
namespace {

/// Queries at a time: their scores stay in the caches.
constexpr std::int64_t kRows = 64;

template <class T>
std::vector<float> widened(const T* from, std::int64_t count) {
  std::vector<float> to(static_cast<std::size_t>(count));
  std::transform(from, from + count, to.begin(), [](T x) { return to_float(x); });
  return to;
}

/// Turns the first `count` scores into exp(score - maximum). Returns their sum and the maximum.
struct Exponentials {
  float sum = 0, maximum = 0;
};
Exponentials exponentiate(float* scores, std::int64_t count) {
  Exponentials result;
  result.maximum = *std::max_element(scores, scores + count);
  for (std::int64_t j = 0; j < count; ++j) {
    scores[j] = std::exp(scores[j] - result.maximum);
    result.sum += scores[j];
  }
  return result;
}

}  // namespace

bool can_attend(const Attention& op) noexcept {
  return std::max({op.heads_q * op.dim_qk, op.heads_q * op.dim_v, op.sequence_kv}) <= INT_MAX;
}

template <class T>
void attend(const Attention& op, const AttentionOperands<T>& operands) {
  const auto keys = op.sequence_kv;
  const auto q_stride = op.heads_q * op.dim_qk, k_stride = op.heads_kv * op.dim_qk;
  const auto v_stride = op.heads_kv * op.dim_v, o_stride = op.heads_q * op.dim_v;
  std::vector<float> scores(static_cast<std::size_t>(kRows * keys));
  std::vector<float> sums(static_cast<std::size_t>(kRows * op.dim_v));
  std::vector<float> factors(static_cast<std::size_t>(kRows));
  for (std::int64_t b = 0; b < op.batch; ++b) {
    const auto q = widened(operands.q + b * op.sequence_q * q_stride, op.sequence_q * q_stride);
    const auto k = widened(operands.k + b * keys * k_stride, keys * k_stride);
    const auto v = widened(operands.v + b * keys * v_stride, keys * v_stride);
    T* const o = operands.o + b * op.sequence_q * o_stride;
    for (std::int64_t h = 0; h < op.heads_q; ++h) {
      const auto of_keys = h / (op.heads_q / op.heads_kv);
      for (std::int64_t first = 0; first < op.sequence_q; first += kRows) {
        const auto rows = std::min(kRows, op.sequence_q - first);
        const auto seen = [&](std::int64_t row) {
          return op.mask == Mask::causal ? std::min(first + row + 1, keys) : keys;
        };
        const auto columns = seen(rows - 1);
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, static_cast<int>(rows),
                    static_cast<int>(columns), static_cast<int>(op.dim_qk), op.scale,
                    q.data() + first * q_stride + h * op.dim_qk, static_cast<int>(q_stride),
                    k.data() + of_keys * op.dim_qk, static_cast<int>(k_stride), 0, scores.data(),
                    static_cast<int>(columns));
        for (std::int64_t i = 0; i < rows; ++i) {
          float* const row = scores.data() + i * columns;
          const auto exponentials = exponentiate(row, seen(i));
          std::fill(row + seen(i), row + columns, 0.0f);
          factors[static_cast<std::size_t>(i)] = exponentials.sum;
          if (operands.stats != nullptr) {
            operands.stats[(b * op.heads_q + h) * op.sequence_q + first + i] =
                exponentials.maximum + std::log(exponentials.sum);
          }
        }
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, static_cast<int>(rows),
                    static_cast<int>(op.dim_v), static_cast<int>(columns), 1, scores.data(),
                    static_cast<int>(columns), v.data() + of_keys * op.dim_v,
                    static_cast<int>(v_stride), 0, sums.data(), static_cast<int>(op.dim_v));
        for (std::int64_t i = 0; i < rows; ++i) {
          T* const row = o + (first + i) * o_stride + h * op.dim_v;
          for (std::int64_t d = 0; d < op.dim_v; ++d) {
            row[d] = from_float<T>(sums[static_cast<std::size_t>(i * op.dim_v + d)] /
                                   factors[static_cast<std::size_t>(i)]);
          }
        }
      }
    }
  }
}

template void attend(const Attention&, const AttentionOperands<Half>&);
template void attend(const Attention&, const AttentionOperands<BFloat16>&);

}  // namespace troupe::dnn
