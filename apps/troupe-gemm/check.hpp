#pragma once

#include <vector>

#include <troupe/distributed.hpp>
#include <troupe/lib/kernel.hpp>
#include <troupe/world.hpp>

#include "numbers.hpp"
#include "options.hpp"

namespace troupe::gemm {

/// An error and what it may be.
struct Judgement {
  double error = 0, tolerance = 0;
  [[nodiscard]] bool right() const { return error <= tolerance; }
};

/// Makes the matrices, on the device, and judges C after some repetitions. It multiplies by vectors
/// with kernels of its own, which have nothing in common with Pgemm: a fault of that cannot cancel.
///
/// R. Freivalds' check ("Probabilistic machines can use less running time", 1977): C x is compared
/// with alpha op(A) (op(B) x) for vectors x of random signs. It costs kVectors (m n + m k + k n)
/// multiplications where the product has m n k. One wrong element of C always shows, any others
/// escape one vector with a probability of at most one half.
///
/// What it may differ by follows from the model of N. Higham and T. Mary ("A new approach to
/// probabilistic rounding error analysis", 2019, and "Sharper probabilistic backward error analysis
/// for basic linear algebra kernels with random data", 2020): roundings are independent of one
/// another, with mean zero, each at most half a unit of the partial sum it rounds; and partial sums
/// of l products of the elements, which are uniform between -1 and 1, have the standard deviation
/// sqrt(l) / 3, in whatever order they are added. Sixteen standard deviations of the whole are
/// allowed.
template <FieldElement T>
class Check {
 public:
  using Matrix = distributed::Matrix<T>;

  /// All ranks call it. Throws Exception (what compiling does).
  Check(Device& device, Collectives& ranks, const Options& options);

  void generate(Which which, Matrix& matrix);
  /// Before the first repetition. All ranks call it.
  void begin(const Matrix& a, const Matrix& b, const Matrix& c);
  /// After so many. All ranks call it, and get the same.
  [[nodiscard]] Judgement residual(const Matrix& c, std::int64_t repetitions);
  /// The same of every element, by a loop on the host. All ranks call it, and get the same.
  [[nodiscard]] Judgement elements(const Matrix& c, std::int64_t repetitions);

 private:
  /// What the repetitions make of the product and of what C was.
  struct History {
    double product = 0, before = 0;  ///< factors
    /// The variance of an element's rounding errors, in the type's own roundings.
    double variance = 0;
  };
  [[nodiscard]] History history(std::int64_t repetitions) const;
  /// op(matrix) times all vectors, of `out` elements each; the same on all ranks.
  GpuRef<double> times(const Matrix& matrix, blas::Transpose transpose, std::int64_t out,
                       const GpuRef<double>& vectors);
  [[nodiscard]] double largest(double mine) const;

  Device& device_;
  Collectives& ranks_;
  const Options& options_;
  Kernel generate_, times_;
  GpuRef<double> signs_;                  ///< the vectors, all of one behind the other
  std::vector<double> product_, before_;  ///< op(A) op(B) x, and of what C was before
};

extern template class Check<float>;
extern template class Check<double>;
extern template class Check<std::complex<float>>;
extern template class Check<std::complex<double>>;

}  // namespace troupe::gemm
