#include <cblas.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "common/core/extremes.hpp"
#include "lib/dnn/attention/view.hpp"
#include "lib/dnn/graph/cpu.hpp"
#include "lib/dnn/graph/node_tensors.hpp"

/// Attention by BLAS, some rows of the scores at a time.
namespace troupe::dnn {
namespace {

/// Queries at a time: their scores stay in the caches.
constexpr std::int64_t kRows = 64;

/// A row-major matrix, and the elements from one row to the next.
struct Rows {
  const float* first = nullptr;
  std::int64_t stride = 0;
};

/// c = alpha * op(a) op(b) + beta * c, of m x n sums of k products each.
void multiply(CBLAS_TRANSPOSE op_a, CBLAS_TRANSPOSE op_b, std::int64_t m, std::int64_t n,
              std::int64_t k, float alpha, Rows a, Rows b, float beta, float* c,
              std::int64_t c_stride) {
  const auto number = [](std::int64_t extent) { return static_cast<int>(extent); };  // below 2^31
  cblas_sgemm(CblasRowMajor, op_a, op_b, number(m), number(n), number(k), alpha, a.first,
              number(a.stride), b.first, number(b.stride), beta, c, number(c_stride));
}

struct Range {
  std::int64_t first = 0, end = 0;
  [[nodiscard]] std::int64_t count() const noexcept { return end - first; }
};

/// Which keys the queries of one sequence see.
struct Band {
  std::int64_t queries, keys;  ///< that there are
  std::int64_t shift, left, right;

  [[nodiscard]] Range of(std::int64_t query) const {
    if (query >= queries) return {};
    const auto at = query + shift;
    return {left < 0 ? 0 : std::clamp<std::int64_t>(at - left + 1, 0, keys),
            right < 0 ? keys : std::clamp<std::int64_t>(at + right + 1, 0, keys)};
  }
  /// What any of these queries sees: neither bound moves back from one query to the next.
  [[nodiscard]] Range of(std::int64_t first, std::int64_t count) const {
    const auto last = std::min(first + count, queries) - 1;
    if (last < first) return {};
    return {of(first).first, of(last).end};
  }
};

/// Slopes of all heads; see AttentionRule::alibi.
std::vector<float> alibi_slopes(std::int64_t heads) {
  const auto power = std::bit_floor(static_cast<std::uint64_t>(heads));
  const auto n = static_cast<std::int64_t>(power);
  std::vector<float> slopes;
  for (std::int64_t h = 0; h < heads; ++h) {
    const auto exponent =
        h < n ? 8 * static_cast<double>(h + 1) : 4 * static_cast<double>(2 * (h - n) + 1);
    slopes.push_back(static_cast<float>(std::exp2(-exponent / static_cast<double>(n))));
  }
  return slopes;
}

/// The scores of a node, some rows of one head at a time.
class Scores {
 public:
  Scores(const AttentionView& view, Contents& contents, const float* k)
      : view_(view),
        q_(contents.of(view.q).data()),
        k_(k),
        scores_(static_cast<std::size_t>(std::min(kRows, view.queries()) * view.keys())) {
    if (view.bias != nullptr) {
      bias_ = contents.of(view.bias).data();
      bias_steps_ = row_major_steps(view.bias->extents);
    }
    if (view.alibi()) slopes_ = alibi_slopes(view.heads_q());
    if (view.length_q == nullptr) return;
    lengths_q_ = contents[view.length_q].integers;
    lengths_kv_ = contents[view.length_kv].integers;
  }

  [[nodiscard]] Band band(std::int64_t batch) const {
    Band band{view_.queries(), view_.keys(), 0, view_.left(), view_.right()};
    if (!lengths_q_.empty()) {
      const auto b = static_cast<std::size_t>(batch);
      band.queries = std::clamp<std::int64_t>(lengths_q_[b], 0, band.queries);
      band.keys = std::clamp<std::int64_t>(lengths_kv_[b], 0, band.keys);
    }
    if (view_.bottom_right()) band.shift = band.keys - band.queries;
    return band;
  }

  /// Rows of head h of the batch, from query `first` on, each with a score for each of the keys
  /// `seen`, whether or not its query sees it. Valid until the next call.
  float* compute(std::int64_t batch, std::int64_t h, std::int64_t first, std::int64_t rows,
                 Range seen) {
    const auto dim = view_.dim_qk(), columns = seen.count();
    multiply(CblasNoTrans, CblasTrans, rows, columns, dim, view_.scale,
             {q_ + ((batch * view_.heads_q() + h) * view_.queries() + first) * dim, dim},
             {k_ + (head_of_keys(batch, h) * view_.keys() + seen.first) * dim, dim}, 0,
             scores_.data(), columns);
    if (bias_ == nullptr && slopes_.empty()) return scores_.data();
    for (std::int64_t i = 0; i < rows; ++i) {
      float* const row = scores_.data() + i * columns;
      for (std::int64_t j = 0; j < columns; ++j) {
        if (bias_ != nullptr) row[j] += bias_[place_of_bias(batch, h, first + i, seen.first + j)];
        if (!slopes_.empty())
          row[j] +=
              slopes_[static_cast<std::size_t>(h)] * static_cast<float>(seen.first + j - first - i);
      }
    }
    return scores_.data();
  }

  [[nodiscard]] std::int64_t head_of_keys(std::int64_t batch, std::int64_t h) const {
    return batch * view_.heads_kv() + h / (view_.heads_q() / view_.heads_kv());
  }
  [[nodiscard]] std::int64_t place_of_bias(std::int64_t b, std::int64_t h, std::int64_t i,
                                           std::int64_t j) const {
    return bias_steps_[0] * b + bias_steps_[1] * h + bias_steps_[2] * i + bias_steps_[3] * j;
  }

 private:
  const AttentionView& view_;
  const float *q_, *k_, *bias_ = nullptr;
  Steps bias_steps_{};
  std::vector<float> slopes_;
  std::vector<std::int64_t> lengths_q_, lengths_kv_;
  std::vector<float> scores_;
};

/// Turns scores into exp(score - maximum). Returns their sum and the maximum, both of these and the
/// sink, which is minus infinity where there is none; a sum of 0 if all are minus infinity, NaN if
/// one is NaN.
struct Exponentials {
  float sum = 0, maximum = 0;
};
Exponentials exponentiate(float* scores, std::int64_t count, float sink) {
  Exponentials result{0, sink};
  for (std::int64_t j = 0; j < count; ++j) result.maximum = larger(result.maximum, scores[j]);
  if (result.maximum == -std::numeric_limits<float>::infinity()) {
    std::fill_n(scores, count, 0.0f);
    return result;
  }
  result.sum = std::exp(sink - result.maximum);
  for (std::int64_t j = 0; j < count; ++j) {
    scores[j] = std::exp(scores[j] - result.maximum);
    result.sum += scores[j];
  }
  return result;
}

/// Sets what is outside of a row's range to 0. `seen`: the range of all rows.
void clear_outside(float* row, Range own, Range seen) {
  std::fill(row, row + (own.first - seen.first), 0.0f);
  std::fill(row + (own.end - seen.first), row + seen.count(), 0.0f);
}

bool all_finite(const float* first, std::int64_t count) {
  return std::all_of(first, first + count, [](float value) { return std::isfinite(value); });
}

/// Calls visit(batch, h, first, rows, band, seen) for each block of rows in which a query sees a
/// key. Where is_finite(batch, h, band) does not hold, a block is one row, which sees all that it
/// is multiplied by: for 0, the weight of what is masked, times NaN would be NaN.
template <class IsFinite, class Visit>
void for_each_block(const AttentionView& view, const Scores& scores, const IsFinite& is_finite,
                    const Visit& visit) {
  for (std::int64_t b = 0; b < view.batch(); ++b) {
    const auto band = scores.band(b);
    for (std::int64_t h = 0; h < view.heads_q(); ++h) {
      const auto most = is_finite(b, h, band) ? kRows : 1;
      for (std::int64_t first = 0; first < band.queries; first += most) {
        const auto rows = std::min(most, band.queries - first);
        const auto seen = band.of(first, rows);
        if (seen.count() > 0) visit(b, h, first, rows, band, seen);
      }
    }
  }
}

/// k or v by batch, head, key and dim: as it is, or put together from pages. What would be in a
/// page that there is not is no number.
class Sequences {
 public:
  Sequences(const AttentionView& view, const TensorView* tensor, const TensorView* table,
            Contents& contents)
      : first_(contents.of(tensor).data()) {
    if (table == nullptr) return;
    const auto pages = tensor->extents[0], heads = tensor->extents[1], size = tensor->extents[2];
    const auto dim = tensor->extents[3], of_sequence = table->extents[2];
    const auto& places = contents[table].integers;
    gathered_.assign(static_cast<std::size_t>(view.batch() * heads * view.keys() * dim),
                     std::numeric_limits<float>::quiet_NaN());
    for (std::int64_t b = 0; b < view.batch(); ++b) {
      for (std::int64_t n = 0; n < of_sequence; ++n) {
        const auto page = places[static_cast<std::size_t>(b * of_sequence + n)];
        if (page < 0 || page >= pages) continue;
        for (std::int64_t h = 0; h < heads; ++h) {
          std::copy_n(first_ + (page * heads + h) * size * dim, size * dim,
                      gathered_.data() + ((b * heads + h) * view.keys() + n * size) * dim);
        }
      }
    }
    first_ = gathered_.data();
  }
  [[nodiscard]] const float* first() const noexcept { return first_; }

 private:
  std::vector<float> gathered_;
  const float* first_;
};

/// What dropout multiplies weights by.
class Dropout {
 public:
  Dropout(const AttentionView& view, Contents& contents)
      : view_(view),
        mask_(view.dropout_mask == nullptr ? nullptr : contents.of(view.dropout_mask).data()),
        scale_(1 / (1 - view.dropout)) {}

  /// Of the weight of key j in row `row_of_all`.
  [[nodiscard]] float factor(std::int64_t row_of_all, std::int64_t j) const {
    return mask_ == nullptr ? 1 : mask_[row_of_all * view_.keys() + j] * scale_;
  }
  [[nodiscard]] bool present() const noexcept { return mask_ != nullptr; }

 private:
  const AttentionView& view_;
  const float* mask_;
  float scale_;
};

}  // namespace

void compute_attention(const NodeView& node, Contents& contents) {
  const AttentionView view(node);
  const Sequences of_k(view, view.k, view.page_table_k, contents),
      of_v(view, view.v, view.page_table_v, contents);
  Scores scores(view, contents, of_k.first());
  const auto* const v = of_v.first();
  const Dropout dropout(view, contents);
  const auto sink_of =
      [sinks = view.sink == nullptr ? nullptr : contents.of(view.sink).data()](std::int64_t h) {
        return sinks == nullptr ? -std::numeric_limits<float>::infinity() : sinks[h];
      };
  const auto dim = view.dim_v();
  auto& o = contents.make(view.o);
  std::vector<float>* stats = nullptr;
  if (view.stats != nullptr) {
    stats = &contents.make(view.stats);
    std::fill(stats->begin(), stats->end(), -std::numeric_limits<float>::infinity());
    for (std::int64_t row = 0; row < view.batch() * view.heads_q(); ++row) {
      std::fill_n(stats->begin() + row * view.queries(), scores.band(row / view.heads_q()).queries,
                  sink_of(row % view.heads_q()));
    }
  }
  std::vector<float> sums(static_cast<std::size_t>(kRows));
  const auto is_finite = [&](auto b, auto h, const Band& band) {
    return all_finite(v + scores.head_of_keys(b, h) * view.keys() * dim, band.keys * dim);
  };
  const auto attend = [&](auto b, auto h, auto first, auto rows, const Band& band, Range seen) {
    float* const p = scores.compute(b, h, first, rows, seen);
    const auto row_of_all = (b * view.heads_q() + h) * view.queries() + first;
    for (std::int64_t i = 0; i < rows; ++i) {
      float* const row = p + i * seen.count();
      const auto own = band.of(first + i);
      const auto exponentials =
          exponentiate(row + (own.first - seen.first), own.count(), sink_of(h));
      clear_outside(row, own, seen);
      sums[static_cast<std::size_t>(i)] = exponentials.sum;
      if (stats != nullptr && exponentials.sum != 0) {
        (*stats)[static_cast<std::size_t>(row_of_all + i)] =
            exponentials.maximum + std::log(exponentials.sum);
      }
      for (std::int64_t j = 0; dropout.present() && j < seen.count(); ++j)
        row[j] *= dropout.factor(row_of_all + i, seen.first + j);
    }
    float* const out = o.data() + row_of_all * dim;
    multiply(CblasNoTrans, CblasNoTrans, rows, dim, seen.count(), 1, {p, seen.count()},
             {v + (scores.head_of_keys(b, h) * view.keys() + seen.first) * dim, dim}, 0, out, dim);
    for (std::int64_t i = 0; i < rows; ++i) {
      const auto sum = sums[static_cast<std::size_t>(i)];
      float* const row = out + i * dim;
      if (sum == 0)
        std::fill_n(row, dim, 0.0f);  // 0 times NaN is not
      else
        std::for_each(row, row + dim, [&](float& value) { value /= sum; });
    }
  };
  for_each_block(view, scores, is_finite, attend);
}

void compute_attention_backward(const NodeView& node, Contents& contents) {
  const AttentionView view(node);
  Scores scores(view, contents, contents.of(view.k).data());
  const Dropout dropout(view, contents);
  const auto *const q = contents.of(view.q).data(), *const k = contents.of(view.k).data(),
                    *const v = contents.of(view.v).data(), *const o = contents.of(view.o).data(),
                    *const d_o = contents.of(view.d_o).data();
  const auto& stats = contents.of(view.stats);
  auto &d_q = contents.make(view.d_q), &d_k = contents.make(view.d_k),
       &d_v = contents.make(view.d_v);
  std::vector<double> d_bias;  // may be the sum of many
  if (view.d_bias != nullptr) d_bias.resize(static_cast<std::size_t>(view.d_bias->volume()));
  const auto dim = view.dim_qk(), dim_v = view.dim_v();
  std::vector<float> d_scores(
      static_cast<std::size_t>(std::min(kRows, view.queries()) * view.keys()));
  const auto is_finite = [&](auto b, auto h, const Band& band) {
    const auto key = scores.head_of_keys(b, h) * view.keys(),
               query = (b * view.heads_q() + h) * view.queries();
    return all_finite(k + key * dim, band.keys * dim) &&
           all_finite(v + key * dim_v, band.keys * dim_v) &&
           all_finite(q + query * dim, band.queries * dim) &&
           all_finite(d_o + query * dim_v, band.queries * dim_v);
  };
  const auto go_back = [&](auto b, auto h, auto first, auto rows, const Band& band, Range seen) {
    const auto columns = seen.count();
    const auto row_of_all = (b * view.heads_q() + h) * view.queries() + first;
    const auto key_of_all = scores.head_of_keys(b, h) * view.keys() + seen.first;
    float* const p = scores.compute(b, h, first, rows, seen);
    const Rows d_o_rows{d_o + row_of_all * dim_v, dim_v};
    multiply(CblasNoTrans, CblasTrans, rows, columns, dim_v, 1, d_o_rows,
             {v + key_of_all * dim_v, dim_v}, 0, d_scores.data(), columns);
    for (std::int64_t i = 0; i < rows; ++i) {
      const auto own = band.of(first + i);
      const auto log_sum = stats[static_cast<std::size_t>(row_of_all + i)];
      const auto place = (row_of_all + i) * dim_v;
      float projected = 0;
      for (std::int64_t d = 0; d < dim_v; ++d) projected += d_o[place + d] * o[place + d];
      float *const row = p + i * columns, *const d_row = d_scores.data() + i * columns;
      const bool sees_none = log_sum == -std::numeric_limits<float>::infinity();
      for (auto j = own.first - seen.first; j < own.end - seen.first; ++j) {
        const auto factor = dropout.factor(row_of_all + i, seen.first + j);
        row[j] = sees_none ? 0 : std::exp(row[j] - log_sum);
        d_row[j] = sees_none ? 0 : row[j] * (factor * d_row[j] - projected);
        row[j] *= factor;
        if (!d_bias.empty()) {
          d_bias[static_cast<std::size_t>(scores.place_of_bias(b, h, first + i, seen.first + j))] +=
              d_row[j];
        }
      }
      clear_outside(row, own, seen);
      clear_outside(d_row, own, seen);
    }
    multiply(CblasTrans, CblasNoTrans, columns, dim_v, rows, 1, {p, columns}, d_o_rows, 1,
             d_v.data() + key_of_all * dim_v, dim_v);
    const Rows d_rows{d_scores.data(), columns};
    multiply(CblasNoTrans, CblasNoTrans, rows, dim, columns, view.scale, d_rows,
             {k + key_of_all * dim, dim}, 0, d_q.data() + row_of_all * dim, dim);
    multiply(CblasTrans, CblasNoTrans, columns, dim, rows, view.scale, d_rows,
             {q + row_of_all * dim, dim}, 1, d_k.data() + key_of_all * dim, dim);
  };
  for_each_block(view, scores, is_finite, go_back);
  if (view.d_bias == nullptr) return;
  auto& rounded = contents.make(view.d_bias);
  std::transform(d_bias.begin(), d_bias.end(), rounded.begin(),
                 [](double sum) { return static_cast<float>(sum); });
}

void compute_sink_backward(const NodeView& node, Contents& contents) {
  const auto in = of_node::named<of_node::SinkBackwardInputs>(node.inputs);
  const auto &sink = contents.of(in.sink), &o = contents.of(in.o), &d_o = contents.of(in.d_o),
             &stats = contents.of(in.stats);
  auto& made = contents.make(node.outputs[0]);
  const auto extents = in.o->extents;
  const auto heads = static_cast<std::size_t>(extents[1]),
             queries = static_cast<std::size_t>(extents[2]),
             dim = static_cast<std::size_t>(extents[3]);
  std::vector<double> sums(heads);
  for (std::size_t row = 0; row < stats.size(); ++row) {
    if (stats[row] == -std::numeric_limits<float>::infinity()) continue;
    const auto h = row / queries % heads;
    double projected = 0;
    for (std::size_t d = row * dim; d < (row + 1) * dim; ++d)
      projected += static_cast<double>(d_o[d]) * o[d];
    sums[h] -= std::exp(static_cast<double>(sink[h]) - stats[row]) * projected;
  }
  std::transform(sums.begin(), sums.end(), made.begin(),
                 [](double sum) { return static_cast<float>(sum); });
}

}  // namespace troupe::dnn
