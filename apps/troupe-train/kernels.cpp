#include "kernels.hpp"

#include <algorithm>

namespace troupe::train {
namespace {

// Matrices of activations have a row of so many channels for each token, and rows stand one behind
// another. Every sum has an order of its own that depends on the shapes alone: no atomics.
constexpr auto kSource = R"(
typedef long long i64;
typedef unsigned long long u64;

struct bf16 { unsigned short bits; };
union word { unsigned bits; float value; };
__device__ float wide(float x) { return x; }
__device__ float wide(bf16 x) { word w; w.bits = (unsigned)x.bits << 16; return w.value; }
__device__ void put(float* to, float x) { *to = x; }
__device__ void put(bf16* to, float x) {  // to the nearest, ties to even
  word w; w.value = x;
  to->bits = x == x ? (unsigned short)((w.bits + 0x7fffu + ((w.bits >> 16) & 1u)) >> 16) : (unsigned short)0x7fffu;
}
__device__ i64 element() { return (i64)blockIdx.x * blockDim.x + threadIdx.x; }

// Over the threads of a block, of which there is a power of two, at most 256.
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

template <class T>
__global__ void embed(int channels, int sequence, i64 count, const int* tokens, const float* of_token,
                      const float* of_position, T* x) {
  const i64 i = element();
  if (i >= count) return;
  const i64 n = i / channels, c = i % channels;
  put(x + i, of_token[(i64)tokens[n] * channels + c] + of_position[n % sequence * channels + c]);
}

// One row of logits: the loss, and in the place of the logits the gradient of `weight` times the loss.
// Both are 0 where there is no target.
template <class T>
__global__ void cross_entropy(int vocabulary, float weight, const int* targets, T* logits, float* losses) {
  __shared__ float shared[256];
  const i64 n = blockIdx.x;
  T* const row = logits + n * vocabulary;
  const int target = targets[n];
  if (target < 0) {
    for (int v = threadIdx.x; v < vocabulary; v += blockDim.x) put(row + v, 0.0f);
    if (threadIdx.x == 0) losses[n] = 0;
    return;
  }
  const float at_target = wide(row[target]);
  float mine = -3.4e38f, sum = 0;  // the largest that this thread has seen; exponentials, over that of it
  for (int v = threadIdx.x; v < vocabulary; v += blockDim.x) {
    const float x = wide(row[v]);
    if (x > mine) sum *= expf(mine - x), mine = x;
    sum += expf(x - mine);
  }
  const float largest = block_max(mine, shared);
  sum = block_sum(sum * expf(mine - largest), shared);
  for (int v = threadIdx.x; v < vocabulary; v += blockDim.x)
    put(row + v, weight * (expf(wide(row[v]) - largest) / sum - (v == target ? 1.0f : 0.0f)));
  if (threadIdx.x == 0) losses[n] = logf(sum) + largest - at_target;
}

// One block. The mean, where `of` is the count.
__global__ void mean(i64 count, float of, const float* x, float* out) {
  __shared__ float shared[256];
  float sum = 0;
  for (i64 i = threadIdx.x; i < count; i += blockDim.x) sum += x[i];
  sum = block_sum(sum, shared);
  if (threadIdx.x == 0) *out = sum / of;
}

// Rows of a matrix with a 1 in the place of the token: the product with a gradient adds up what
// each token's embedding gets.
template <class T>
__global__ void one_hot(int bytes, i64 count, const int* tokens, T* out) {
  const i64 i = element();
  if (i < count) put(out + i, tokens[i / bytes] == i % bytes ? 1.0f : 0.0f);
}

// The sum of `parts` matrices, or rows, one behind another.
template <class T>
__global__ void sum_parts(int parts, i64 count, const T* x, float* out) {
  const i64 i = element();
  if (i >= count) return;
  float sum = 0;
  for (int part = 0; part < parts; ++part) sum += wide(x[part * count + i]);
  out[i] = sum;
}

// The sums of columns, of each part of the rows by itself: blockIdx.y says which.
template <class T>
__global__ void column_sums(int columns, i64 rows, const T* x, float* sums) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= columns) return;
  const i64 part = (rows + gridDim.y - 1) / gridDim.y, first = part * blockIdx.y;
  const i64 end = first + part < rows ? first + part : rows;
  float sum = 0;
  for (i64 row = first; row < end; ++row) sum += wide(x[row * columns + column]);
  sums[(i64)blockIdx.y * columns + column] = sum;
}

// Rows have `parts` parts of so many channels, as q, k and v, and each of these its heads, of `head`
// channels. By head, element i of the rows stands behind all parts, sequences and heads before its
// own, at its position.
__device__ i64 place_by_head(int parts, int channels, int head, int sequence, i64 count, i64 i) {
  const i64 n = i / (parts * channels), column = i % (parts * channels);
  const i64 part = column / channels, c = column % channels;
  const i64 before = (n / sequence * channels + c / head * head) * sequence;
  return count / parts * part + before + n % sequence * head + c % head;
}
template <class T>
__global__ void to_heads(int parts, int channels, int head, int sequence, i64 count, const T* rows, T* heads) {
  const i64 i = element();
  if (i < count) heads[place_by_head(parts, channels, head, sequence, count, i)] = rows[i];
}
template <class T>
__global__ void from_heads(int parts, int channels, int head, int sequence, i64 count, const T* heads, T* rows) {
  const i64 i = element();
  if (i < count) rows[i] = heads[place_by_head(parts, channels, head, sequence, count, i)];
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
__global__ void adamw(i64 count, i64 decayed, float rate, float decay, float clip, float beta1, float beta2,
                      float epsilon, float correction1, float correction2, const float* norm, const float* gradients,
                      float* parameters, float* first, float* second) {
  const i64 i = element();
  if (i >= count) return;
  const float gradient = gradients[i] * (clip > 0 && *norm > clip ? clip / *norm : 1.0f);
  const float m = first[i] = beta1 * first[i] + (1 - beta1) * gradient;
  const float v = second[i] = beta2 * second[i] + (1 - beta2) * gradient * gradient;
  float p = parameters[i];
  if (i < decayed) p -= rate * decay * p;
  parameters[i] = p - rate * (m / correction1) / (sqrtf(v / correction2) + epsilon);
}

// One thread.
__global__ void keep(i64 step, const float* loss, const float* norm, float* losses, float* norms) {
  losses[step] = *loss;
  norms[step] = *norm;
}
)";

constexpr std::uint32_t kThreads = 256;

}  // namespace

OwnKernels::OwnKernels(Device& device, DType dtype)
    : threads_of_row_(device.info().engine == "cpu" ? 1 : kThreads) {
  const std::string of_type = dtype == DType::f32 ? "<float>" : "<bf16>";
  const std::pair<Kernel*, std::string> wanted[] = {
      {&draw, "draw"},
      {&embed, "embed" + of_type},
      {&cross_entropy, "cross_entropy" + of_type},
      {&mean, "mean"},
      {&one_hot, "one_hot" + of_type},
      {&sum_parts, "sum_parts" + of_type},
      {&sum_sums, "sum_parts<float>"},
      {&column_sums, "column_sums" + of_type},
      {&to_heads, "to_heads" + of_type},
      {&from_heads, "from_heads" + of_type},
      {&causal_softmax, "causal_softmax"},
      {&causal_softmax_backward, "causal_softmax_backward"},
      {&square_sums, "square_sums"},
      {&gradient_norm, "gradient_norm"},
      {&adamw, "adamw"},
      {&keep, "keep"}};
  CompileOptions options;
  for (const auto& [kernel, name] : wanted) {
    auto& names = options.names;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  const auto module = device.compile(kSource, options).get();
  for (const auto& [kernel, name] : wanted) *kernel = module.kernel(name);
}

LaunchOptions OwnKernels::each(std::int64_t n, bool repeatable) {
  return {.grid = (n + kThreads - 1) / kThreads, .block = kThreads, .repeatable = repeatable};
}

LaunchOptions OwnKernels::columns(std::int64_t n) {
  return {.grid = {(n + kThreads - 1) / kThreads, kParts}, .block = kThreads, .repeatable = true};
}

LaunchOptions OwnKernels::rows(std::int64_t n, bool repeatable) const {
  return {.grid = n, .block = threads_of_row_, .repeatable = repeatable};
}

}  // namespace troupe::train
