#include "lib/dnn/rnn/cpu.hpp"

#include <cblas.h>

#include <algorithm>
#include <climits>
#include <cmath>

#include "common/core/extremes.hpp"
#include "common/core/narrow.hpp"

/// Arrays of all steps go by time, then by sequence: what one step computes lies together.
namespace troupe::dnn {
namespace rnn {
namespace {

using Reals = std::vector<float>;
std::size_t size(std::int64_t count) {
  return static_cast<std::size_t>(count);
}

/// Calls visit(T{}) for the dtype of a network.
template <class Visit>
void with_narrow_type(DType dtype, const Visit& visit) {
  switch (dtype) {
    case DType::f16: return visit(Half{});
    case DType::bf16: return visit(BFloat16{});
    default: return visit(float{});  // check() lets no other one pass
  }
}
Reals widened(DType dtype, const std::byte* from, std::int64_t count) {
  Reals to(size(count));
  if (from == nullptr) return to;
  with_narrow_type(dtype, [&]<class T>(T) {
    std::transform(reinterpret_cast<const T*>(from), reinterpret_cast<const T*>(from) + count,
                   to.begin(), [](T value) { return to_float(value); });
  });
  return to;
}
void narrow(DType dtype, const Reals& from, std::byte* to) {
  if (to == nullptr) return;
  with_narrow_type(dtype, [&]<class T>(T) {
    std::transform(from.begin(), from.end(), reinterpret_cast<T*>(to),
                   [](float value) { return from_float<T>(value); });
  });
}

/// c (m x n) = or += op(a) op(b), all row-major and packed; k is what is summed over.
struct Extents {
  std::int64_t m = 0, n = 0, k = 0;
};
enum class Into : std::uint8_t { set, add };
void multiply(const Extents& of, const float* a, CBLAS_TRANSPOSE op_a, const float* b,
              CBLAS_TRANSPOSE op_b, float* c, Into into) {
  const auto m = static_cast<int>(of.m), n = static_cast<int>(of.n), k = static_cast<int>(of.k);
  cblas_sgemm(CblasRowMajor, op_a, op_b, m, n, k, 1, a, op_a == CblasNoTrans ? k : m, b,
              op_b == CblasNoTrans ? n : k, into == Into::add ? 1.0f : 0.0f, c, n);
}

float sigmoid(float x) {
  return 1 / (1 + std::exp(-x));
}

/// What one direction of one layer leaves in the reserve, for each step and sequence.
struct Kept {
  float* gates;   ///< their values
  float* inner;   ///< lstm: c; gru: R h' + bR of gate n; other cells do not use it
  float* h;       ///< 0 behind the end of a sequence
  float* dinput;  ///< gradients of W x + bW, of all gates; 0 behind the end of a sequence
  float* dstate;  ///< those of R h' + bR; they are the same but for gate n of gru
};

/// A network and its reserve.
class Network {
 public:
  Network(const RnnWork& work, float* reserve)
      : work_(work),
        shape_(work.shape),
        rows_(shape_.time * shape_.batch),
        hidden_(shape_.hidden),
        gates_(shape_.gates()),
        wide_(gates_ * hidden_),
        reserve_(reserve) {}

  void forward();
  void backward_data();
  void backward_weights();

 private:
  [[nodiscard]] Kept kept(std::uint32_t layer, std::uint32_t direction) const;
  [[nodiscard]] bool lasts(std::int64_t t, std::int64_t b) const {
    return t < work_.lengths[size(b)];
  }
  /// The step before t in a direction; the first has none: -1.
  [[nodiscard]] std::int64_t before(std::uint32_t direction, std::int64_t t, std::int64_t b) const {
    if (direction == 0) return t - 1;
    return t + 1 < work_.lengths[size(b)] ? t + 1 : -1;
  }
  /// By sequence, then by time, to by time and then by sequence, and back. What is behind the ends
  /// is 0.
  [[nodiscard]] Reals by_time(const Reals& from, std::int64_t elements) const;
  [[nodiscard]] Reals by_sequence(const Reals& from, std::int64_t elements) const;
  /// What a layer reads: x, or what the layer below makes.
  [[nodiscard]] Reals input_of(std::uint32_t layer) const;
  /// Where h of a layer and direction stands in a state; c stands h_elements() behind it.
  [[nodiscard]] std::int64_t state_offset(std::uint32_t layer, std::uint32_t direction) const {
    return (std::int64_t{layer} * shape_.directions + direction) * shape_.batch * hidden_;
  }
  [[nodiscard]] const float* bias(const Reals& w, std::uint32_t layer, std::uint32_t direction,
                                  bool recurrent) const {
    return shape_.biases == 0
               ? nullptr
               : w.data() + rnn_bias_place(shape_, {layer, direction, 0, recurrent}).offset;
  }
  void scan(std::uint32_t layer, std::uint32_t direction, const Reals& w, const Reals& input,
            Reals& state);
  void scan_back(std::uint32_t layer, std::uint32_t direction, const Reals& w, const Reals& initial,
                 const Reals& dmade, Reals& dstate);
  /// The values of one sequence at one step. `sums`: R h' + bR of all gates; `h` and `c` are those
  /// of the step before, and become those of this one.
  void step(const Kept& at, std::int64_t row, const float* sums, float* h, float* c) const;
  /// Its gradients. dh and dc are those of this step's h and c; they become what is known of those
  /// of the step before, without what goes through R. `h` and `c`: of the step before.
  void step_back(const Kept& at, std::int64_t row, const float* h, const float* c, float* dh,
                 float* dc) const;

  const RnnWork& work_;
  RnnShape shape_;
  std::int64_t rows_, hidden_, gates_, wide_;
  float* reserve_;
};

Kept Network::kept(std::uint32_t layer, std::uint32_t direction) const {
  const auto of_one = rows_ * (3 * wide_ + 2 * hidden_);
  float* const begin = reserve_ + (std::int64_t{layer} * shape_.directions + direction) * of_one;
  float* const inner = begin + rows_ * wide_;
  float* const dinput = inner + 2 * rows_ * hidden_;
  return {begin, inner, inner + rows_ * hidden_, dinput, dinput + rows_ * wide_};
}

Reals Network::by_time(const Reals& from, std::int64_t elements) const {
  Reals to(from.size());
  for (std::int64_t b = 0; b < shape_.batch; ++b) {
    for (std::int64_t t = 0; t < work_.lengths[size(b)]; ++t)
      std::copy_n(from.begin() + (b * shape_.time + t) * elements, elements,
                  to.begin() + (t * shape_.batch + b) * elements);
  }
  return to;
}
Reals Network::by_sequence(const Reals& from, std::int64_t elements) const {
  Reals to(from.size());
  for (std::int64_t b = 0; b < shape_.batch; ++b) {
    for (std::int64_t t = 0; t < work_.lengths[size(b)]; ++t)
      std::copy_n(from.begin() + (t * shape_.batch + b) * elements, elements,
                  to.begin() + (b * shape_.time + t) * elements);
  }
  return to;
}

Reals Network::input_of(std::uint32_t layer) const {
  if (layer == 0)
    return by_time(widened(work_.dtype, work_.memory.x, shape_.x_elements()), shape_.input);
  const auto elements = shape_.directions * hidden_;
  Reals input(size(rows_ * elements));
  for (std::uint32_t direction = 0; direction < shape_.directions; ++direction) {
    const auto* const h = kept(layer - 1, direction).h;
    for (std::int64_t row = 0; row < rows_; ++row)
      std::copy_n(h + row * hidden_, hidden_, input.begin() + row * elements + direction * hidden_);
  }
  return input;
}

void Network::step(const Kept& at, std::int64_t row, const float* sums, float* h, float* c) const {
  float* const gates = at.gates + row * wide_;  // W x + bW before, the gates' values behind
  float* const inner = at.inner + row * hidden_;
  for (std::int64_t j = 0; j < hidden_; ++j) {
    const auto gate = [&](std::int64_t g) -> float& { return gates[g * hidden_ + j]; };
    const auto sum = [&](std::int64_t g) { return gate(g) + sums[g * hidden_ + j]; };
    switch (shape_.cell) {
      case RnnCell::relu: h[j] = gate(0) = larger(sum(0), 0.0f); break;
      case RnnCell::tanh: h[j] = gate(0) = std::tanh(sum(0)); break;
      case RnnCell::lstm:
        for (const int g : {0, 1, 3}) gate(g) = sigmoid(sum(g));
        gate(2) = std::tanh(sum(2));
        inner[j] = c[j] = gate(1) * c[j] + gate(0) * gate(2);
        h[j] = gate(3) * std::tanh(c[j]);
        break;
      case RnnCell::gru:
        for (const int g : {0, 1}) gate(g) = sigmoid(sum(g));
        inner[j] = sums[2 * hidden_ + j];
        gate(2) = std::tanh(gate(2) + gate(0) * inner[j]);
        h[j] = (1 - gate(1)) * gate(2) + gate(1) * h[j];
        break;
    }
  }
  std::copy_n(h, hidden_, at.h + row * hidden_);
}

void Network::step_back(const Kept& at, std::int64_t row, const float* h, const float* c, float* dh,
                        float* dc) const {
  const float* const gates = at.gates + row * wide_;
  const float* const inner = at.inner + row * hidden_;
  float* const dinput = at.dinput + row * wide_;
  float* const dstate = at.dstate + row * wide_;
  for (std::int64_t j = 0; j < hidden_; ++j) {
    const auto gate = [&](std::int64_t g) { return gates[g * hidden_ + j]; };
    const auto put = [&](std::int64_t g, float gradient) {
      dinput[g * hidden_ + j] = dstate[g * hidden_ + j] = gradient;
    };
    const auto of_sigmoid = [](float value) { return value * (1 - value); };
    const auto of_tanh = [](float value) { return 1 - value * value; };
    switch (shape_.cell) {
      case RnnCell::relu:
        put(0, gate(0) > 0 ? dh[j] : 0.0f);
        dh[j] = 0;
        break;
      case RnnCell::tanh:
        put(0, dh[j] * of_tanh(gate(0)));
        dh[j] = 0;
        break;
      case RnnCell::lstm: {
        const float bent = std::tanh(inner[j]);
        const float dinner = dc[j] + dh[j] * gate(3) * of_tanh(bent);
        put(0, dinner * gate(2) * of_sigmoid(gate(0)));
        put(1, dinner * c[j] * of_sigmoid(gate(1)));
        put(2, dinner * gate(0) * of_tanh(gate(2)));
        put(3, dh[j] * bent * of_sigmoid(gate(3)));
        dc[j] = dinner * gate(1);
        dh[j] = 0;
        break;
      }
      case RnnCell::gru: {
        const float dn = dh[j] * (1 - gate(1)) * of_tanh(gate(2));
        put(0, dn * inner[j] * of_sigmoid(gate(0)));
        put(1, dh[j] * (h[j] - gate(2)) * of_sigmoid(gate(1)));
        put(2, dn);
        dstate[2 * hidden_ + j] = dn * gate(0);
        dh[j] *= gate(1);
        break;
      }
    }
  }
}

void Network::scan(std::uint32_t layer, std::uint32_t direction, const Reals& w, const Reals& input,
                   Reals& state) {
  const auto at = kept(layer, direction);
  const float* const matrix = w.data() + rnn_matrix_place(shape_, {layer, direction}).offset;
  const float* const recurrent =
      w.data() + rnn_matrix_place(shape_, {layer, direction, 0, true}).offset;
  multiply({rows_, wide_, shape_.reads(layer)}, input.data(), CblasNoTrans, matrix, CblasTrans,
           at.gates, Into::set);
  if (const auto* const added = bias(w, layer, direction, false); added != nullptr) {
    for (std::int64_t i = 0; i < rows_ * wide_; ++i) at.gates[i] += added[i % wide_];
  }
  std::fill_n(at.h, rows_ * hidden_, 0.0f);
  const auto* const added = bias(w, layer, direction, true);
  float* const h = state.data() + state_offset(layer, direction);
  float* const c = shape_.cell == RnnCell::lstm ? h + shape_.h_elements() : nullptr;
  Reals sums(size(shape_.batch * wide_));
  for (std::int64_t i = 0; i < shape_.time; ++i) {
    const auto t = direction == 0 ? i : shape_.time - 1 - i;
    multiply({shape_.batch, wide_, hidden_}, h, CblasNoTrans, recurrent, CblasTrans, sums.data(),
             Into::set);
    for (std::int64_t b = 0; b < shape_.batch; ++b) {
      if (!lasts(t, b)) continue;
      float* const its_sums = sums.data() + b * wide_;
      for (std::int64_t j = 0; added != nullptr && j < wide_; ++j) its_sums[j] += added[j];
      step(at, t * shape_.batch + b, its_sums, h + b * hidden_,
           c == nullptr ? nullptr : c + b * hidden_);
    }
  }
}

void Network::scan_back(std::uint32_t layer, std::uint32_t direction, const Reals& w,
                        const Reals& initial, const Reals& dmade, Reals& dstate) {
  const auto at = kept(layer, direction);
  std::fill_n(at.dinput, 2 * rows_ * wide_, 0.0f);  // dstate too, which lies behind it
  const float* const recurrent =
      w.data() + rnn_matrix_place(shape_, {layer, direction, 0, true}).offset;
  const bool has_c = shape_.cell == RnnCell::lstm;
  const auto offset = state_offset(layer, direction);
  float* const dh = dstate.data() + offset;
  for (std::int64_t i = 0; i < shape_.time; ++i) {
    const auto t = direction == 0 ? shape_.time - 1 - i : i;
    for (std::int64_t b = 0; b < shape_.batch; ++b) {
      if (!lasts(t, b)) continue;
      const auto row = t * shape_.batch + b;
      const auto previous = before(direction, t, b);
      const auto of_previous = [&](const float* kept_values, std::int64_t place) {
        return previous < 0 ? initial.data() + place + b * hidden_
                            : kept_values + (previous * shape_.batch + b) * hidden_;
      };
      float* const its_dh = dh + b * hidden_;
      const float* const made = dmade.data() + (row * shape_.directions + direction) * hidden_;
      for (std::int64_t j = 0; j < hidden_; ++j) its_dh[j] += made[j];
      step_back(at, row, of_previous(at.h, offset),
                has_c ? of_previous(at.inner, offset + shape_.h_elements()) : nullptr, its_dh,
                has_c ? its_dh + shape_.h_elements() : nullptr);
    }
    multiply({shape_.batch, hidden_, wide_}, at.dstate + t * shape_.batch * wide_, CblasNoTrans,
             recurrent, CblasNoTrans, dh, Into::add);
  }
}

void Network::forward() {
  const auto& memory = work_.memory;
  const auto w = widened(work_.dtype, memory.w, shape_.w_elements());
  auto state = widened(work_.dtype, memory.initial, shape_.state_elements());
  for (std::uint32_t layer = 0; layer < shape_.layers; ++layer) {
    const auto input = input_of(layer);
    for (std::uint32_t direction = 0; direction < shape_.directions; ++direction)
      scan(layer, direction, w, input, state);
  }
  narrow(work_.dtype, by_sequence(input_of(shape_.layers), shape_.directions * hidden_), memory.y);
  narrow(work_.dtype, state, memory.final);
}

void Network::backward_data() {
  const auto& memory = work_.memory;
  const auto w = widened(work_.dtype, memory.w, shape_.w_elements());
  const auto initial = widened(work_.dtype, memory.initial, shape_.state_elements());
  auto dstate = widened(work_.dtype, memory.dfinal, shape_.state_elements());
  auto dmade =
      by_time(widened(work_.dtype, memory.dy, shape_.y_elements()), shape_.directions * hidden_);
  for (std::uint32_t layer = shape_.layers; layer-- > 0;) {
    Reals dinput(size(rows_ * shape_.reads(layer)));
    for (std::uint32_t direction = 0; direction < shape_.directions; ++direction) {
      scan_back(layer, direction, w, initial, dmade, dstate);
      multiply({rows_, shape_.reads(layer), wide_}, kept(layer, direction).dinput, CblasNoTrans,
               w.data() + rnn_matrix_place(shape_, {layer, direction}).offset, CblasNoTrans,
               dinput.data(), Into::add);
    }
    dmade = std::move(dinput);
  }
  narrow(work_.dtype, by_sequence(dmade, shape_.input), memory.dx);
  narrow(work_.dtype, dstate, memory.dinitial);
}

void Network::backward_weights() {
  const auto initial = widened(work_.dtype, work_.memory.initial, shape_.state_elements());
  auto dw = widened(work_.dtype, work_.memory.dw, shape_.w_elements());
  for (std::uint32_t layer = 0; layer < shape_.layers; ++layer) {
    const auto input = input_of(layer);
    for (std::uint32_t direction = 0; direction < shape_.directions; ++direction) {
      const auto at = kept(layer, direction);
      Reals h(size(rows_ * hidden_));  // of the steps before
      for (std::int64_t row = 0; row < rows_; ++row) {
        const auto t = row / shape_.batch, b = row % shape_.batch;
        if (!lasts(t, b)) continue;
        const auto previous = before(direction, t, b);
        std::copy_n(previous < 0 ? initial.data() + state_offset(layer, direction) + b * hidden_
                                 : at.h + (previous * shape_.batch + b) * hidden_,
                    hidden_, h.begin() + row * hidden_);
      }
      multiply({wide_, shape_.reads(layer), rows_}, at.dinput, CblasTrans, input.data(),
               CblasNoTrans, dw.data() + rnn_matrix_place(shape_, {layer, direction}).offset,
               Into::add);
      multiply({wide_, hidden_, rows_}, at.dstate, CblasTrans, h.data(), CblasNoTrans,
               dw.data() + rnn_matrix_place(shape_, {layer, direction, 0, true}).offset, Into::add);
      if (shape_.biases == 0) continue;
      float* const dbias = dw.data() + rnn_bias_place(shape_, {layer, direction}).offset;
      for (std::int64_t i = 0; i < rows_ * wide_; ++i) {
        dbias[i % wide_] += at.dinput[i];
        dbias[wide_ + i % wide_] += at.dstate[i];
      }
    }
  }
  narrow(work_.dtype, dw, work_.memory.dw);
}

}  // namespace
}  // namespace rnn

std::int64_t rnn_reserve_bytes(const RnnShape& shape) noexcept {
  return shape.layers * shape.directions * shape.time * shape.batch * (3 * shape.gates() + 2) *
         shape.hidden * static_cast<std::int64_t>(sizeof(float));
}

bool can_count(const RnnShape& shape) noexcept {
  return shape.time * shape.batch <= INT_MAX && shape.gates() * shape.hidden <= INT_MAX &&
         std::max(shape.reads(0), shape.reads(1)) <= INT_MAX;
}

void run_rnn(const RnnWork& work) {
  std::vector<float> own;
  if (work.memory.reserve == nullptr)
    own.resize(static_cast<std::size_t>(rnn_reserve_bytes(work.shape)) / sizeof(float));
  rnn::Network(work, own.empty() ? work.memory.reserve : own.data()).forward();
}
void run_rnn_backward_data(const RnnWork& work) {
  rnn::Network(work, work.memory.reserve).backward_data();
}
void run_rnn_backward_weights(const RnnWork& work) {
  rnn::Network(work, work.memory.reserve).backward_weights();
}

}  // namespace troupe::dnn
