#include "device_host/engine/cuda/launch.cuh"
#include "lib/sparse/common/search.cuh"
#include "lib/sparse/examine/kernels.cuh"

namespace troupe::host::cuda::kernels {
namespace {

using Key = unsigned long long;
/// A fault in front of the place where it is: so the lowest of all keys is the one to tell of.
constexpr int kPlaceBits = 56;
constexpr Key kNone = ~Key{0};

__device__ Key key_of(IndexFault fault, std::int64_t place) {
  return static_cast<Key>(fault) << kPlaceBits | static_cast<Key>(place);
}
template <class I>
__device__ bool within(I i, std::int64_t bound) {
  return i >= 0 && static_cast<std::int64_t>(i) < bound;
}

template <class I>
__device__ Key fault_of_outer(const ExaminedIndices<I>& x, std::int64_t i) {
  const std::int64_t here = x.outer[i];
  if (!x.offsets && !within(x.outer[i], x.outer_bound)) return key_of(kOuterOutside, i);
  if (x.offsets && i == 0 && here != 0) return key_of(kWrongBegin, i);
  if ((x.offsets || x.ordered) && i > 0 && here < x.outer[i - 1]) return key_of(kDescends, i);
  if (x.offsets && i == x.outer_length - 1 && here != x.outer_bound) return key_of(kWrongEnd, i);
  return x.offsets && here % x.step != 0 ? key_of(kNoMultiple, i) : kNone;
}

/// Whether a row begins at an element, which is not the first. Offsets that are not sound have a
/// fault that comes first, whatever this says.
template <class I>
__device__ bool row_begins(const ExaminedIndices<I>& x, std::int64_t k) {
  if (!x.offsets) return x.outer[k] != x.outer[k - 1];
  const auto row = count_below(x.outer, x.outer_length, k, false);
  return row < x.outer_length && static_cast<std::int64_t>(x.outer[row]) == k;
}

template <class I>
__device__ Key fault_of_inner(const ExaminedIndices<I>& x, std::int64_t k) {
  if (!within(x.inner[k], x.inner_bound) && !(x.padding && x.inner[k] == I(-1)))
    return key_of(kInnerOutside, k);
  const bool wrong = x.sorted && k > 0 && x.inner[k] <= x.inner[k - 1] && !row_begins(x, k);
  return wrong ? key_of(kNotSorted, k) : kNone;
}

template <class I>
__global__ void examine_kernel(std::uint64_t n, ExaminedIndices<I> x, Key* first) {
  Key lowest = kNone;
  const auto take = [&](Key key) { lowest = key < lowest ? key : lowest; };
  for (auto i = first_index(); i < n; i += index_step()) {
    const auto place = static_cast<std::int64_t>(i);
    if (place < x.outer_length) take(fault_of_outer(x, place));
    if (place < x.inner_length) take(fault_of_inner(x, place));
  }
  if (lowest != kNone) atomicMin(first, lowest);
}

template <class I>
__global__ void tell_kernel(ExaminedIndices<I> x, const Key* first, IndexFinding* finding) {
  const Key key = *first;
  IndexFinding found{kSound, 0, 0, 0};
  if (key != kNone) {
    found.fault = static_cast<std::int64_t>(key >> kPlaceBits);
    found.place = static_cast<std::int64_t>(key & ((Key{1} << kPlaceBits) - 1));
    const bool of_inner = found.fault == kInnerOutside || found.fault == kNotSorted;
    const I* const array = of_inner ? x.inner : x.outer;
    found.value = array[found.place];
    if (found.fault == kDescends || found.fault == kNotSorted)
      found.before = array[found.place - 1];
  }
  *finding = found;
}

template <class I>
cudaError_t load_index() {
  return load_all(examine_kernel<I>, tell_kernel<I>);
}

}  // namespace

cudaError_t preload_examine() {
  const auto status = load_index<std::int32_t>();
  return status == cudaSuccess ? load_index<std::int64_t>() : status;
}

template <class I>
cudaError_t examine(const Launch& launch, const ExaminedIndices<I>& indices,
                    unsigned long long* first, IndexFinding* finding) {
  const auto longest =
      indices.outer_length < indices.inner_length ? indices.inner_length : indices.outer_length;
  const auto n = static_cast<std::uint64_t>(longest);
  const auto status = queue(launch, n, examine_kernel<I>, n, indices, first);
  if (status != cudaSuccess) return status;
  cudaLaunchConfig_t one{};
  one.gridDim = dim3(1);
  one.blockDim = dim3(1);
  one.stream = launch.stream;
  return cudaLaunchKernelEx(&one, tell_kernel<I>, indices, static_cast<const Key*>(first), finding);
}

template cudaError_t examine(const Launch&, const ExaminedIndices<std::int32_t>&,
                             unsigned long long*, IndexFinding*);
template cudaError_t examine(const Launch&, const ExaminedIndices<std::int64_t>&,
                             unsigned long long*, IndexFinding*);

}  // namespace troupe::host::cuda::kernels
