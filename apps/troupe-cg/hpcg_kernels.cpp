#include "hpcg_kernels.hpp"

#include <string>
#include <utility>
#include <vector>

namespace troupe::cg {
namespace {

// The kernels of the timed sets. Every sum has an order of its own: no atomics. Matrix entries are
// read once in a step, and leave the cache first. `Offset` is what columns are stored in: that of
// entry k is base[k / 32] + offset[k].
constexpr auto kSource = R"(
typedef long long i64;
struct Colour {
  int first, end, foreign, lower, coarse, upper;
  i64 entries;
};
struct Colours { Colour of[8]; };

#ifdef __CUDA_ARCH__
#define ONCE(x) __ldcs(&(x))
#else
#define ONCE(x) (x)
#endif

__device__ int element() { return (int)(blockIdx.x * blockDim.x + threadIdx.x); }

// Where entry 0 of a row is.
__device__ i64 place(const Colour& c, int row) {
  const int i = row - c.first;
  return c.entries + (i64)(i / 32) * 32 * (c.lower + c.coarse + c.upper) + i % 32;
}
// The sum of a row's entries [from, end), each times x of its column.
template <class Offset>
__device__ double sum(const double* value, const int* base, const Offset* offset, i64 at, int from, int end,
                      const double* x) {
  const int* const bases = base + at / 32;
  double all = 0;
#pragma unroll 4
  for (int k = from; k < end; ++k) all += ONCE(value[at + 32 * k]) * x[bases[k] + (int)ONCE(offset[at + 32 * k])];
  return all;
}

template <class Offset>
__global__ void fill_offsets(i64 count, const int* column, const int* base, Offset* offset) {
  const i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) offset[i] = column[i] < 0 ? (Offset)0 : (Offset)(column[i] - base[i / 32]);
}

// y = A x without the halo. The blocks take turns among the colours, so that those which run at the
// same time read the same part of x.
template <class Offset>
__global__ void multiply(Colours colours, const double* value, const int* base, const Offset* offset,
                         const double* diagonal, const double* x, double* y) {
  const Colour& c = colours.of[blockIdx.x % 8];
  const int row = c.first + (int)(blockIdx.x / 8 * blockDim.x + threadIdx.x);
  if (row >= c.end) return;
  y[row] = diagonal[row] * x[row] + sum(value, base, offset, place(c, row), 0, c.lower + c.coarse + c.upper, x);
}

// A symmetric sweep from z = 0, whose half forward reads no higher colours: their z is still 0. One
// colour at a time.
template <class Offset>
__global__ void forward(Colour c, const double* value, const int* base, const Offset* offset, const double* diagonal,
                        const double* r, double* z) {
  const int row = c.first + element();
  if (row >= c.end) return;
  z[row] = (r[row] - sum(value, base, offset, place(c, row), 0, c.lower, z)) / diagonal[row];
}
// The half backward. What the higher colours contribute is kept: it is the same when the next sweep
// begins, but for what the coarser grid corrects.
template <class Offset>
__global__ void backward(Colour c, const double* value, const int* base, const Offset* offset, const double* diagonal,
                         double* z, double* higher) {
  const int row = c.first + element();
  if (row >= c.end) return;
  const double all = sum(value, base, offset, place(c, row), c.lower, c.lower + c.coarse + c.upper, z);
  higher[row - c.first] = all;
  z[row] -= all / diagonal[row];
}

// The residual at the rows of the last colour, without the halo, in the coarser grid's order.
template <class Offset>
__global__ void restrict_residual(Colour c, const double* value, const int* base, const Offset* offset,
                                  const double* diagonal, const double* r, const double* z, const int* coarse_row,
                                  double* coarse_r) {
  const int row = c.first + element();
  if (row >= c.end) return;
  const double own = diagonal[row] * z[row] + sum(value, base, offset, place(c, row), 0, c.lower, z);
  coarse_r[coarse_row[row - c.first]] = r[row] - own;
}
// Subtracts what the halo contributes there, for rows [begin, end) of those that have one.
__global__ void less_foreign(int begin, int end, int first, const int* rows, const double* foreign,
                             const int* coarse_row, double* coarse_r) {
  const int i = begin + element();
  if (i < end) coarse_r[coarse_row[rows[i] - first]] -= foreign[i];
}
// The correction, in the order of the last colour's rows.
__global__ void lift(int rows, const int* coarse_row, const double* coarse_z, double* correction) {
  const int i = element();
  if (i < rows) correction[i] = coarse_z[coarse_row[i]];
}

// A symmetric sweep from what the first one and the correction have left. `higher` is what
// backward() has kept, and the correction adds to it. Where `halo` is 1, boundary[row] says which
// element of `foreign` a row has, if it is not negative.
template <class Offset>
__global__ void forward_again(Colour c, int last, int halo, const double* value, const int* base, const Offset* offset,
                              const double* diagonal, const double* r, const int* boundary, const double* foreign,
                              const double* higher, const double* correction, double* z, double* rest) {
  const int row = c.first + element();
  if (row >= c.end) return;
  const i64 at = place(c, row);
  double left = r[row] - sum(value, base, offset, at, 0, c.lower, z);
  if (halo && boundary[row] >= 0) left -= foreign[boundary[row]];
  double all = 0;
  if (c.first < last)
    all = higher[row - c.first] + sum(value, base, offset, at, c.lower, c.lower + c.coarse, correction - last);
  rest[row - c.first] = left;
  z[row] = (left - all) / diagonal[row];
}
// For the first colour what the halo contributes comes later: no row of it depends on another.
__global__ void correct_first(int rows, const int* row, const double* foreign, const double* diagonal, double* z,
                              double* rest) {
  const int i = element();
  if (i >= rows) return;
  rest[row[i]] -= foreign[i];
  z[row[i]] -= foreign[i] / diagonal[row[i]];
}
// The half backward: lower colours contribute what they have contributed forward.
template <class Offset>
__global__ void backward_again(Colour c, const double* value, const int* base, const Offset* offset,
                               const double* diagonal, const double* rest, double* z) {
  const int row = c.first + element();
  if (row >= c.end) return;
  const double all = sum(value, base, offset, place(c, row), c.lower, c.lower + c.coarse + c.upper, z);
  z[row] = (rest[row - c.first] - all) / diagonal[row];
}

// Gathers the rows of x that others need; gather_lifted adds the correction to them.
__global__ void gather(int count, const int* rows, const double* x, double* out) {
  const int i = element();
  if (i < count) out[i] = x[rows[i]];
}
__global__ void gather_lifted(int count, int last, const int* rows, const double* x, const double* correction,
                              double* out) {
  const int i = element();
  if (i >= count) return;
  const int row = rows[i];
  out[i] = x[row] + (row < last ? 0.0 : correction[row - last]);
}
// A row's sum over the halo. Of the `all` rows that have one, entry k of row i is element k all + i.
__device__ double foreign_sum(int all, int i, const int* counts, const double* value, const int* column,
                              const double* halo) {
  double sum = 0;
  for (int k = 0; k < counts[i]; ++k) sum += value[(i64)k * all + i] * halo[column[(i64)k * all + i]];
  return sum;
}
__global__ void foreign_sums(int begin, int end, int all, const int* counts, const double* value, const int* column,
                             const double* halo, double* sums) {
  const int i = begin + element();
  if (i < end) sums[i - begin] = foreign_sum(all, i, counts, value, column, halo);
}
__global__ void add_foreign(int all, const int* rows, const int* counts, const double* value, const int* column,
                            const double* halo, double* y) {
  const int i = element();
  if (i < all) y[rows[i]] += foreign_sum(all, i, counts, value, column, halo);
}

// p = z + beta p, beta the quotient of r'z now and before.
__global__ void direction(int rows, const double* rz, const double* rz_before, const double* z, double* p) {
  const int i = element();
  if (i < rows) p[i] = z[i] + *rz / *rz_before * p[i];
}
// x += alpha p and r -= alpha A p, alpha the quotient of r'z and p'A p; r'z becomes that before.
__global__ void update(int rows, const double* rz, const double* pap, const double* p, const double* q, double* x,
                       double* r, double* rz_before) {
  const int i = element();
  if (i >= rows) return;
  const double alpha = *rz / *pap;
  x[i] += alpha * p[i];
  r[i] -= alpha * q[i];
  if (i == 0) *rz_before = *rz;
}
)";

using Wanted = std::vector<std::pair<Kernel*, std::string>>;

Future<KernelModule> compile(Device& device, const char* source, const char* file,
                             const Wanted& wanted) {
  CompileOptions options;
  options.file = file;
  for (const auto& [kernel, name] : wanted) options.names.push_back(name);
  return device.compile(source, options);
}

void take(const KernelModule& module, const Wanted& wanted) {
  for (const auto& [kernel, name] : wanted) *kernel = module.kernel(name);
}

}  // namespace

HpcgKernels::HpcgKernels(Device& device, std::size_t index_bytes) {
  const std::string of_index = index_bytes == 4 ? "<int>" : "<long long>";
  const Wanted making{{&make_rows, "make_rows" + of_index},
                      {&make_entries, "make_entries" + of_index},
                      {&make_foreign, "make_foreign" + of_index},
                      {&fine_rows, "fine_rows" + of_index},
                      {&count_rows, "count_rows"},
                      {&number_rows, "number_rows"},
                      {&measure, "measure" + of_index},
                      {&fill_own, "fill_own" + of_index},
                      {&find_bases, "find_bases"},
                      {&list_boundary, "list_boundary" + of_index},
                      {&fill_foreign, "fill_foreign" + of_index},
                      {&renumber, "renumber" + of_index},
                      {&match_coarse, "match_coarse" + of_index},
                      {&permute, "permute"},
                      {&exaggerate, "exaggerate"},
                      {&randomise, "randomise"}};
  Wanted solving{{&lift, "lift"},
                 {&gather, "gather"},
                 {&gather_lifted, "gather_lifted"},
                 {&foreign_sums, "foreign_sums"},
                 {&add_foreign, "add_foreign"},
                 {&less_foreign, "less_foreign"},
                 {&correct_first, "correct_first"},
                 {&direction, "direction"},
                 {&update, "update"}};
  for (auto* const set : {&narrow, &wide}) {
    const std::string of_offset = set == &narrow ? "<unsigned short>" : "<int>";
    solving.insert(solving.end(), {{&set->fill_offsets, "fill_offsets" + of_offset},
                                   {&set->multiply, "multiply" + of_offset},
                                   {&set->forward, "forward" + of_offset},
                                   {&set->backward, "backward" + of_offset},
                                   {&set->restrict_residual, "restrict_residual" + of_offset},
                                   {&set->forward_again, "forward_again" + of_offset},
                                   {&set->backward_again, "backward_again" + of_offset}});
  }
  auto made = compile(device, kHpcgMakingKernels, "hpcg_making_kernels.cu", making);
  auto solved = compile(device, kSource, "hpcg_kernels.cu", solving);
  take(made.get(), making);
  take(solved.get(), solving);
}

LaunchOptions HpcgKernels::threads(std::int64_t n, bool repeatable) {
  return {.grid = (n + kThreads - 1) / kThreads, .block = kThreads, .repeatable = repeatable};
}

}  // namespace troupe::cg
