#pragma once

#include <cstdint>

#include "device_host/engine/cuda/launch.hpp"

/// The search for the first wrong one of indices, of which I is std::int32_t or std::int64_t. The
/// functions queue on the launch's stream and return.
namespace troupe::host::cuda::kernels {

cudaError_t preload_examine();

/// The numbers of sparse::Fault.
enum IndexFault : std::int64_t {
  kSound = 0,
  kWrongBegin,
  kOuterOutside,
  kDescends,
  kWrongEnd,
  kNoMultiple,
  kInnerOutside,
  kNotSorted
};
/// As sparse::Finding.
struct IndexFinding {
  std::int64_t fault, place, value, before;
};

/// See IndexRule; at least one array has elements, and offsets have one.
template <class I>
struct ExaminedIndices {
  const I* outer = nullptr;
  const I* inner = nullptr;
  std::int64_t outer_length = 0, outer_bound = 0, inner_length = 0, inner_bound = 0, step = 1;
  bool offsets = false, ordered = false, padding = false, sorted = false;
};

/// *finding = the first fault. `first` is for the search, and all of its bits are set.
template <class I>
cudaError_t examine(const Launch& launch, const ExaminedIndices<I>& indices,
                    unsigned long long* first, IndexFinding* finding);

}  // namespace troupe::host::cuda::kernels
