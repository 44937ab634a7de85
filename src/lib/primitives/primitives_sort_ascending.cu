#include "lib/primitives/primitives_sort.cuh"

namespace troupe::host::cuda::kernels {

template struct Sorter<std::int32_t, false>;
template struct Sorter<std::uint32_t, false>;
template struct Sorter<std::int64_t, false>;
template struct Sorter<std::uint64_t, false>;
template struct Sorter<float, false>;
template struct Sorter<double, false>;

}  // namespace troupe::host::cuda::kernels
