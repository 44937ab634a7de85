#include "hpcg_kernels.hpp"

namespace troupe::cg {

// `Index` is that of the reference's matrices. "Old" rows are those of the reference, whose order
// is HPCG's; "new" ones are ordered by colours.
const char* const kHpcgMakingKernels = R"(
typedef long long i64;
typedef unsigned long long u64;
struct Box {
  i64 points[3];
  int lower[3], upper[3];
  i64 halo[27];
};
struct Order { int place[8]; };
struct Colour {
  int first, end, foreign, lower, coarse, upper;
  i64 entries;
};
struct Colours { Colour of[8]; };
struct Sections { int begin[64], width[64]; };

__device__ i64 element() { return (i64)blockIdx.x * blockDim.x + threadIdx.x; }

__device__ void point_of(const Box& box, i64 row, int* c) {  // rows have numbers of 32 bits
  const unsigned all = (unsigned)row, nx = (unsigned)box.points[0], ny = (unsigned)box.points[1];
  c[0] = (int)(all % nx);
  c[1] = (int)(all / nx % ny);
  c[2] = (int)(all / nx / ny);
}
// The entries of all rows before this one; also those of other ranks' points where all is 1.
__device__ i64 entries_before(const Box& box, int all, i64 row) {
  int c[3];
  i64 at[3], before[3], total[3];
  point_of(box, row, c);
  for (int a = 0; a < 3; ++a) {
    const i64 n = box.points[a];
    const i64 no_lower = !(all && box.lower[a]), no_upper = !(all && box.upper[a]);
    at[a] = 3 - (c[a] == 0 ? no_lower : 0) - (c[a] == n - 1 ? no_upper : 0);
    before[a] = 3 * (i64)c[a] - (c[a] > 0 ? no_lower : 0) - (c[a] == n ? no_upper : 0);
    total[a] = 3 * n - no_lower - no_upper;
  }
  return before[2] * total[1] * total[0] + at[2] * (before[1] * total[0] + at[1] * before[0]);
}

// Where the entries of each row of HPCG's operator begin between a rank's own points, its diagonal,
// and the right side whose solution is 1 everywhere. There is a thread for the end of the rows too.
template <class Index>
__global__ void make_rows(Box box, i64 rows, Index* begin, double* diagonal, double* b) {
  const i64 row = element();
  if (row > rows) return;
  begin[row] = (Index)entries_before(box, 0, row);
  if (row == rows) return;
  diagonal[row] = 26;
  b[row] = (double)(27 - (entries_before(box, 1, row + 1) - entries_before(box, 1, row)));
}
// The entries: a block has as many rows as threads, and goes through their entries together.
template <class Index>
__global__ void make_entries(Box box, i64 rows, const Index* begin, Index* column, double* value) {
  __shared__ i64 begins[257];
  const int mine = threadIdx.x, all = blockDim.x;
  const i64 first = (i64)blockIdx.x * all;
  begins[mine] = begin[first + mine < rows ? first + mine : rows];
  if (mine == 0) begins[all] = begin[first + all < rows ? first + all : rows];
  __syncthreads();
  for (i64 k = begins[0] + mine; k < begins[all]; k += all) {
    int low = 0, high = all;
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      begins[middle] <= k ? low = middle : high = middle;
    }
    int c[3], from[3], count[3];
    point_of(box, first + low, c);
    for (int a = 0; a < 3; ++a) {
      from[a] = c[a] - (c[a] > 0);
      count[a] = 3 - (c[a] == 0) - (c[a] == box.points[a] - 1);
    }
    const int j = (int)(k - begins[low]);
    const i64 x = from[0] + j % count[0], y = from[1] + j / count[0] % count[1], z = from[2] + j / count[0] / count[1];
    const i64 other = x + box.points[0] * (y + box.points[1] * z);
    column[k] = (Index)other;
    value[k] = other == first + low ? 26.0 : -1.0;
  }
}
// The entries between a rank's own points and those of other ranks.
template <class Index>
__global__ void make_foreign(Box box, i64 rows, Index* begin, Index* column, double* value) {
  const i64 row = element();
  if (row > rows) return;
  i64 k = entries_before(box, 1, row) - entries_before(box, 0, row);
  begin[row] = (Index)k;
  if (row == rows) return;
  int c[3];
  point_of(box, row, c);
  for (int d = 0; d < 27; ++d) {
    const int step[3] = {d % 3 - 1, d / 3 % 3 - 1, d / 9 - 1};
    int direction = 0, sides = 0, there = 1;
    i64 place = 0;  // in what the halo has of that direction
    for (int a = 2; a >= 0; --a) {
      const i64 o = c[a] + step[a];
      const int side = o < 0 ? -1 : o >= box.points[a] ? 1 : 0;
      if ((side < 0 && !box.lower[a]) || (side > 0 && !box.upper[a])) there = 0;
      if (side != 0) sides = 1;
      direction = 3 * direction + side + 1;
      place = side == 0 ? place * box.points[a] + o : place;
    }
    if (!there || !sides) continue;
    column[k] = (Index)(box.halo[direction] + place);
    value[k++] = -1.0;
  }
}
// The row of the finer grid where each row's point lies.
template <class Index>
__global__ void fine_rows(Box coarse, i64 rows, Index* fine) {
  const i64 row = element();
  if (row >= rows) return;
  int c[3];
  point_of(coarse, row, c);
  fine[row] = (Index)(2 * (c[0] + 2 * coarse.points[0] * (c[1] + 2 * coarse.points[1] * c[2])));
}

__device__ int colour_at(const Box& box, const Order& order, i64 row) {
  int c[3];
  point_of(box, row, c);
  return order.place[c[0] % 2 + 2 * (c[1] % 2) + 4 * (c[2] % 2)];
}
// A counting sort: a thread has `chunk` rows, one after another. How many are of each colour:
__global__ void count_rows(Box box, Order order, i64 rows, int chunk, int chunks, int* counts) {
  const int mine = (int)element();
  if (mine >= chunks) return;
  int count[8];
  for (int k = 0; k < 8; ++k) count[k] = 0;
  for (i64 row = (i64)mine * chunk; row < rows && row < (i64)(mine + 1) * chunk; ++row)
    ++count[colour_at(box, order, row)];
  for (int k = 0; k < 8; ++k) counts[(i64)k * chunks + mine] = count[k];
}
// `next`: the new row of the first of each.
__global__ void number_rows(Box box, Order order, i64 rows, int chunk, int chunks, const int* next, int* new_row,
                            int* old_row) {
  const int mine = (int)element();
  if (mine >= chunks) return;
  int place[8];
  for (int k = 0; k < 8; ++k) place[k] = next[(i64)k * chunks + mine];
  for (i64 row = (i64)mine * chunk; row < rows && row < (i64)(mine + 1) * chunk; ++row) {
    const int to = place[colour_at(box, order, row)]++;
    new_row[row] = to;
    old_row[to] = (int)row;
  }
}

__device__ int colour_of(const Colours& colours, int row) {
  int c = 0;
  while (row >= colours.of[c].end) ++c;
  return c;
}
__device__ void raise(int* most, int to) {
  if (*(volatile int*)most < to) atomicMax(most, to);  // few rows have more than all before them
}
// The most entries that a row of each colour has of each colour, but for the diagonal.
template <class Index>
__global__ void measure(Colours colours, i64 rows, const Index* begin, const Index* column, const int* new_row,
                        const int* old_row, int* most) {
  const i64 row = element();
  if (row >= rows) return;
  int count[8];
  for (int k = 0; k < 8; ++k) count[k] = 0;
  const i64 old = old_row[row];
  for (i64 k = begin[old]; k < begin[old + 1]; ++k) {
    const int other = new_row[column[k]];
    if (other != row) ++count[colour_of(colours, other)];
  }
  const int which = colour_of(colours, (int)row);
  for (int k = 0; k < 8; ++k) raise(most + 8 * which + k, count[k]);
}

// A missing entry of a section has instead of a column -1 - a row of the section's colour.
template <class Index>
__global__ void fill_own(Colours colours, Sections sections, i64 rows, const Index* begin, const Index* column,
                         const double* value, const int* new_row, const int* old_row, double* new_value,
                         int* new_column, double* diagonal) {
  const i64 row = element();
  if (row >= rows) return;
  const int which = colour_of(colours, (int)row);
  const Colour& c = colours.of[which];
  const int i = (int)row - c.first;
  const i64 at = c.entries + (i64)(i / 32) * 32 * (c.lower + c.coarse + c.upper) + i % 32;
  int next[8];
  for (int k = 0; k < 8; ++k) next[k] = sections.begin[8 * which + k];
  const i64 old = old_row[row], end = begin[old + 1];
  // Several at once, because rows that lie beside one another here do not in the old order.
  const int batch = 9;
  for (i64 k = begin[old]; k < end; k += batch) {
    int other[batch];
    double its[batch];
#pragma unroll
    for (int j = 0; j < batch; ++j) {
      other[j] = k + j < end ? (int)column[k + j] : -1;
      its[j] = k + j < end ? value[k + j] : 0;
    }
#pragma unroll
    for (int j = 0; j < batch; ++j) {
      if (other[j] < 0) continue;
      const int to = new_row[other[j]];
      if (to == row) {
        diagonal[row] = its[j];
        continue;
      }
      const i64 place = at + 32 * next[colour_of(colours, to)]++;
      new_column[place] = to;
      new_value[place] = its[j];
    }
  }
  for (int k = 0; k < 8; ++k)
    for (; next[k] < sections.begin[8 * which + k] + sections.width[8 * which + k]; ++next[k]) {
      new_column[at + 32 * next[k]] = -1 - colours.of[k].first;
      new_value[at + 32 * next[k]] = 0;
    }
}
// The least column of entry k of all rows of each slice, and the most by which another exceeds it.
__global__ void find_bases(i64 count, const int* column, int* base, int* most) {
  const i64 i = element();
  if (i >= count) return;
  const int4* const four = (const int4*)(column + 32 * i);
  int least = 2147483647, greatest = -1, missing = 0;
  for (int k = 0; k < 8; ++k) {
    const int4 some = four[k];
    const int each[4] = {some.x, some.y, some.z, some.w};
    for (int j = 0; j < 4; ++j) {
      if (each[j] < 0) missing = each[j];
      if (each[j] >= 0 && each[j] < least) least = each[j];
      if (each[j] > greatest) greatest = each[j];
    }
  }
  base[i] = greatest < 0 ? -1 - missing : least;
  raise(most, greatest < 0 ? 0 : greatest - least);
}

// The new numbers of rows with a halo, how many entries they have of it, the most of any; and for
// each row which of these it is.
template <class Index>
__global__ void list_boundary(int all, const int* old_rows, const Index* begin, const int* new_row, int* rows,
                              int* counts, int* boundary, int* most) {
  const int i = (int)element();
  if (i >= all) return;
  const i64 old = old_rows[i];
  rows[i] = new_row[old];
  counts[i] = (int)(begin[old + 1] - begin[old]);
  boundary[rows[i]] = i;
  raise(most, counts[i]);
}
template <class Index>
__global__ void fill_foreign(int all, const int* old_rows, const Index* begin, const Index* column,
                             const double* value, double* new_value, int* new_column) {
  const int i = (int)element();
  if (i >= all) return;
  const i64 old = old_rows[i];
  for (i64 k = begin[old], to = i; k < begin[old + 1]; ++k, to += all) {
    new_column[to] = (int)column[k];
    new_value[to] = value[k];
  }
}

template <class Index>
__global__ void renumber(i64 count, const int* new_row, const Index* old_rows, int* new_rows) {
  const i64 i = element();
  if (i < count) new_rows[i] = new_row[old_rows[i]];
}
// For each row of the last colour the row of the coarser grid.
template <class Index>
__global__ void match_coarse(i64 count, int last, const Index* fine, const int* new_row_of_fine,
                             const int* new_row_of_coarse, int* coarse_row) {
  const i64 i = element();
  if (i < count) coarse_row[new_row_of_fine[fine[i]] - last] = new_row_of_coarse[i];
}
__global__ void permute(i64 rows, const int* old_row, const double* x, double* y) {
  const i64 i = element();
  if (i < rows) y[i] = x[old_row[i]];
}
// As TestCG.cpp does it: times 10^6, the first nine of all rows times 2 to 10 times that.
__global__ void exaggerate(i64 rows, i64 first_row, const int* old_row, const double* x, double* y) {
  const i64 i = element();
  if (i >= rows) return;
  const i64 row = first_row + old_row[i];
  y[i] = x[i] * (row < 9 ? (double)(row + 2) * 1e6 : 1e6);
}
// From 1/2 to 3/2, by the finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
__global__ void randomise(i64 rows, i64 first_row, i64 seed, const int* old_row, double* x) {
  const i64 i = element();
  if (i >= rows) return;
  u64 bits = ((u64)seed << 48) + (u64)(first_row + old_row[i]);
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9ull;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebull;
  bits = (bits ^ (bits >> 31)) >> 11;
  x[i] = 0.5 + (double)bits / 9007199254740992.0;
}
)";

}  // namespace troupe::cg
