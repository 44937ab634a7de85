#include <troupe/lib/dnn.hpp>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>

#include "common/wire/checker.hpp"
#include "lib/dnn/common/tensor_checks.hpp"
#include "lib/dnn/rnn/lengths.hpp"

namespace troupe::dnn {
namespace {

/// As volume(), but sums of some thousand of them do not overflow.
std::int64_t capped(std::initializer_list<std::int64_t> extents) {
  return std::min(volume(extents), wire::Checker::kMaxCount + 1);
}

void add_shape(wire::Checker& checks, const RnnShape& shape) {
  const auto within = [](std::int64_t value) { return value >= 1 && value < kLimit; };
  checks.require(shape.cell <= RnnCell::gru, "unknown cell")
      .require(shape.biases == 0 || shape.biases == 2, "it has no or two biases")
      .require(shape.layers >= 1 && shape.layers <= RnnShape::kMaxLayers,
               "it has no layer, or more than 256")
      .require(shape.directions == 1 || shape.directions == 2, "it has one or two directions")
      .require(within(shape.batch), "the batch is not positive, or too large")
      .require(within(shape.time), "the time is not positive, or too large")
      .require(within(shape.input) && within(shape.hidden),
               "a number of elements is not positive, or too large");
}
void add_reserve(wire::Checker& checks, const Operand& reserve) {
  add_tensor(checks, "reserve", reserve, RnnSpace::kLeast, DType::u8);
}

template <class Op>
Result<void> check_lengths(const Op& op, const Parts& parts) {
  auto checks = wire::checker(op);
  if (parts.data.empty()) return checks.result();
  checks.require(
      parts.data.size() == static_cast<std::uint64_t>(op.shape.batch) * sizeof(std::int32_t),
      "it has not as many lengths as sequences");
  if (!checks.ok()) return checks.result();
  for (const auto length : rnn_lengths(op.shape, parts.data))
    checks.require(length >= 1 && length <= op.shape.time, "a length is not within 1 and the time");
  return checks.result();
}

std::uint64_t bytes_if_present(const Operand& operand, std::int64_t elements, DType dtype) {
  return operand.present() ? static_cast<std::uint64_t>(elements) * size_of(dtype) : 0;
}

}  // namespace

std::vector<std::int32_t> rnn_lengths(const RnnShape& shape, std::span<const std::byte> data) {
  std::vector<std::int32_t> lengths(static_cast<std::size_t>(shape.batch),
                                    static_cast<std::int32_t>(shape.time));
  if (!data.empty()) std::memcpy(lengths.data(), data.data(), data.size());
  return lengths;
}

std::int64_t RnnShape::gates() const noexcept {
  switch (cell) {
    case RnnCell::lstm: return 4;
    case RnnCell::gru: return 3;
    default: return 1;
  }
}
std::int64_t RnnShape::reads(std::uint32_t layer) const noexcept {
  return layer == 0 ? input : directions * hidden;
}
std::int64_t RnnShape::x_elements() const noexcept {
  return capped({batch, time, input});
}
std::int64_t RnnShape::y_elements() const noexcept {
  return capped({batch, time, directions, hidden});
}
std::int64_t RnnShape::h_elements() const noexcept {
  return capped({layers, directions, batch, hidden});
}
std::int64_t RnnShape::state_elements() const noexcept {
  return h_elements() * (cell == RnnCell::lstm ? 2 : 1);
}
std::int64_t RnnShape::w_elements() const noexcept {
  const auto of_a_layer = [&](std::int64_t columns) {
    return capped({directions, gates(), hidden, columns});
  };
  auto elements = capped({layers, of_a_layer(hidden + biases)}) + of_a_layer(reads(0));
  if (layers > 1) elements += capped({layers - 1, of_a_layer(reads(1))});
  return elements;
}

RnnPlace rnn_matrix_place(const RnnShape& shape, const RnnWeight& which) {
  const auto of_a_gate = [&](std::uint32_t layer) {
    return shape.hidden * (shape.reads(layer) + shape.hidden);
  };
  RnnPlace place{0, shape.hidden, which.recurrent ? shape.hidden : shape.reads(which.layer)};
  for (std::uint32_t layer = 0; layer < which.layer; ++layer)
    place.offset += shape.directions * shape.gates() * of_a_gate(layer);
  place.offset += which.direction * shape.gates() * of_a_gate(which.layer);
  if (which.recurrent) place.offset += shape.gates() * shape.hidden * shape.reads(which.layer);
  place.offset += which.gate * place.rows * place.columns;
  return place;
}

RnnPlace rnn_bias_place(const RnnShape& shape, const RnnWeight& which) {
  const auto pseudo_layers = std::int64_t{shape.layers} * shape.directions;
  const auto of_a_network = shape.gates() * shape.hidden;
  const auto network = std::int64_t{which.layer} * shape.directions + which.direction;
  return {shape.w_elements() - (pseudo_layers - network) * shape.biases * of_a_network +
              (which.recurrent ? of_a_network : 0) + which.gate * shape.hidden,
          shape.hidden, 1};
}

Result<void> Rnn::check() const {
  auto checks = wire::checker(*this);
  add_shape(checks, shape);
  if (!checks.ok()) return checks.result();
  add_tensor(checks, "x", x, shape.x_elements(), dtype);
  add_tensor(checks, "w", w, shape.w_elements(), dtype);
  add_tensor(checks, "y", y, shape.y_elements(), dtype);
  if (initial.present()) add_tensor(checks, "initial", initial, shape.state_elements(), dtype);
  if (final.present()) add_tensor(checks, "final", final, shape.state_elements(), dtype);
  if (reserve.present()) add_reserve(checks, reserve);
  return checks.result();
}
Result<void> Rnn::check_parts(const Parts& parts) const {
  return check_lengths(*this, parts);
}
std::uint64_t Rnn::written(const Operand& operand) const noexcept {
  if (&operand == &y) return bytes_if_present(y, shape.y_elements(), dtype);
  return &operand == &final ? bytes_if_present(final, shape.state_elements(), dtype) : 0;
}

Result<void> RnnBackwardData::check() const {
  auto checks = wire::checker(*this);
  add_shape(checks, shape);
  if (!checks.ok()) return checks.result();
  add_tensor(checks, "y", y, shape.y_elements(), dtype);
  add_tensor(checks, "dy", dy, shape.y_elements(), dtype);
  add_tensor(checks, "w", w, shape.w_elements(), dtype);
  add_tensor(checks, "dx", dx, shape.x_elements(), dtype);
  if (initial.present()) add_tensor(checks, "initial", initial, shape.state_elements(), dtype);
  if (dfinal.present()) add_tensor(checks, "dfinal", dfinal, shape.state_elements(), dtype);
  if (dinitial.present()) add_tensor(checks, "dinitial", dinitial, shape.state_elements(), dtype);
  add_reserve(checks, reserve);
  return checks.result();
}
Result<void> RnnBackwardData::check_parts(const Parts& parts) const {
  return check_lengths(*this, parts);
}
std::uint64_t RnnBackwardData::written(const Operand& operand) const noexcept {
  if (&operand == &dx) return bytes_if_present(dx, shape.x_elements(), dtype);
  return &operand == &dinitial ? bytes_if_present(dinitial, shape.state_elements(), dtype) : 0;
}

Result<void> RnnBackwardWeights::check() const {
  auto checks = wire::checker(*this);
  add_shape(checks, shape);
  if (!checks.ok()) return checks.result();
  add_tensor(checks, "x", x, shape.x_elements(), dtype);
  add_tensor(checks, "y", y, shape.y_elements(), dtype);
  add_tensor(checks, "dw", dw, shape.w_elements(), dtype);
  if (initial.present()) add_tensor(checks, "initial", initial, shape.state_elements(), dtype);
  add_reserve(checks, reserve);
  return checks.result();
}
Result<void> RnnBackwardWeights::check_parts(const Parts& parts) const {
  return check_lengths(*this, parts);
}

Result<void> RnnSpace::check() const {
  auto checks = wire::checker(*this);
  add_shape(checks, shape);
  if (!checks.ok()) return checks.result();
  for (const auto elements : {shape.x_elements(), shape.y_elements(), shape.w_elements()})
    checks.require(elements <= wire::Checker::kMaxCount, "the network is too large");
  return checks.holds("reserve_bytes", reserve_bytes, 1, sizeof(std::int64_t)).result();
}

}  // namespace troupe::dnn
