#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

#include <troupe/lib/dnn/convolution.hpp>

#include "raw_cuda.hpp"

/// Layers as a raw program has cuDNN compute them: graphs made with cudnn-frontend, planned once,
/// with a workspace of their own. All tensors are bf16 unless told.
namespace troupe::bench {

/// cuDNN has no engine for a layer.
struct NoPlan : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A plan of cuDNN, and the operands it runs on. Its settings are those of troupe's engine: sums
/// and what is between nodes in f32, the first engine that heuristics A and then the fallbacks
/// name, none that is nondeterministic, and for convolutions none that converts its inputs, sums up
/// in less than f32, or computes by FFT or Winograd's algorithm. What makes one throws NoPlan.
class RawLayer {
 public:
  ~RawLayer();
  RawLayer(const RawLayer&) = delete;
  RawLayer& operator=(const RawLayer&) = delete;

  void run();

  enum class Pass { forward, data, filter };
  /// Two spatial dimensions, one group, as much padding after as before, no dilation; channels
  /// vary fastest. `operands`: x, w, y; or dy, w, dx; or dy, x, dw.
  static RawLayer convolution(Raw& raw, Pass pass, const ConvolutionOptions& shape,
                              std::vector<void*> operands);

  /// Causal, with as many keys as queries; batch, sequence, heads, dim in memory.
  struct Attention {
    std::int64_t batch, heads, sequence, dim;
  };
  /// `operands`: q, k, v, o, and stats in f32.
  static RawLayer attention(Raw& raw, const Attention& shape, std::vector<void*> operands);
  /// `operands`: q, k, v, o, d_o, stats in f32; d_q, d_k, d_v.
  static RawLayer attention_backward(Raw& raw, const Attention& shape, std::vector<void*> operands);

  /// Each row is normalised. `operands`: x, scale, bias, y, mean, inverse deviation; x and y alone
  /// in bf16, the others in f32.
  static RawLayer layer_norm(Raw& raw, std::int64_t rows, std::int64_t columns,
                             std::vector<void*> operands);
  /// `operands`: dy, x, scale, mean, inverse deviation, dx, dscale, dbias; dy, x and dx alone in
  /// bf16, the others in f32.
  static RawLayer layer_norm_backward(Raw& raw, std::int64_t rows, std::int64_t columns,
                                      std::vector<void*> operands);

  /// `operands`: x, y.
  static RawLayer gelu(Raw& raw, std::int64_t elements, std::vector<void*> operands);

 private:
  struct Plan;
  RawLayer(Raw& raw, std::unique_ptr<Plan> plan, std::vector<void*> operands);

  Raw* raw_;
  std::unique_ptr<Plan> plan_;
  std::vector<void*> operands_;  ///< by the numbers of their tensors
  void* workspace_ = nullptr;
};

}  // namespace troupe::bench
