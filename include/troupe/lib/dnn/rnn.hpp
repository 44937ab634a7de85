#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include <troupe/lib/dnn/graph.hpp>

/// Recurrent networks, as cuDNN's RNN functions compute them.
namespace troupe::dnn {

/// What each layer computes of its input x(t) and its state h(t - 1); all products of vectors are
/// of single elements. The gates are numbered in the order in which they stand here.
///
///     relu, tanh  h = f(W x + bW + R h' + bR)                                  1 gate
///     lstm        i, f, o = sigmoid(W x + bW + R h' + bR)                      4 gates: i, f, g, o
///                 g = tanh(W x + bW + R h' + bR)
///                 c = f c' + i g;  h = o tanh(c)
///     gru         r, z = sigmoid(W x + bW + R h' + bR)                         3 gates: r, z, n
///                 n = tanh(W x + bW + r (R h' + bR))
///                 h = (1 - z) n + z h'
///
/// where each gate has its own W, R, bW and bR. These are the formulas of PyTorch's RNN, LSTM and
/// GRU (https://docs.pytorch.org/docs/stable/nn.html#recurrent-layers).
enum class RnnCell : std::uint32_t { relu, tanh, lstm, gru };

/// The shape of a recurrent network, in a record.
///
/// Layer 0 reads x, each other layer reads what the one below makes. With two directions a layer
/// has a second network that goes through the time from the end to the beginning; the layer makes
/// the vectors of both, the forward one first.
struct RnnShape {
  RnnCell cell{};
  std::uint32_t biases = 0;      ///< 2: bW and bR; 0: none
  std::uint32_t layers = 0;      ///< 1 to kMaxLayers
  std::uint32_t directions = 0;  ///< 1 or 2
  std::int64_t batch = 0;        ///< number of sequences
  std::int64_t time = 0;         ///< steps of the longest sequence
  std::int64_t input = 0;        ///< elements of a vector of x
  std::int64_t hidden = 0;       ///< elements of a vector of h

  static constexpr std::uint32_t kMaxLayers = 256;

  [[nodiscard]] std::int64_t gates() const noexcept;
  /// Elements of a vector that a layer reads.
  [[nodiscard]] std::int64_t reads(std::uint32_t layer) const noexcept;
  // Elements of the operands; above 2^48: the shape is too large.
  [[nodiscard]] std::int64_t x_elements() const noexcept;
  [[nodiscard]] std::int64_t y_elements() const noexcept;
  /// Of h, for all layers and directions.
  [[nodiscard]] std::int64_t h_elements() const noexcept;
  /// Of a state: h and, of lstm, c.
  [[nodiscard]] std::int64_t state_elements() const noexcept;
  [[nodiscard]] std::int64_t w_elements() const noexcept;
};

/// Which matrix of weights, or which bias.
struct RnnWeight {
  std::uint32_t layer = 0;
  std::uint32_t direction = 0;  ///< 1: from the end to the beginning
  std::int64_t gate = 0;        ///< see RnnCell
  bool recurrent = false;       ///< R and bR, which meet h; else W and bW, which meet the input
};
/// Where that stands in the weights, in elements.
struct RnnPlace {
  std::int64_t offset = 0;
  std::int64_t rows = 0, columns = 0;  ///< a row-major matrix; a bias has one column
};
/// The weights of a network are one array, packed: for each layer, for each of its directions, the
/// matrices W of all gates, then the matrices R of all gates, hidden x reads(layer) and hidden x
/// hidden; behind all matrices, for each layer, for each direction, bW of all gates, then bR.
RnnPlace rnn_matrix_place(const RnnShape& shape, const RnnWeight& which);
RnnPlace rnn_bias_place(const RnnShape& shape, const RnnWeight& which);  ///< needs biases

inline constexpr DTypes kRnnTypes = DTypes::of({DType::f16, DType::bf16, DType::f32});

/// Computes a recurrent network. All operands are packed, the last index varies fastest:
///
///   x        batch, time, input
///   w        see rnn_matrix_place()
///   y        batch, time, directions * hidden; what the last layer makes
///   initial  the state before the first step; absent: zeros
///              h: layers, directions, batch, hidden;  of lstm, behind it, c: the same
///   final    the state after the last step, as `initial`; may be absent
///   reserve  bytes that the gradients need, as many as RnnSpace tells; absent: inference
///
/// The inline bytes are the lengths of the sequences, an i32 for each of the batch, 1 to time;
/// none: all have the full length. A sequence ends at its length, from where the second direction
/// begins; `final` is its state there, y is 0 behind it, and x is ignored.
///
/// Sums are made in f32, never in tf32; an engine may round h, c and gates to dtype between steps.
/// Extents are below 2^31. What is written overlaps no other operand. There is no dropout, no
/// projection, no clipping and no single bias.
///
/// Errors, beside those of check(): invalid (the reserve is too small), unsupported (the engine has
/// not this dtype).
struct Rnn {
  static constexpr std::string_view kName = "dnn.rnn";
  static constexpr DTypes kDTypes = kRnnTypes;
  static constexpr Traits kTraits = kComputesRecorded;
  static constexpr std::uint32_t kData = 12288;

  OpDType dtype;
  RnnShape shape;
  Operand x, w, y, initial, final, reserve;

  static constexpr std::array kOperands{
      read("x", &Rnn::x),          read("w", &Rnn::w),
      write("y", &Rnn::y),         read("initial", &Rnn::initial),
      write("final", &Rnn::final), write("reserve", &Rnn::reserve)};
  Result<void> check() const;
  Result<void> check_parts(const Parts& parts) const;
  /// All of y and final.
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept;
};

/// The gradients of a network with respect to x and its initial state: of the number whose
/// gradients with respect to y and `final` are dy and dfinal. After Rnn with a reserve, once.
///
///   y, initial, w, reserve  as Rnn had and made them, and the same lengths
///   dy                      as y; what is behind the end of a sequence is ignored
///   dfinal                  as `final`; absent: zeros
///   dx                      as x; 0 behind the end of a sequence
///   dinitial                as `initial`; may be absent
///
/// It leaves in the reserve what RnnBackwardWeights needs.
struct RnnBackwardData {
  static constexpr std::string_view kName = "dnn.rnn_backward_data";
  static constexpr DTypes kDTypes = kRnnTypes;
  static constexpr Traits kTraits = kComputesRecorded;
  static constexpr std::uint32_t kData = Rnn::kData;

  OpDType dtype;
  RnnShape shape;
  Operand y, dy, w, initial, dfinal, dx, dinitial, reserve;

  static constexpr std::array kOperands{
      read("y", &RnnBackwardData::y),
      read("dy", &RnnBackwardData::dy),
      read("w", &RnnBackwardData::w),
      read("initial", &RnnBackwardData::initial),
      read("dfinal", &RnnBackwardData::dfinal),
      write("dx", &RnnBackwardData::dx),
      write("dinitial", &RnnBackwardData::dinitial),
      update("reserve", &RnnBackwardData::reserve),
  };
  Result<void> check() const;
  Result<void> check_parts(const Parts& parts) const;
  /// All of dx and dinitial.
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept;
};

/// Adds the gradient with respect to the weights to dw, which lies as w does. After
/// RnnBackwardData, whose reserve it reads; x, y, initial and the lengths are those of Rnn.
struct RnnBackwardWeights {
  static constexpr std::string_view kName = "dnn.rnn_backward_weights";
  static constexpr DTypes kDTypes = kRnnTypes;
  static constexpr Traits kTraits = kComputesRecorded;
  static constexpr std::uint32_t kData = Rnn::kData;

  OpDType dtype;
  RnnShape shape;
  Operand x, y, initial, reserve, dw;

  static constexpr std::array kOperands{
      read("x", &RnnBackwardWeights::x), read("y", &RnnBackwardWeights::y),
      read("initial", &RnnBackwardWeights::initial),
      update("reserve", &RnnBackwardWeights::reserve), update("dw", &RnnBackwardWeights::dw)};
  Result<void> check() const;
  Result<void> check_parts(const Parts& parts) const;
};

/// Tells how many bytes the reserve of a network has, at least kLeast: that depends on the engine,
/// its version and the device, but not on the lengths.
struct RnnSpace {
  static constexpr std::string_view kName = "dnn.rnn_space";
  static constexpr DTypes kDTypes = kRnnTypes;
  static constexpr Traits kTraits = {.repeatable = true};
  static constexpr std::int64_t kLeast = 16;

  OpDType dtype;
  RnnShape shape;
  Operand reserve_bytes;  ///< std::int64_t

  static constexpr std::array kOperands{write("reserve_bytes", &RnnSpace::reserve_bytes)};
  static constexpr auto kCell = &RnnSpace::reserve_bytes;
  Result<void> check() const;
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    return sizeof(std::int64_t);
  }
};

}  // namespace troupe::dnn

namespace troupe {

/// A recurrent network and its sequences; see dnn::RnnCell and dnn::RnnShape.
struct RnnOptions {
  dnn::RnnCell cell = dnn::RnnCell::lstm;
  std::uint32_t layers = 1;
  bool both_directions = false;
  bool bias = true;
  std::int64_t batch = 1;
  std::int64_t time = 0;                   ///< steps of the longest sequence
  std::int64_t input = 0;                  ///< elements of a vector of x
  std::int64_t hidden = 0;                 ///< elements of a vector of h
  std::vector<std::int32_t> lengths = {};  ///< of each sequence; none: all have `time` steps

  [[nodiscard]] dnn::RnnShape shape() const noexcept {
    return {cell, bias ? 2u : 0u, layers, both_directions ? 2u : 1u, batch, time, input, hidden};
  }
};

/// What a network reads and makes; see dnn::Rnn.
template <Element T>
struct RnnTensors {
  GpuRef<T> x, w, y;
  GpuRef<T> initial = {}, final = {};  ///< may be absent
  GpuRef<std::uint8_t> reserve = {};   ///< for gradients
};
/// Its gradients; see dnn::RnnBackwardData.
template <Element T>
struct RnnGradients {
  GpuRef<T> dy, dx;
  GpuRef<T> dfinal = {}, dinitial = {};  ///< may be absent
};

/// Recurrent networks on one device. A program that trains one makes a reserve of as many bytes as
/// rnn_reserve() tells, then calls rnn(), rnn_backward_data() and rnn_backward_weights() with the
/// same tensors and options.
class DnnRnn : public detail::Calls {
 public:
  using Calls::Calls;

  /// How many bytes the reserve of a network has whose tensors are of type T. See dnn::RnnSpace.
  template <Element T>
  Future<std::int64_t> rnn_reserve(const RnnOptions& options) const {
    return detail::submit_for_value<std::int64_t>(*submitter_,
                                                  dnn::RnnSpace{dtype_of<T>, options.shape(), {}});
  }
  /// Uses all tensors but those that are absent. See dnn::Rnn.
  template <Element T>
  Future<void> rnn(const RnnTensors<T>& of, const RnnOptions& options) const {
    return submit(
        dnn::Rnn{dtype_of<T>, options.shape(), of.x.operand(), of.w.operand(), of.y.operand(),
                 of.initial.operand(), of.final.operand(), of.reserve.operand()},
        options);
  }
  /// Uses y, w, initial and reserve. See dnn::RnnBackwardData.
  template <Element T>
  Future<void> rnn_backward_data(const RnnTensors<T>& of, const RnnGradients<T>& gradients,
                                 const RnnOptions& options) const {
    return submit(dnn::RnnBackwardData{dtype_of<T>, options.shape(), of.y.operand(),
                                       gradients.dy.operand(), of.w.operand(), of.initial.operand(),
                                       gradients.dfinal.operand(), gradients.dx.operand(),
                                       gradients.dinitial.operand(), of.reserve.operand()},
                  options);
  }
  /// Uses x, y, initial and reserve. See dnn::RnnBackwardWeights.
  template <Element T>
  Future<void> rnn_backward_weights(const RnnTensors<T>& of, const GpuRef<T>& dw,
                                    const RnnOptions& options) const {
    return submit(
        dnn::RnnBackwardWeights{dtype_of<T>, options.shape(), of.x.operand(), of.y.operand(),
                                of.initial.operand(), of.reserve.operand(), dw.operand()},
        options);
  }

 private:
  template <Operation Op>
  Future<void> submit(const Op& op, const RnnOptions& options) const {
    // The inline bytes are aligned to 8, as the memory of a vector is.
    return detail::submit(
        *submitter_, op,
        Parts(std::span<const TailOperand>(), std::as_bytes(std::span(options.lengths))));
  }
};

}  // namespace troupe
