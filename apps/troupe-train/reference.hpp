#pragma once

#include <cstdint>
#include <vector>

#include "model.hpp"

namespace troupe::train {

/// A batch, and parameters as Parameters says.
struct HostProblem {
  Shape shape;
  std::vector<std::int32_t> tokens = {}, targets = {};  ///< sequence by sequence
  std::vector<double> parameters = {};
};

/// The model's mean loss on the host, one loop after another in double precision: what the program
/// compares itself with. It shares nothing with Transformer but where parameters lie.
double host_loss(const HostProblem& problem);
/// The same, and the gradients of all parameters.
double host_loss(const HostProblem& problem, std::vector<double>& gradients);

}  // namespace troupe::train
