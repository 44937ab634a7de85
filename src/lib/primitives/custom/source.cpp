#include <troupe/lib/primitives/custom_source.hpp>

/// The kernels around an operator of the program's own, as text. They are CUDA C++ within the
/// subset that the cpu engine compiles: so all threads of a block meet at barriers, and nothing
/// knows of warps. Types of elements need not have constructors, so in shared memory they have
/// rooms instead.
namespace troupe::detail::custom {
namespace {

constexpr auto kCommon = R"(
using Index = long long;
constexpr int kThreads = 256, kTile = 1024, kItems = kTile / kThreads;

template <class U>
struct alignas(alignof(U)) Room {
  unsigned char bytes[sizeof(U)];
};

__device__ inline Index end_of_block(Index n, Index chunk) {
  const Index end = (blockIdx.x + Index(1)) * chunk;
  return end < n ? end : n;
}

// tile[0] = what all of tile[0, count) make, in their order; 0 < count <= kTile.
template <class U, class Op>
__device__ void reduce_tile(Op op, U* tile, int count) {
  for (int width = 1; width < count; width *= 2) {
    for (int i = 2 * width * int(threadIdx.x); i + width < count; i += 2 * width * kThreads)
      tile[i] = op(tile[i], tile[i + width]);
    __syncthreads();
  }
}

// tile[i] = what tile[0, i] make; 0 < count <= kTile. `sums` has room for kThreads.
template <class U, class Op>
__device__ void scan_tile(Op op, U* tile, U* sums, int count) {
  const int thread = threadIdx.x, first = thread * kItems;
  const int end = first + kItems < count ? first + kItems : count;
  const bool works = first < count;
  for (int i = first + 1; i < end; ++i) tile[i] = op(tile[i - 1], tile[i]);
  if (works) sums[thread] = tile[end - 1];
  __syncthreads();
  for (int width = 1; width * kItems < count; width *= 2) {
    const bool takes = works && thread >= width;
    U sum = sums[takes ? thread : 0];
    if (takes) sum = op(sums[thread - width], sum);
    __syncthreads();
    if (takes) sums[thread] = sum;
    __syncthreads();
  }
  if (works && thread > 0) {
    for (int i = first; i < end; ++i) tile[i] = op(sums[thread - 1], tile[i]);
  }
  __syncthreads();
}
)";

constexpr auto kTransform = R"(
__global__ void transform(long long n, const T0* x, T1* y) {
  auto op = made_operator();
  if (x == nullptr) x = reinterpret_cast<const T0*>(y);
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step)
    y[i] = op(x[i]);
}
)";

constexpr auto kTransformPairs = R"(
__global__ void transform_pairs(long long n, const T0* x, const T1* y, T2* z) {
  auto op = made_operator();
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step)
    z[i] = op(x[i], y[i]);
}
)";

constexpr auto kForEach = R"(
__global__ void for_each(long long n, T0* x) {
  auto op = made_operator();
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step)
    op(x[i]);
}
)";

/// With as many buffers as there are types.
std::string bulk_of(std::size_t buffers) {
  std::string parameters, arguments;
  for (std::size_t i = 0; i < buffers; ++i) {
    const auto number = std::to_string(i);
    parameters += ", T" + number + "* x" + number;
    arguments += ", x" + number;
  }
  return "__global__ void bulk(long long n" + parameters +
         R"() {
  auto op = made_operator();
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step)
    op(i)" +
         arguments + ");\n}\n";
}

constexpr auto kReduction = R"(
// What the elements of each block make; with_initial: behind `initial`.
__global__ void reduce_blocks(Index n, Index chunk, const T0* x, int with_initial, T0 initial,
                              T0* results) {
  auto op = made_operator();
  __shared__ Room<T0> tile_room[kTile], all_room[1];
  T0* const tile = reinterpret_cast<T0*>(tile_room);
  T0* const all = reinterpret_cast<T0*>(all_room);
  bool any = with_initial != 0;
  if (any && threadIdx.x == 0) *all = initial;
  const Index end = end_of_block(n, chunk);
  for (Index at = blockIdx.x * chunk; at < end; at += kTile) {
    const int count = end - at < kTile ? int(end - at) : kTile;
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += kThreads) tile[i] = x[at + i];
    __syncthreads();
    reduce_tile(op, tile, count);
    if (threadIdx.x == 0) {
      if (any) {
        *all = op(*all, tile[0]);
      } else {
        *all = tile[0];
      }
    }
    any = true;
  }
  if (any && threadIdx.x == 0) results[blockIdx.x] = *all;
}

// From what each block makes to what all blocks in front of it make; that of the first one is not
// set without `initial`.
__global__ void carry_blocks(int blocks, T0* carries, int with_initial, T0 initial) {
  auto op = made_operator();
  __shared__ Room<T0> tile_room[kTile], sums_room[kThreads];
  T0* const tile = reinterpret_cast<T0*>(tile_room);
  for (int i = threadIdx.x; i < blocks; i += kThreads) tile[i] = carries[i];
  __syncthreads();
  scan_tile(op, tile, reinterpret_cast<T0*>(sums_room), blocks);
  for (int i = threadIdx.x + 1; i < blocks; i += kThreads) {
    if (with_initial != 0) {
      carries[i] = op(initial, tile[i - 1]);
    } else {
      carries[i] = tile[i - 1];
    }
  }
}

// Each block goes on with what those in front of it make; the first one with `initial`, if the scan
// is exclusive.
__global__ void scan_blocks(Index n, Index chunk, const T0* x, T0* y, const T0* carries,
                            int exclusive, T0 initial) {
  auto op = made_operator();
  __shared__ Room<T0> tile_room[kTile], sums_room[kThreads], carry_room[1];
  T0* const tile = reinterpret_cast<T0*>(tile_room);
  T0* const carry = reinterpret_cast<T0*>(carry_room);
  if (x == nullptr) x = y;
  bool any = exclusive != 0 || blockIdx.x > 0;
  if (any && threadIdx.x == 0) *carry = blockIdx.x > 0 ? carries[blockIdx.x] : initial;
  const Index end = end_of_block(n, chunk);
  for (Index at = blockIdx.x * chunk; at < end; at += kTile) {
    const int count = end - at < kTile ? int(end - at) : kTile;
    for (int i = threadIdx.x; i < count; i += kThreads) tile[i] = x[at + i];
    __syncthreads();
    scan_tile(op, tile, reinterpret_cast<T0*>(sums_room), count);
    for (int i = threadIdx.x; i < count; i += kThreads) {
      const int last = exclusive != 0 ? i - 1 : i;  // the last one that counts
      if (!any) {
        y[at + i] = tile[last];
      } else if (last < 0) {
        y[at + i] = *carry;
      } else {
        y[at + i] = op(*carry, tile[last]);
      }
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      if (any) {
        *carry = op(*carry, tile[count - 1]);
      } else {
        *carry = tile[count - 1];
      }
    }
    any = true;
    __syncthreads();
  }
}
)";

constexpr auto kSelection = R"(
struct Add {
  template <class U>
  __device__ U operator()(U a, U b) const {
    return a + b;
  }
};

__global__ void count_blocks(Index n, Index chunk, const T0* x, Index* counts) {
  auto op = made_operator();
  __shared__ Index sums[kThreads];
  Index found = 0;
  const Index end = end_of_block(n, chunk);
  for (Index i = blockIdx.x * chunk + threadIdx.x; i < end; i += kThreads) found += op(x[i]) ? 1 : 0;
  sums[threadIdx.x] = found;
  __syncthreads();
  reduce_tile(Add(), sums, kThreads);
  if (threadIdx.x == 0) counts[blockIdx.x] = sums[0];
}

// From how many each block has to how many those in front of it have.
__global__ void offsets_of_blocks(int blocks, Index* counts, Index* all) {
  __shared__ Index tile[kTile], sums[kThreads];
  for (int i = threadIdx.x; i < blocks; i += kThreads) tile[i] = counts[i];
  __syncthreads();
  scan_tile(Add(), tile, sums, blocks);
  for (int i = threadIdx.x; i < blocks; i += kThreads) counts[i] = i == 0 ? 0 : tile[i - 1];
  if (threadIdx.x == 0) *all = tile[blocks - 1];
}

__global__ void select_blocks(Index n, Index chunk, const T0* x, const Index* offsets,
                              Index capacity, T0* selected) {
  auto op = made_operator();
  __shared__ int tile[kTile], sums[kThreads];
  Index base = offsets[blockIdx.x];
  const Index end = end_of_block(n, chunk);
  for (Index at = blockIdx.x * chunk; at < end; at += kTile) {
    const int count = end - at < kTile ? int(end - at) : kTile;
    for (int i = threadIdx.x; i < count; i += kThreads) tile[i] = op(x[at + i]) ? 1 : 0;
    __syncthreads();
    scan_tile(Add(), tile, sums, count);
    for (int i = threadIdx.x; i < count; i += kThreads) {
      const int before = i == 0 ? 0 : tile[i - 1];
      if (tile[i] != before && base + before < capacity) selected[base + before] = x[at + i];
    }
    base += tile[count - 1];
    __syncthreads();
  }
}
)";

std::string text_of(Kind kind, std::size_t types) {
  switch (kind) {
    case Kind::transform: return kTransform;
    case Kind::transform_pairs: return kTransformPairs;
    case Kind::for_each: return kForEach;
    case Kind::bulk: return bulk_of(types);
    case Kind::reduction: return std::string(kCommon) + kReduction;
    default: return std::string(kCommon) + kSelection;
  }
}

}  // namespace

std::string source_of(Kind kind, const primitives::CustomOperator& op,
                      const std::vector<Type>& types) {
  std::string source = "#line 1 \"declarations\"\n" + op.declarations +
                       "\n#line 1 \"kernels\"\nnamespace troupe_custom {\n";
  for (std::size_t i = 0; i < types.size(); ++i) {
    const auto name = "T" + std::to_string(i);
    source += "using " + name + " = " + types[i].name + ";\nstatic_assert(sizeof(" + name +
              ") == " + std::to_string(types[i].bytes) +
              ", \"the type of elements has another size in the program\");\n";
  }
  source += "__device__ inline auto made_operator() {\n  return\n#line 1 \"operator\"\n" +
            op.source + "\n#line 100 \"kernels\"\n  ;\n}\n";
  return source + text_of(kind, types.size()) + "}  // namespace troupe_custom\n";
}

std::vector<std::string> names_of(Kind kind) {
  switch (kind) {
    case Kind::transform: return {"troupe_custom::transform"};
    case Kind::transform_pairs: return {"troupe_custom::transform_pairs"};
    case Kind::for_each: return {"troupe_custom::for_each"};
    case Kind::bulk: return {"troupe_custom::bulk"};
    case Kind::reduction:
      return {"troupe_custom::reduce_blocks", "troupe_custom::carry_blocks",
              "troupe_custom::scan_blocks"};
    default:
      return {"troupe_custom::count_blocks", "troupe_custom::offsets_of_blocks",
              "troupe_custom::select_blocks"};
  }
}

}  // namespace troupe::detail::custom
