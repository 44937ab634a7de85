#pragma once

#include <string>
#include <vector>

#include "options.hpp"
#include "reference.hpp"

namespace troupe::train {

/// How far a device's gradients are from those of the host program, and how far these are from the
/// differences of its losses.
struct GradientCheck {
  double loss_error = 0;      ///< relative
  double gradient_error = 0;  ///< of one tensor: the norm of what is off, over that of the gradient
  double tolerance = 0;       ///< of both
  std::string worst;          ///< the tensor that is off most
  /// Of the host program's derivative along a direction from a central difference of its losses,
  /// over what such a difference may be off.
  double difference_ratio = 0;
  double update_ratio = 0;  ///< see update_ratio()

  [[nodiscard]] bool right() const {
    return loss_error <= tolerance && gradient_error <= tolerance && difference_ratio <= 1 &&
           update_ratio <= 1;
  }
};

/// Whether the host program takes seconds, not hours.
bool may_be_checked(const Options& options);

/// Parameters of a size that all parts of the model matter with, unlike those at the beginning,
/// when attention is nearly the same for all keys.
std::vector<float> parameters_to_check(const Shape& shape);

GradientCheck check_gradients(const HostProblem& problem, double loss,
                              const std::vector<float>& gradients, DType dtype);

/// What an update reads.
struct BeforeUpdate {
  std::int64_t step = 0;
  std::vector<float> parameters = {}, gradients = {}, first_moments = {}, second_moments = {};
};
/// How far the parameters are from those that AdamW makes, over what roundings may make of them.
double update_ratio(const Options& options, const BeforeUpdate& before,
                    const std::vector<float>& after);

}  // namespace troupe::train
