#include "oracle.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

namespace troupe::fft3 {
namespace {

using distributed::Box;

constexpr std::int64_t kThreads = 128, kMostThreads = 1 << 17;

// `wanted` is a product of three factors out of tables, or half the sum of two such. A thread of
// `errors` looks at as many elements as there are for each.
constexpr auto kSource = R"(
struct Box { long long first[3], extent[3]; };
struct Points { long long of[3]; };
struct Complex { double re, im; };

__device__ Complex operator*(const Complex& a, const Complex& b) {
  Complex c;
  c.re = a.re * b.re - a.im * b.im;
  c.im = a.re * b.im + a.im * b.re;
  return c;
}
__device__ Complex product(const Box& box, const Points& points, const double* table, long long at) {
  const Complex* const factors = (const Complex*)table;
  const long long z = at % box.extent[2], y = at / box.extent[2] % box.extent[1], x = at / box.extent[2] / box.extent[1];
  return factors[box.first[0] + x] * factors[points.of[0] + box.first[1] + y] *
         factors[points.of[0] + points.of[1] + box.first[2] + z];
}

template <class T, int kParts>
__global__ void fill(Box box, Points points, const double* table, T* out) {
  const long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= box.extent[0] * box.extent[1] * box.extent[2]) return;
  const Complex value = product(box, points, table, at);
  out[at * kParts] = (T)value.re;
  if (kParts == 2) out[at * kParts + kParts - 1] = (T)value.im;
}

template <class T, int kParts, int kMirrored>
__global__ void errors(Box box, Points points, double factor, const T* is, const double* table, const double* mirrored,
                       double* out) {
  const long long all = (long long)gridDim.x * blockDim.x, own = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  double largest = 0;
  for (long long at = own; at < box.extent[0] * box.extent[1] * box.extent[2]; at += all) {
    Complex wanted = product(box, points, table, at);
    if (kMirrored) {
      const Complex other = product(box, points, mirrored, at);
      wanted.re = (wanted.re + other.re) / 2;
      wanted.im = (wanted.im + other.im) / 2;
    }
    const double re = is[at * kParts] * factor - wanted.re;
    const double im = kParts == 2 ? is[at * kParts + kParts - 1] * factor - wanted.im : 0;
    const double off = sqrt(re * re + im * im);
    if (!(off <= largest)) largest = off == off ? off : 1e300;  // not a number
  }
  out[own] = largest;
}
)";

struct Points {
  std::int64_t of[3];
};
static_assert(sizeof(Box) == 6 * sizeof(std::int64_t));

std::complex<double> turned(std::int64_t halves, std::int64_t points) {  // by halves / points of pi
  const auto whole = 2 * points, part = (halves % whole + whole) % whole;
  return std::polar(1.0,
                    std::numbers::pi * static_cast<double>(part) / static_cast<double>(points));
}

/// The chirp of so many points without its shift.
std::complex<double> chirp(std::int64_t j, std::int64_t n) {
  return turned(n % 2 == 0 ? j * j : j * (j + 1), n);
}

constexpr std::int64_t shift_of(std::size_t axis) {
  return 2 * static_cast<std::int64_t>(axis) + 1;
}

/// Its transform at k, of size 1; G: see Oracle.
std::complex<double> transformed(std::int64_t k, std::int64_t n, std::size_t axis,
                                 const std::complex<double>& phase) {
  return turned(-2 * (k * shift_of(axis) % n), n) * turned(n % 2 == 0 ? -k * k : k - k * k, n) *
         phase;
}

template <FieldElement E>
constexpr int kParts = ComplexElement<E> ? 2 : 1;

/// What a stage errs by: see tolerance().
double eta(double order, double unit) {
  if (order > 200) return 7 * std::log2(4 * order) * eta(2, unit);
  const double gamma = (order + 2) * unit / (1 - (order + 2) * unit);
  return unit + gamma * (std::sqrt(order) + unit);
}

}  // namespace

double tolerance(const Triple& points, bool real, bool single, std::int64_t transforms) {
  const double unit =
      (single ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon()) / 2;
  double one = real ? eta(2, unit) : 0;
  for (auto rest : points) {
    for (std::int64_t prime = 2; rest > 1; ++prime) {
      if (prime * prime > rest) prime = rest;
      for (; rest % prime == 0; rest /= prime) one += eta(static_cast<double>(prime), unit);
    }
  }
  // What is compared with errs too, by a few roundings in double precision.
  const double wanted = 16 * std::numeric_limits<double>::epsilon();
  return 8 * static_cast<double>(transforms) * (one + 2 * unit) + wanted;
}

template <FieldElement E>
Oracle<E>::Oracle(Device& device, const Triple& points) : device_(device), points_(points) {
  const std::string type = sizeof(T) == 4 ? "<float, " : "<double, ",
                    parts = std::to_string(kParts<E>);
  const std::string names[] = {"fill" + type + parts + ">", "errors" + type + parts + ", 0>",
                               "errors" + type + "2, " + (kParts<E> == 1 ? "1>" : "0>")};
  std::vector<std::string> all{names[0], names[1]};
  if (names[2] != names[1]) all.push_back(names[2]);
  const auto module = device.compile(kSource, {.names = all}).get();
  fill_ = module.kernel(names[0]);
  error_ = module.kernel(names[1]), spectrum_error_ = module.kernel(names[2]);

  std::vector<std::complex<double>> space, spectrum, mirrored;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const auto n = points[axis];
    std::complex<double> sum;  // G
    for (std::int64_t j = 0; j < n; ++j) sum += chirp(j, n);
    const auto phase = sum / std::abs(sum);
    for (std::int64_t j = 0; j < n; ++j) {
      space.push_back(chirp(j - shift_of(axis), n));
      spectrum.push_back(transformed(j, n, axis, phase));
      mirrored.push_back(std::conj(transformed((n - j) % n, n, axis, phase)));
    }
  }
  for (const auto& [values, table] : {std::pair{&space, &space_}, std::pair{&spectrum, &spectrum_},
                                      std::pair{&mirrored, &mirrored_}}) {
    const std::span numbers(reinterpret_cast<const double*>(values->data()), 2 * values->size());
    *table = device.alloc<double>(std::ssize(numbers));
    device.upload<double>(numbers, *table);
  }
}

template <FieldElement E>
void Oracle<E>::fill(const Box& box, const GpuRef<E>& space) {
  if (box.volume() == 0) return;
  device_.launch(
      fill_,
      {.grid = (box.volume() + kThreads - 1) / kThreads, .block = kThreads, .repeatable = true},
      box, Points{points_[0], points_[1], points_[2]}, read(space_), write(space));
}

template <FieldElement E>
double Oracle<E>::error(const Box& box, double factor, const GpuRef<E>& space) {
  return largest(error_, box, 1 / factor, space, {space_, space_});
}

template <FieldElement E>
double Oracle<E>::spectrum_error(const Box& box, double factor, const GpuRef<Value>& spectrum) {
  const double size = std::sqrt(static_cast<double>(points_[0]) * static_cast<double>(points_[1]) *
                                static_cast<double>(points_[2]));
  return largest(spectrum_error_, box, 1 / (factor * size), spectrum, {spectrum_, mirrored_});
}

template <FieldElement E>
template <class Buffer>
double Oracle<E>::largest(const Kernel& kernel, const Box& box, double factor, const Buffer& buffer,
                          const std::array<GpuRef<double>, 2>& tables) {
  if (box.volume() == 0) return 0;
  const auto blocks = (std::min(box.volume(), kMostThreads) + kThreads - 1) / kThreads;
  const auto errors = device_.alloc<double>(blocks * kThreads);
  device_.launch(kernel, {.grid = blocks, .block = kThreads, .repeatable = true}, box,
                 Points{points_[0], points_[1], points_[2]}, factor, read(buffer), read(tables[0]),
                 read(tables[1]), write(errors));
  const auto all = device_.download(errors);
  return *std::max_element(all.begin(), all.end());
}

template class Oracle<float>;
template class Oracle<double>;
template class Oracle<std::complex<float>>;
template class Oracle<std::complex<double>>;

}  // namespace troupe::fft3
