#include "kernels.hpp"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace troupe::train {
namespace {

// Matrices of activations have a row of so many channels for each token, and rows stand one behind
// another. Every sum has an order of its own that depends on the shapes alone: no atomics.
constexpr auto kSource = R"(
typedef long long i64;
typedef unsigned long long u64;

// CHANNELS and SEQUENCE are the model's, HEAD is a head's channels. LANES threads do a row of a norm, a
// warp, and TEAM threads a row of its backward pass, of which a block has TEAMS at once. On the cpu engine
// one thread does, which is a block by itself; its arrays would be too large for a stack there.
constexpr int kChannels = CHANNELS, kThreads = LANES == 1 ? 1 : 256;
#if LANES == 1
#define OF_THREAD __shared__
#else
#define OF_THREAD
#endif

struct bf16 { unsigned short bits; };
__device__ float wide(float x) { return x; }
__device__ float wide(bf16 x) { return __int_as_float((int)((unsigned)x.bits << 16)); }
// Two numbers of bf16, the first in the low bits: to the nearest, ties to even.
__device__ unsigned narrow_pair(float low, float high) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  unsigned both;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
#else
  const auto narrow = [](float x) {
    const unsigned bits = (unsigned)__float_as_int(x);
    return x == x ? (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16 : 0x7fffu;
  };
  return narrow(low) | narrow(high) << 16;
#endif
}

// Eight numbers that are read or written at once; lengths of rows are multiples of that.
template <class T> struct Eight;
template <> struct alignas(16) Eight<float> { float numbers[8]; };
template <> struct alignas(16) Eight<bf16> { unsigned pairs[4]; };
__device__ void spread(const Eight<float>& from, float (&x)[8]) {
#pragma unroll
  for (int j = 0; j < 8; ++j) x[j] = from.numbers[j];
}
__device__ void spread(const Eight<bf16>& from, float (&x)[8]) {
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    x[2 * j] = __int_as_float((int)(from.pairs[j] << 16));
    x[2 * j + 1] = __int_as_float((int)(from.pairs[j] & 0xffff0000u));
  }
}
__device__ void join(const float (&x)[8], Eight<float>& to) {
#pragma unroll
  for (int j = 0; j < 8; ++j) to.numbers[j] = x[j];
}
__device__ void join(const float (&x)[8], Eight<bf16>& to) {
#pragma unroll
  for (int j = 0; j < 4; ++j) to.pairs[j] = narrow_pair(x[2 * j], x[2 * j + 1]);
}
// The i-th eight from a place on.
template <class T>
__device__ Eight<T> eight(const T* from, i64 i) { return ((const Eight<T>*)from)[i]; }
template <class T>
__device__ void load(const T* from, i64 i, float (&x)[8]) { spread(eight(from, i), x); }
template <class T>
__device__ void store(T* to, i64 i, const float (&x)[8]) {
  Eight<T> joined;
  join(x, joined);
  ((Eight<T>*)to)[i] = joined;
}

__device__ i64 element() { return (i64)blockIdx.x * blockDim.x + threadIdx.x; }

// Over the threads of a block, of which there is a power of two, at most 512.
__device__ float block_sum(float value, float* shared) {
  shared[threadIdx.x] = value;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
    __syncthreads();
  }
  const float all = shared[0];
  __syncthreads();
  return all;
}
__device__ float block_max(float value, float* shared) {
  shared[threadIdx.x] = value;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) shared[threadIdx.x] = fmaxf(shared[threadIdx.x], shared[threadIdx.x + half]);
    __syncthreads();
  }
  const float all = shared[0];
  __syncthreads();
  return all;
}

// Steele et al., "Fast splittable pseudorandom number generators", 2014
__device__ u64 mixed(u64 x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// Sequences of the text that begin anywhere: where is a function of the seed, the step and the
// number of the sequence among all ranks'. There is room for more tokens than are drawn; the others
// have no target.
__global__ void draw(i64 step, u64 seed, i64 first, int sequence, i64 drawn, i64 room, i64 length,
                     const unsigned char* text, int* tokens, int* targets) {
  const i64 n = element();
  if (n >= room) return;
  if (n >= drawn) {
    tokens[n] = 0;
    targets[n] = -1;
    return;
  }
  const u64 random = mixed(mixed(mixed(seed) + (u64)step) + (u64)(first + n / sequence));
  const i64 at = (i64)(random % (u64)(length - sequence)) + n % sequence;
  tokens[n] = text[at];
  targets[n] = text[at + 1];
}

__global__ void narrow(i64 eights, const float* from, bf16* to) {
  const i64 i = element();
  if (i >= eights) return;
  float x[8];
  load(from, i, x);
  store(to, i, x);
}

template <class T>
__global__ void embed(i64 eights, const int* tokens, const float* of_token, const float* of_position, T* x) {
  const i64 i = element();
  if (i >= eights) return;
  constexpr int kEights = kChannels / 8;
  const i64 n = i / kEights;
  const int c = (int)(i % kEights);
  float token[8], position[8];
  load(of_token + (i64)tokens[n] * kChannels, c, token);
  load(of_position + n % SEQUENCE * kChannels, c, position);
  for (int j = 0; j < 8; ++j) token[j] += position[j];
  store(x, i, token);
}

// Layer norms (Ba et al., 2016): y = (x - mean) / deviation scale + bias, for each row. Of so many threads
// thread i has the eights i, i + threads... of a row.
template <int threads>
constexpr int kEightsOf = (kChannels / 8 + threads - 1) / threads;
#define EACH_EIGHT(threads, i, c)                                  \
  _Pragma("unroll") for (int i = 0; i < kEightsOf<threads>; ++i)   \
    if (const int c = threadIdx.x % threads + i * threads; c < kChannels / 8)

// The sum over a warp, or of one thread.
template <int lanes>
__device__ float lanes_sum(float x) {
  if constexpr (lanes > 1) {
    for (int step = lanes / 2; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
  }
  return x;
}

template <class T>
__global__ void norm(i64 rows, const T* x, const float* scale, const float* bias, T* y, float* means,
                     float* inverses) {
  OF_THREAD float in[kEightsOf<LANES>][8];
  const i64 row = element() / LANES;
  if (row >= rows) return;
  float sum = 0, squares = 0;
  EACH_EIGHT(LANES, i, c) {
    load(x + row * kChannels, c, in[i]);
    for (int j = 0; j < 8; ++j) sum += in[i][j];
  }
  const float mean = lanes_sum<LANES>(sum) / kChannels;
  EACH_EIGHT(LANES, i, c) {
    for (int j = 0; j < 8; ++j) squares += (in[i][j] - mean) * (in[i][j] - mean);
  }
  const float inverse = rsqrtf(lanes_sum<LANES>(squares) / kChannels + 1e-5f);
  EACH_EIGHT(LANES, i, c) {
    float by[8], more[8];
    load(scale, c, by), load(bias, c, more);
    for (int j = 0; j < 8; ++j) more[j] += (in[i][j] - mean) * inverse * by[j];
    store(y + row * kChannels, c, more);
  }
  if (threadIdx.x % LANES == 0) means[row] = mean, inverses[row] = inverse;
}

// The sums of two numbers over each team of the block; `turn` counts the calls.
template <int team>
__device__ void team_sums(int turn, float& a, float& b) {
  if constexpr (team > 1) {
    constexpr int kWarps = team / 32;
    __shared__ float2 shared[2][32];
    a = lanes_sum<32>(a), b = lanes_sum<32>(b);
    float2* const of_turn = shared[turn % 2];
    if (threadIdx.x % 32 == 0) of_turn[threadIdx.x / 32] = make_float2(a, b);
    __syncthreads();
    a = 0, b = 0;
    for (int warp = 0; warp < kWarps; ++warp) {
      const float2 of_warp = of_turn[threadIdx.x / team * kWarps + warp];
      a += of_warp.x, b += of_warp.y;
    }
  }
}

// The sums over the teams of the block, each of which has some of the same columns.
__device__ void block_columns(const float (&of_team)[kEightsOf<TEAM>][8], float* sums) {
  if constexpr (TEAMS == 1) {
    EACH_EIGHT(TEAM, i, c) { store(sums, c, of_team[i]); }
  } else {
    __shared__ float shared[kChannels];
    for (int team = 0; team < TEAMS; ++team) {
      if (threadIdx.x / TEAM == team) {
        EACH_EIGHT(TEAM, i, c) {
          for (int j = 0; j < 8; ++j) shared[8 * c + j] = (team == 0 ? 0.0f : shared[8 * c + j]) + of_team[i][j];
        }
      }
      __syncthreads();
    }
    for (int c = threadIdx.x; c < kChannels; c += blockDim.x) sums[c] = shared[c];
    __syncthreads();
  }
}

// d_x becomes the gradient of x or, with `adds`, that is added to it. Each block leaves sums of its rows:
// of d_x, and for the gradients of scale and bias, each of the three behind those of all blocks. The next
// row is on its way while one is computed.
template <class T>
__global__ void __launch_bounds__(TEAM * TEAMS, TEAM * TEAMS <= 384 ? 2 : 1)
norm_backward(i64 rows, int adds, const T* __restrict__ d_y, const T* __restrict__ x,
              const float* __restrict__ scale, const float* __restrict__ means,
              const float* __restrict__ inverses, T* __restrict__ d_x, float* __restrict__ sums) {
  constexpr int kMine = kEightsOf<TEAM>;
  OF_THREAD float d_before[kMine][8], d_scale[kMine][8], d_bias[kMine][8], by[kMine][8];
  OF_THREAD Eight<T> in[kMine], d_out[kMine], there[kMine], next_in[kMine], next_out[kMine], next_there[kMine];
  EACH_EIGHT(TEAM, i, c) {
    load(scale, c, by[i]);
    for (int j = 0; j < 8; ++j) d_before[i][j] = d_scale[i][j] = d_bias[i][j] = 0;
  }
  float next_mean = 0, next_inverse = 0;
  const auto fetch = [&](i64 row) {
    if (row >= rows) return;
    next_mean = means[row], next_inverse = inverses[row];
    EACH_EIGHT(TEAM, i, c) {
      next_in[i] = eight(x + row * kChannels, c), next_out[i] = eight(d_y + row * kChannels, c);
      if (adds) next_there[i] = eight((const T*)d_x + row * kChannels, c);
    }
  };
  const i64 rows_at_once = (i64)gridDim.x * TEAMS;
  const i64 mine = (i64)blockIdx.x * TEAMS + threadIdx.x / TEAM;
  fetch(mine);
  int turn = 0;
  // All teams of the block make as many turns.
  for (i64 first = (i64)blockIdx.x * TEAMS; first < rows; first += rows_at_once, ++turn) {
    const i64 row = mine + turn * rows_at_once;
    const float mean = next_mean, inverse = next_inverse;
    float sum = 0, product = 0;
    EACH_EIGHT(TEAM, i, c) { in[i] = next_in[i], d_out[i] = next_out[i], there[i] = next_there[i]; }
    fetch(row + rows_at_once);
    if (row < rows) {
      EACH_EIGHT(TEAM, i, c) {
        float of_x[8], of_y[8];
        spread(in[i], of_x), spread(d_out[i], of_y);
        for (int j = 0; j < 8; ++j) {
          const float normed = (of_x[j] - mean) * inverse;
          d_scale[i][j] += of_y[j] * normed;
          d_bias[i][j] += of_y[j];
          sum += of_y[j] * by[i][j];
          product += of_y[j] * by[i][j] * normed;
        }
      }
    }
    team_sums<TEAM>(turn, sum, product);
    if (row >= rows) continue;
    sum /= kChannels, product /= kChannels;
    EACH_EIGHT(TEAM, i, c) {
      float of_x[8], of_y[8], gradient[8] = {};
      spread(in[i], of_x), spread(d_out[i], of_y);
      if (adds) spread(there[i], gradient);
      for (int j = 0; j < 8; ++j) {
        const float normed = (of_x[j] - mean) * inverse;
        gradient[j] += inverse * (of_y[j] * by[i][j] - sum - normed * product);
        d_before[i][j] += gradient[j];
      }
      store(d_x + row * kChannels, c, gradient);
    }
  }
  float* const own = sums + (i64)blockIdx.x * kChannels;
  block_columns(d_before, own);
  block_columns(d_scale, own + (i64)gridDim.x * kChannels);
  block_columns(d_bias, own + (i64)gridDim.x * 2 * kChannels);
}

// One row of logits: the loss, and in the place of the logits the gradient of `weight` times the loss.
// Both are 0 where there is no target. With `kept` the row fits into dynamic shared memory.
template <class T>
__global__ void cross_entropy(int vocabulary, int kept, float weight, const int* targets, T* logits, float* losses) {
  extern __shared__ __align__(16) unsigned char memory[];
  __shared__ float shared[512];
  Eight<T>* const row = (Eight<T>*)(logits + (i64)blockIdx.x * vocabulary);
  Eight<T>* const copy = (Eight<T>*)memory;
  const int target = targets[blockIdx.x], eights = vocabulary / 8;
  float x[8];
  if (target < 0) {
    for (int j = 0; j < 8; ++j) x[j] = 0;
    for (int v = threadIdx.x; v < eights; v += blockDim.x) join(x, row[v]);
    if (threadIdx.x == 0) losses[blockIdx.x] = 0;
    return;
  }
  const float at_target = wide(((const T*)row)[target]);
  float mine = -3.4e38f, sum = 0;  // the largest that this thread has seen; exponentials, over that of it
  constexpr int kAtOnce = 4;
  for (int first = threadIdx.x; first < eights; first += kAtOnce * blockDim.x) {
    Eight<T> read[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k)
      if (const int v = first + k * blockDim.x; v < eights) read[k] = row[v];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const int v = first + k * blockDim.x;
      if (v >= eights) break;
      if (kept) copy[v] = read[k];
      spread(read[k], x);
      float largest = mine;
      for (int j = 0; j < 8; ++j) largest = fmaxf(largest, x[j]);
      if (largest > mine) sum *= __expf(mine - largest), mine = largest;
      for (int j = 0; j < 8; ++j) sum += __expf(x[j] - mine);
    }
  }
  const float largest = block_max(mine, shared);
  sum = block_sum(sum * __expf(mine - largest), shared);
  const float part = weight / sum;
  for (int v = threadIdx.x; v < eights; v += blockDim.x) {
    spread(kept ? copy[v] : row[v], x);
    for (int j = 0; j < 8; ++j) x[j] = part * __expf(x[j] - largest);
    if (target / 8 == v) {
      for (int j = 0; j < 8; ++j) x[j] -= target % 8 == j ? weight : 0.0f;
    }
    join(x, row[v]);
  }
  if (threadIdx.x == 0) losses[blockIdx.x] = logf(sum) + largest - at_target;
}

// One block. The mean, where `of` is the count.
__global__ void mean(i64 count, float of, const float* x, float* out) {
  __shared__ float shared[256];
  float sums[8] = {};
  for (i64 first = threadIdx.x; first < count; first += 8 * blockDim.x) {
#pragma unroll
    for (int k = 0; k < 8; ++k)
      if (const i64 i = first + k * blockDim.x; i < count) sums[k] += x[i];
  }
  float sum = 0;
  for (int k = 0; k < 8; ++k) sum += sums[k];
  sum = block_sum(sum, shared);
  if (threadIdx.x == 0) *out = sum / of;
}

// Rows of a matrix with a 1 in the place of the token: the product with a gradient adds up what
// each token's embedding gets.
template <class T>
__global__ void one_hot(int bytes, i64 eights, const int* tokens, T* out) {
  const i64 i = element();
  if (i >= eights) return;
  const int row_eights = bytes / 8, token = tokens[i / row_eights], first = (int)(i % row_eights) * 8;
  float x[8];
  for (int j = 0; j < 8; ++j) x[j] = first + j == token ? 1.0f : 0.0f;
  store(out, i, x);
}

// The sum of `parts` matrices, one behind another.
template <class T>
__global__ void sum_parts(int parts, i64 count, const T* x, float* out) {
  const i64 i = element();
  if (i >= count) return;
  float sum = 0;
#pragma unroll 8
  for (int part = 0; part < parts; ++part) sum += wide(x[part * count + i]);
  out[i] = sum;
}

// The sums of columns over the rows from `first` on, before `end`. The block's threads stand in rows of
// their own. `numbers(row, column, x)` gives eight numbers of a row, those of the column of eights.
template <class F>
__device__ void sum_columns(int eights, i64 first, i64 end, float* sums, F numbers) {
  __shared__ float shared[kThreads][8];
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  float sum[8] = {};
  if (column < eights) {
    for (i64 row = first + threadIdx.y; row < end; row += blockDim.y) {
      float x[8];
      numbers(row, column, x);
      for (int j = 0; j < 8; ++j) sum[j] += x[j];
    }
  }
  const int mine = threadIdx.y * blockDim.x + threadIdx.x;
  for (int j = 0; j < 8; ++j) shared[mine][j] = sum[j];
  __syncthreads();
  if (threadIdx.y > 0 || column >= eights) return;
  for (int other = mine + blockDim.x; other < blockDim.x * blockDim.y; other += blockDim.x) {
    for (int j = 0; j < 8; ++j) sum[j] += shared[other][j];
  }
  store(sums, column, sum);
}
// The same of each part of the rows by itself: blockIdx.y says which.
template <class F>
__device__ void sum_columns_of_parts(int eights, i64 rows, float* sums, F numbers) {
  const i64 part = (rows + gridDim.y - 1) / gridDim.y, first = part * blockIdx.y;
  sum_columns(eights, first, first + part < rows ? first + part : rows,
              sums + (i64)blockIdx.y * eights * 8, numbers);
}
template <class T>
__global__ void column_sums(int columns, i64 rows, const T* x, float* sums) {
  sum_columns_of_parts(columns / 8, rows, sums, [=](i64 row, int column, float (&of)[8]) {
    load(x + row * columns, column, of);
  });
}
// The sums that norm_backward leaves, added up over its blocks.
__global__ void norm_sums(int blocks, const float* sums, float* d_before, float* d_scale, float* d_bias) {
  float* const out = blockIdx.y == 0 ? d_before : blockIdx.y == 1 ? d_scale : d_bias;
  const float* const x = sums + (i64)blockIdx.y * blocks * kChannels;
  sum_columns(kChannels / 8, 0, blocks, out, [=](i64 row, int column, float (&of)[8]) {
    load(x + row * kChannels, column, of);
  });
}

// Gradients of q, k and v, each rows by itself, as rows of the three, and the sums of their columns.
__global__ void join_qkv(i64 tokens, const bf16* __restrict__ parts, bf16* __restrict__ rows, float* sums) {
  constexpr int kEights = kChannels / 8;
  sum_columns_of_parts(3 * kEights, tokens, sums, [=](i64 row, int column, float (&x)[8]) {
    const Eight<bf16> read = eight(parts, (column / kEights * tokens + row) * kEights + column % kEights);
    ((Eight<bf16>*)rows)[row * 3 * kEights + column] = read;
    spread(read, x);
  });
}

// Rows have `parts` parts, as q, k and v, and each of these its heads. By head, element i of the rows
// stands behind all parts, sequences and heads before its own, at its position.
__device__ i64 place_by_head(int parts, i64 count, i64 i) {
  const i64 n = i / (parts * kChannels), column = i % (parts * kChannels);
  const i64 part = column / kChannels, c = column % kChannels;
  const i64 before = (n / SEQUENCE * kChannels + c / HEAD * HEAD) * SEQUENCE;
  return count / parts * part + before + n % SEQUENCE * HEAD + c % HEAD;
}
__global__ void to_heads(int parts, i64 count, const float* rows, float* heads) {
  const i64 i = element();
  if (i < count) heads[place_by_head(parts, count, i)] = rows[i];
}
__global__ void from_heads(int parts, i64 count, const float* heads, float* rows) {
  const i64 i = element();
  if (i < count) rows[i] = heads[place_by_head(parts, count, i)];
}

// One row of scores, those of a query: its weights, 0 for the keys that follow the query.
__global__ void causal_softmax(int sequence, float scale, float* scores) {
  __shared__ float shared[256];
  float* const row = scores + (i64)blockIdx.x * sequence;
  const int seen = blockIdx.x % sequence + 1;
  float largest = -3.4e38f, sum = 0;
  for (int j = threadIdx.x; j < seen; j += blockDim.x) largest = fmaxf(largest, scale * row[j]);
  largest = block_max(largest, shared);
  for (int j = threadIdx.x; j < seen; j += blockDim.x) sum += expf(scale * row[j] - largest);
  sum = block_sum(sum, shared);
  for (int j = threadIdx.x; j < sequence; j += blockDim.x)
    row[j] = j < seen ? expf(scale * row[j] - largest) / sum : 0.0f;
}

// From a row of weights, and the gradients of these, the gradients of the scores, in their place.
__global__ void causal_softmax_backward(int sequence, float scale, const float* weights, float* gradients) {
  __shared__ float shared[256];
  const float* const weight = weights + (i64)blockIdx.x * sequence;
  float* const gradient = gradients + (i64)blockIdx.x * sequence;
  float sum = 0;
  for (int j = threadIdx.x; j < sequence; j += blockDim.x) sum += weight[j] * gradient[j];
  sum = block_sum(sum, shared);
  for (int j = threadIdx.x; j < sequence; j += blockDim.x) gradient[j] = scale * weight[j] * (gradient[j] - sum);
}

// Each block of an equal part.
__global__ void square_sums(i64 count, const float* x, float* sums) {
  __shared__ float shared[256];
  const i64 part = (count + gridDim.x - 1) / gridDim.x, first = part * blockIdx.x;
  const i64 end = first + part < count ? first + part : count;
  float sum = 0;
  for (i64 i = first + threadIdx.x; i < end; i += blockDim.x) sum += x[i] * x[i];
  sum = block_sum(sum, shared);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}
// One block.
__global__ void gradient_norm(int count, const float* square_sums, float* out) {
  __shared__ float shared[256];
  float sum = 0;
  for (int i = threadIdx.x; i < count; i += blockDim.x) sum += square_sums[i];
  sum = block_sum(sum, shared);
  if (threadIdx.x == 0) *out = sqrtf(sum);
}

// Loshchilov and Hutter, "Decoupled weight decay regularization", 2019, algorithm 2; gradients are
// scaled to a norm of `clip` at most.
__global__ void adamw(i64 eights, i64 decayed, float rate, float decay, float clip, float beta1, float beta2,
                      float epsilon, float correction1, float correction2, const float* norm, const float* gradients,
                      float* parameters, float* first, float* second) {
  const i64 i = element();
  if (i >= eights) return;
  const float scale = clip > 0 && *norm > clip ? clip / *norm : 1.0f, left = i < decayed ? rate * decay : 0.0f;
  float gradient[8], p[8], m[8], v[8];
  load(gradients, i, gradient), load(parameters, i, p), load(first, i, m), load(second, i, v);
  for (int j = 0; j < 8; ++j) {
    const float g = gradient[j] * scale;
    m[j] = beta1 * m[j] + (1 - beta1) * g;
    v[j] = beta2 * v[j] + (1 - beta2) * g * g;
    p[j] -= left * p[j];
    p[j] -= rate * (m[j] / correction1) / (sqrtf(v[j] / correction2) + epsilon);
  }
  store(parameters, i, p), store(first, i, m), store(second, i, v);
}

// One thread.
__global__ void keep(i64 step, const float* loss, const float* norm, float* losses, float* norms) {
  losses[step] = *loss;
  norms[step] = *norm;
}
)";

constexpr std::uint32_t kThreads = 256, kThreadsOfLogits = 512, kLanes = 32, kMostOfTeam = 512;

std::int64_t quotient(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

/// Whole warps, of which each thread has eight channels, if there are not too many.
std::uint32_t team_of(std::int64_t channels) {
  const auto warps = quotient(channels / 8, kLanes);
  return static_cast<std::uint32_t>(std::min<std::int64_t>(warps * kLanes, kMostOfTeam));
}

}  // namespace

OwnKernels::OwnKernels(Device& device, DType dtype, const Shape& shape)
    : one_by_one_(device.info().engine == "cpu"),
      team_(one_by_one_ ? 1 : team_of(shape.channels)),
      teams_(one_by_one_ ? 1 : std::max(1u, 384 / team_)) {
  const std::string of_type = dtype == DType::f32 ? "<float>" : "<bf16>";
  std::vector<std::pair<Kernel*, std::string>> wanted{{&draw, "draw"},
                                                      {&embed, "embed" + of_type},
                                                      {&norm, "norm" + of_type},
                                                      {&norm_backward, "norm_backward" + of_type},
                                                      {&norm_sums, "norm_sums"},
                                                      {&column_sums, "column_sums" + of_type},
                                                      {&sum_sums, "column_sums<float>"},
                                                      {&cross_entropy, "cross_entropy" + of_type},
                                                      {&mean, "mean"},
                                                      {&one_hot, "one_hot" + of_type},
                                                      {&sum_parts, "sum_parts" + of_type},
                                                      {&square_sums, "square_sums"},
                                                      {&gradient_norm, "gradient_norm"},
                                                      {&adamw, "adamw"},
                                                      {&keep, "keep"}};
  if (dtype == DType::f32) {
    wanted.insert(wanted.end(), {{&to_heads, "to_heads"},
                                 {&from_heads, "from_heads"},
                                 {&causal_softmax, "causal_softmax"},
                                 {&causal_softmax_backward, "causal_softmax_backward"}});
  } else {
    wanted.insert(wanted.end(), {{&narrow, "narrow"}, {&join_qkv, "join_qkv"}});
  }
  CompileOptions options;
  options.defines = {"CHANNELS=" + std::to_string(shape.channels),
                     "HEAD=" + std::to_string(shape.head_size()),
                     "SEQUENCE=" + std::to_string(shape.sequence),
                     "LANES=" + std::to_string(one_by_one_ ? 1 : kLanes),
                     "TEAM=" + std::to_string(team_),
                     "TEAMS=" + std::to_string(teams_)};
  for (const auto& [kernel, name] : wanted) {
    auto& names = options.names;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  const auto module = device.compile(kSource, options).get();
  for (const auto& [kernel, name] : wanted) *kernel = module.kernel(name);
  const auto bytes = static_cast<std::uint64_t>(shape.vocabulary) * size_of(dtype);
  if (one_by_one_ || bytes > std::numeric_limits<std::uint32_t>::max()) return;
  const auto wanted_bytes = static_cast<std::uint32_t>(bytes);
  if (device.occupancy(cross_entropy, kThreadsOfLogits, wanted_bytes).wait().ok())
    kept_bytes_ = wanted_bytes;
}

LaunchOptions OwnKernels::each(std::int64_t n, bool repeatable) {
  return {.grid = quotient(n, kThreads), .block = kThreads, .repeatable = repeatable};
}

LaunchOptions OwnKernels::rows(std::int64_t n, bool repeatable) const {
  return {.grid = n, .block = one_by_one_ ? 1 : kThreads, .repeatable = repeatable};
}

LaunchOptions OwnKernels::logits(std::int64_t n) const {
  return {.grid = n,
          .block = one_by_one_ ? 1 : kThreadsOfLogits,
          .shared_bytes = kept_bytes_,
          .repeatable = false};
}

LaunchOptions OwnKernels::norm_rows(std::int64_t n) const {
  return one_by_one_ ? LaunchOptions{.grid = n, .block = 1, .repeatable = true} : each(n * kLanes);
}

LaunchOptions OwnKernels::norm_blocks() const {
  return {.grid = kNormBlocks, .block = team_ * teams_, .repeatable = false};
}

LaunchOptions OwnKernels::columns(std::int64_t n, std::int64_t parts, std::int64_t across) const {
  if (one_by_one_) return {.grid = {n / 8, parts}, .block = 1, .repeatable = true};
  return {.grid = {quotient(n / 8, across), parts},
          .block = {across, kThreads / across},
          .repeatable = true};
}

}  // namespace troupe::train
