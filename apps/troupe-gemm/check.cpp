#include "check.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace troupe::gemm {
namespace {

using blas::Transpose;

constexpr int kVectors = 4;
constexpr double kDeviations = 16;

// A thread of `times` has a row of op(matrix), and multiplies it by all vectors at once. Complex
// numbers are two numbers, here and in the vectors. Index and Axis are as those of
// troupe::distributed.
constexpr auto kSource = R"(
typedef unsigned long long Bits;
struct Axis { long long extent, whole, block, turn, owners; };
struct Part { Axis rows, columns; };

__device__ long long index_at(const Axis& axis, long long place) {
  return (place / axis.block * axis.owners + axis.turn) * axis.block + place % axis.block;
}
__device__ Bits mixed(Bits x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}
__device__ void set(float& number, Bits bits) { number = (float)(bits >> 40) * 1.1920928955078125e-7f - 1; }
__device__ void set(double& number, Bits bits) { number = (double)(bits >> 11) * 2.220446049250313e-16 - 1; }

template <class T, int kParts>
__global__ void generate(Part part, Bits key, T* out) {
  const long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x, place = at / kParts;
  if (place >= part.rows.extent * part.columns.extent) return;
  const long long row = index_at(part.rows, place % part.rows.extent);
  const long long column = index_at(part.columns, place / part.rows.extent);
  const Bits index = (row + part.rows.whole * column) * kParts + at % kParts;
  set(out[at], mixed(key + index * 0x9e3779b97f4a7c15ull));
}

template <class T, int kParts>
__global__ void times(Part part, int across, double conjugate, const T* matrix, const double* x, double* out) {
  const Axis own = across ? part.columns : part.rows, other = across ? part.rows : part.columns;
  const long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= own.extent) return;
  const T* element = matrix + at * (across ? part.rows.extent : 1) * kParts;
  const long long step = (across ? 1 : part.rows.extent) * kParts;
  double sum[VECTORS][kParts] = {};
  for (long long first = 0; first < other.extent; first += other.block) {
    const double* value = x + index_at(other, first) * kParts;
    const long long count = other.extent - first < other.block ? other.extent - first : other.block;
    for (long long i = 0; i < count; ++i, element += step, value += kParts) {
      const double re = element[0], im = kParts == 2 ? conjugate * element[kParts - 1] : 0;
      for (int v = 0; v < VECTORS; ++v) {
        const double* const z = value + v * other.whole * kParts;
        sum[v][0] += re * z[0];
        if (kParts == 2) {
          sum[v][0] -= im * z[kParts - 1];
          sum[v][kParts - 1] += re * z[kParts - 1] + im * z[0];
        }
      }
    }
  }
  for (int v = 0; v < VECTORS; ++v)
    for (int p = 0; p < kParts; ++p) out[(v * own.whole + index_at(own, at)) * kParts + p] = sum[v][p];
}
)";

struct LocalAxis {
  std::int64_t extent, whole, block, turn, owners;
};
struct Part {
  LocalAxis rows, columns;
};

LocalAxis local(const distributed::Axis& axis, int owner) {
  return {axis.extent_of(owner), axis.extent, axis.block,
          (owner - axis.first + axis.owners) % axis.owners, axis.owners};
}

template <FieldElement T>
Part part_of(const distributed::Matrix<T>& matrix) {
  const auto& grid = matrix.grid();
  return {local(matrix.layout().row_axis(grid.rows()), grid.row()),
          local(matrix.layout().column_axis(grid.columns()), grid.column())};
}

template <FieldElement T>
constexpr int kParts = ComplexElement<T> ? 2 : 1;

/// The factor beside a power of beta; 0 however C was, if it was not read.
double scaled(double factor, double value) {
  return factor == 0 ? 0 : factor * value;
}

double larger(double largest, double one) {
  return one <= largest ? largest : std::isnan(one) ? HUGE_VAL : one;
}

/// In double precision, whatever T is.
template <FieldElement T>
using Wide = std::conditional_t<ComplexElement<T>, std::complex<double>, double>;

template <FieldElement T>
Wide<T> of_op(Transpose transpose, std::uint64_t key, const Pair& stored, std::int64_t row,
              std::int64_t column) {
  if (transpose == Transpose::no) return Wide<T>(element_at<T>(key, stored[0], row, column));
  const Wide<T> mirrored(element_at<T>(key, stored[0], column, row));
  if constexpr (ComplexElement<T>)
    return transpose == Transpose::conjugate ? std::conj(mirrored) : mirrored;
  else
    return mirrored;
}

}  // namespace

template <FieldElement T>
Check<T>::Check(Device& device, Collectives& ranks, const Options& options)
    : device_(device), ranks_(ranks), options_(options) {
  const std::string types = std::string(sizeof(RealOf<T>) == 4 ? "<float, " : "<double, ") +
                            std::to_string(kParts<T>) + ">";
  const auto module = device
                          .compile(kSource, {.names = {"generate" + types, "times" + types},
                                             .defines = {"VECTORS=" + std::to_string(kVectors)}})
                          .get();
  generate_ = module.kernel("generate" + types);
  times_ = module.kernel("times" + types);
}

template <FieldElement T>
void Check<T>::generate(Which which, Matrix& matrix) {
  const auto count = matrix.local().length() * kParts<T>;
  if (count == 0) return;
  device_.launch(generate_, {.grid = (count + 255) / 256, .block = 256, .repeatable = true},
                 part_of(matrix), key_of(options_.seed, which), write(matrix.local()));
}

template <FieldElement T>
void Check<T>::begin(const Matrix& a, const Matrix& b, const Matrix& c) {
  const auto key = key_of(options_.seed, Which::signs);
  std::vector<double> signs(static_cast<std::size_t>(kVectors * options_.n * kParts<T>));
  for (std::size_t i = 0; i < signs.size(); i += kParts<T>)  // real, of complex numbers too
    signs[i] = bits_at(key, i) % 2 == 0 ? 1 : -1;
  signs_ = device_.alloc<double>(std::ssize(signs));
  device_.upload<double>(signs, signs_);
  const auto inner = times(b, options_.transpose_b, options_.k, signs_);
  product_ = device_.download(times(a, options_.transpose_a, options_.m, inner));
  before_ = device_.download(times(c, Transpose::no, options_.m, signs_));
}

template <FieldElement T>
GpuRef<double> Check<T>::times(const Matrix& matrix, Transpose transpose, std::int64_t out,
                               const GpuRef<double>& vectors) {
  auto result = device_.alloc<double>(kVectors * out * kParts<T>);
  device_.fill(result, 0.0);
  const bool across = transpose != Transpose::no;
  const auto own = across ? matrix.local_columns() : matrix.local_rows();
  if (own > 0)
    device_.launch(times_, {.grid = (own + 63) / 64, .block = 64}, part_of(matrix), int{across},
                   transpose == Transpose::conjugate ? -1.0 : 1.0, read(matrix.local()),
                   read(vectors), update(result));
  ranks_.all_reduce(result, ReduceOp::sum);
  return result;
}

/// Each repetition adds as many real products to an element as `terms`, and rounds twice for each:
/// the product, and the sum, which at that time has no more than C's standard deviation, whether
/// the products are added to C one by one or in groups.
template <FieldElement T>
typename Check<T>::History Check<T>::history(std::int64_t repetitions) const {
  const double alpha = static_cast<RealOf<T>>(options_.alpha),
               beta = static_cast<RealOf<T>>(options_.beta),
               terms = static_cast<double>(options_.k) * kParts<T>,
               unit = std::numeric_limits<RealOf<T>>::epsilon() / 2;
  History history{0, 1, 0};
  double factors = 0;  // of the product, were all signs equal
  for (std::int64_t i = 0; i < repetitions; ++i) {
    history.product = history.product * beta + alpha;
    history.before *= beta;
    factors = factors * std::abs(beta) + std::abs(alpha);
    const double deviation =
        factors * std::sqrt(terms) / 3 + std::abs(history.before) / std::sqrt(3.0);
    history.variance += 2 * (terms + 1) * unit * unit * deviation * deviation;
  }
  return history;
}

template <FieldElement T>
Judgement Check<T>::residual(const Matrix& c, std::int64_t repetitions) {
  const auto is = device_.download(times(c, Transpose::no, options_.m, signs_));
  const auto past = history(repetitions);
  Judgement judgement;
  for (std::size_t i = 0; i < is.size(); ++i)
    judgement.error = larger(judgement.error, std::abs(is[i] - past.product * product_[i] -
                                                       scaled(past.before, before_[i])));
  judgement.error = largest(judgement.error);
  // C's own errors add up with random signs, and so do those of the check, which is computed in
  // double precision: in op(B) x, op(A) times that, C x and what C was.
  const double n = static_cast<double>(options_.n),
               terms = static_cast<double>(options_.k) * kParts<T>,
               unit = std::numeric_limits<double>::epsilon() / 2, factor = std::abs(past.product),
               before = std::abs(past.before);
  const double check[] = {factor * n * std::sqrt(terms) / 3, factor * terms * std::sqrt(2 * n) / 3,
                          n * factor * std::sqrt(terms) / 3, 2 * n * before / std::sqrt(3.0)};
  double variance = n * past.variance;
  for (const double one : check) variance += unit * unit * one * one;
  judgement.tolerance = kDeviations * std::sqrt(variance);
  return judgement;
}

template <FieldElement T>
Judgement Check<T>::elements(const Matrix& c, std::int64_t repetitions) {
  const auto past = history(repetitions);
  const auto is = device_.download(c.local());
  const auto k = static_cast<std::size_t>(options_.k);
  const auto key_a = key_of(options_.seed, Which::a), key_b = key_of(options_.seed, Which::b),
             key_c = key_of(options_.seed, Which::c);
  std::vector<Wide<T>> rows(k * static_cast<std::size_t>(c.local_rows())), column(k);
  for (std::size_t i = 0; i < rows.size(); ++i)
    rows[i] =
        of_op<T>(options_.transpose_a, key_a, options_.extents_a(),
                 c.row_at(static_cast<std::int64_t>(i / k)), static_cast<std::int64_t>(i % k));
  Judgement judgement;
  std::size_t place = 0;
  for (std::int64_t j = 0; j < c.local_columns(); ++j) {
    for (std::size_t l = 0; l < k; ++l)
      column[l] = of_op<T>(options_.transpose_b, key_b, options_.extents_b(),
                           static_cast<std::int64_t>(l), c.column_at(j));
    for (std::int64_t i = 0; i < c.local_rows(); ++i, ++place) {
      const auto* const row = rows.data() + static_cast<std::size_t>(i) * k;
      Wide<T> right{};
      for (std::size_t l = 0; l < k; ++l) right += row[l] * column[l];
      right *= past.product;
      if (past.before != 0)
        right +=
            past.before * Wide<T>(element_at<T>(key_c, options_.m, c.row_at(i), c.column_at(j)));
      judgement.error = larger(judgement.error, std::abs(Wide<T>(is[place]) - right));
    }
  }
  judgement.error = largest(judgement.error);
  // The host's own sum errs by no more than the device's; complex numbers in both parts.
  judgement.tolerance = kDeviations * std::sqrt(2 * kParts<T> * past.variance);
  return judgement;
}

template <FieldElement T>
double Check<T>::largest(double mine) const {
  const auto all = ranks_.gather_values(mine);
  return *std::max_element(all.begin(), all.end());
}

template class Check<float>;
template class Check<double>;
template class Check<std::complex<float>>;
template class Check<std::complex<double>>;

}  // namespace troupe::gemm
