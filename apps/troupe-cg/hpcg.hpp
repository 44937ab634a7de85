#pragma once

#include <cstdint>
#include <functional>

#include <troupe/troupe.hpp>

#include "options.hpp"

namespace troupe::cg {

/// The run that rates the devices by HPCG's rules (--hpcg): its phases in its order, then the
/// report. Returns the exit status: success if HPCG calls such a result valid. `progress` is called
/// on rank 0 after each timed set. All ranks call it. Throws Exception.
int rate(Runtime& runtime, const Options& options,
         const std::function<void(std::int64_t iteration, double residual)>& progress);

}  // namespace troupe::cg
