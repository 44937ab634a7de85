#pragma once

#include <string>
#include <vector>

#include <troupe/config.hpp>
#include <troupe/dtype.hpp>
#include <troupe/ordered_fault.hpp>

#include "domain.hpp"

namespace troupe::heat {

struct Options {
  Triple points{};            ///< of each rank
  std::int64_t steps = 0;     ///< in time
  std::int64_t together = 0;  ///< steps of one recorded sequence
  std::int64_t commit_every = 0;
  DType dtype = DType::f64;
  double courant = 0;  ///< thermal diffusivity times time step, over the square of the distance
  bool record = true;
  std::string json;
  std::vector<OrderedFault> faults;
};

std::vector<OptionSpec> option_specs();
/// Errors: invalid, one line that names the option.
Result<Options> parse_options(const Config& config);

}  // namespace troupe::heat
