#pragma once

#include <string>
#include <vector>

#include <troupe/config.hpp>
#include <troupe/dtype.hpp>
#include <troupe/ordered_fault.hpp>

#include "model.hpp"

namespace troupe::train {

/// Steps that a run may have: there is room for so many losses.
inline constexpr std::int64_t kMostSteps = std::int64_t{1} << 20;

/// AdamW's, as nanoGPT has them.
inline constexpr double kBeta1 = 0.9, kBeta2 = 0.95;
inline constexpr double kAdamEpsilon = 1e-8;

struct Options {
  std::string model;
  Shape shape;
  std::int64_t batch = 0;  ///< sequences of each rank in a step
  std::int64_t steps = 0;
  double learning_rate = 0, weight_decay = 0, grad_clip = 0;
  std::int64_t warmup = 0, decay_steps = 0;
  std::uint64_t seed = 0;
  DType dtype = DType::f32;
  std::string text;  ///< a file; empty: text that the program makes
  std::int64_t commit_every = 0, log_every = 0;
  bool record = true, check_gradients = false;
  std::string json;
  std::vector<OrderedFault> faults;

  [[nodiscard]] std::int64_t tokens_of_rank() const { return batch * shape.sequence; }
  /// Of a step: rises over `warmup` steps, then stays or, with `decay_steps`, falls as a cosine to
  /// a tenth, which it has from that step on.
  [[nodiscard]] double learning_rate_of(std::int64_t step) const;
};

std::vector<OptionSpec> option_specs();
/// Looks at the text, too. Errors: invalid and io, one line that names the option.
Result<Options> parse_options(const Config& config);

}  // namespace troupe::train
