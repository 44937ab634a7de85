#include "lib/primitives/primitives_sort.cuh"

namespace troupe::host::cuda::kernels {

template struct Sorter<std::int32_t, true>;
template struct Sorter<std::uint32_t, true>;
template struct Sorter<std::int64_t, true>;
template struct Sorter<std::uint64_t, true>;
template struct Sorter<float, true>;
template struct Sorter<double, true>;

}  // namespace troupe::host::cuda::kernels
