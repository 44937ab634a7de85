#pragma once

#include <cmath>
#include <complex>
#include <functional>
#include <numbers>
#include <numeric>
#include <string>
#include <vector>

#include <troupe/lib/fft.hpp>
#include <troupe/lib/rng.hpp>
#include <troupe/lib/solver.hpp>

#include "device_rig.hpp"

/// Long calls of the dense and spectral libraries, with results that can be told to be right.
namespace troupe::test {

/// A call whose result can be checked by other operations, on buffers of its own.
class LongCall {
 public:
  LongCall(Device& device, std::string operation)
      : device_(&device), operation_(std::move(operation)) {}
  virtual ~LongCall() = default;

  [[nodiscard]] const std::string& operation() const { return operation_; }
  /// Makes what the call writes ready for it, also where it is stale, and waits.
  virtual void prepare() = 0;
  virtual Future<void> submit() = 0;
  /// How far the result is from the right one, in multiples of what is allowed. Throws Exception.
  [[nodiscard]] virtual double error() = 0;
  /// Whether it writes where it reads: a call that was under way cannot run again.
  [[nodiscard]] virtual bool overwrites() const { return false; }
  /// Whether all that it writes is.
  [[nodiscard]] virtual bool is_stale() const = 0;

  /// Empty if all that the call reads and does not write is as it was, else what is wrong.
  [[nodiscard]] std::string damage() const {
    for (const auto& check : inputs_) {
      if (auto found = check(); !found.empty()) return found;
    }
    return {};
  }

 protected:
  /// A buffer that the call only reads.
  template <class T>
  GpuRef<T> input(const std::string& name, std::vector<T> values) {
    const auto buffer = device_->alloc<T>(std::ssize(values), name);
    device_->upload<T>(values, buffer).get();
    inputs_.push_back([=, device = device_, values = std::move(values)]() -> std::string {
      if (!buffer.valid()) return name + " is stale";
      const auto now = device->download(buffer);
      const bool same = std::memcmp(now.data(), values.data(), values.size() * sizeof(T)) == 0;
      return same ? "" : name + " has changed";
    });
    return buffer;
  }
  template <class T>
  void make_room(GpuRef<T>& buffer, std::int64_t count) {
    if (!buffer) buffer = device_->alloc<T>(count);
    if (!buffer.valid()) buffer.renew();
    device_->fill(buffer, T{7}).get();
  }
  /// y = A x
  template <class T>
  [[nodiscard]] GpuRef<T> product(const MatrixRef<GpuRef<T>>& a, const GpuRef<T>& x) {
    auto y = device_->alloc<T>(a.rows);
    device_->blas().gemv(blas::Transpose::no, T(1), a, x, T(0), y);
    return y;
  }
  [[nodiscard]] double norm(const GpuRef<double>& x) {
    const auto result = device_->alloc<double>(1);
    device_->blas().nrm2(x, result);
    return device_->download(result)[0];
  }

  Device* device_;

 private:
  std::string operation_;
  std::vector<std::function<std::string()>> inputs_;
};

template <class T>
double distance(const std::vector<T>& a, const std::vector<T>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double apart = std::abs(a[i] - b[i]);
    most = apart <= most ? most : apart;
    if (std::isnan(apart)) return INFINITY;
  }
  return most;
}

/// Integers from -`most` to `most`.
template <class T>
std::vector<T> integers(std::int64_t count, std::uint64_t seed, int most = 2) {
  std::vector<T> values(static_cast<std::size_t>(count));
  std::mt19937_64 random(seed);
  for (auto& value : values)
    value = static_cast<T>(static_cast<int>(random() % static_cast<unsigned>(2 * most + 1)) - most);
  return values;
}

/// Of what a call works on. On a GPU it takes some milliseconds at least, on the host about 0.1 s.
inline std::int64_t sized(std::int64_t on_gpu, std::int64_t on_host) {
  return on_cuda() ? on_gpu : on_host;
}

/// C = A B, checked by C x = A (B x) in integers (Freivalds, Probabilistic machines can use less
/// running time, 1977).
class Product final : public LongCall {
 public:
  explicit Product(Device& device) : LongCall(device, "blas.gemm") {}
  void prepare() override { make_room(c_, n_ * n_); }
  Future<void> submit() override {
    return device_->blas().gemm(blas::Transpose::no, blas::Transpose::no, 1.0, a_, b_, 0.0,
                                MatrixRef(c_, n_, n_));
  }
  double error() override {
    return distance(device_->download(product(MatrixRef(c_, n_, n_), x_)),
                    device_->download(product(a_, product(b_, x_)))) *
           1e12;
  }
  [[nodiscard]] bool is_stale() const override { return !c_.valid(); }

 private:
  std::int64_t n_ = sized(8192, 1024);
  MatrixRef<GpuRef<double>> a_{input("a", integers<double>(n_*n_, 1)), n_, n_},
      b_{input("b", integers<double>(n_*n_, 2)), n_, n_};
  GpuRef<double> x_ = input("x", integers<double>(n_, 3)), c_;
};

/// Of a lower triangle with small elements beside its diagonal of ones, checked by L (X x) = B x.
class TriangularSystem final : public LongCall {
 public:
  explicit TriangularSystem(Device& device) : LongCall(device, "blas.trsm") {
    auto values = integers<double>(n_ * n_, 1);
    for (auto& value : values) value /= static_cast<double>(n_);
    l_ = MatrixRef(input("l", std::move(values)), n_, n_);
  }
  void prepare() override {
    make_room(x_, n_ * n_);
    device_->copy(b_.buffer, x_).get();
  }
  Future<void> submit() override {
    return device_->blas().trsm(blas::Side::left, blas::Uplo::lower, blas::Transpose::no,
                                blas::Diagonal::unit, 1.0, l_, MatrixRef(x_, n_, n_));
  }
  double error() override {
    const auto y = product(MatrixRef(x_, n_, n_), v_);
    device_->blas().trmv(blas::Uplo::lower, blas::Transpose::no, blas::Diagonal::unit, l_, y);
    return distance(device_->download(y), device_->download(product(b_, v_))) / 1e-8;
  }
  [[nodiscard]] bool overwrites() const override { return true; }
  [[nodiscard]] bool is_stale() const override { return !x_.valid(); }

 private:
  std::int64_t n_ = sized(8192, 1024);
  MatrixRef<GpuRef<double>> l_, b_{input("b", integers<double>(n_*n_, 2)), n_, n_};
  GpuRef<double> v_ = input("v", integers<double>(n_, 3)), x_;
};

/// D = A B + bias, checked as Product is. All sums are exact in f32.
class BiasedProduct final : public LongCall {
 public:
  explicit BiasedProduct(Device& device) : LongCall(device, "blas.matmul") {}
  void prepare() override { make_room(d_, n_ * n_); }
  Future<void> submit() override {
    return device_->blas().matmul<float, float, float>(
        a_, b_, MatrixRef(d_, n_, n_), {.epilogue = blas::Epilogue::bias, .bias = bias_});
  }
  double error() override {
    auto expected = device_->download(product(a_, product(b_, x_)));
    const auto x = device_->download(x_), bias = device_->download(bias_);
    const auto sum = std::accumulate(x.begin(), x.end(), 0.0f);
    for (std::size_t i = 0; i < bias.size(); ++i) expected[i] += bias[i] * sum;
    return distance(device_->download(product(MatrixRef(d_, n_, n_), x_)), expected) * 1e12;
  }
  [[nodiscard]] bool is_stale() const override { return !d_.valid(); }

 private:
  std::int64_t n_ = sized(8192, 1280);
  MatrixRef<GpuRef<float>> a_{input("a", integers<float>(n_*n_, 1, 1)), n_, n_},
      b_{input("b", integers<float>(n_*n_, 2, 1)), n_, n_};
  GpuRef<float> bias_ = input("bias", integers<float>(n_, 3)),
                x_ = input("x", integers<float>(n_, 4, 1)), d_;
};

/// Of a matrix whose rows must all be exchanged, checked by a system whose solution is all ones.
class Factors final : public LongCall {
 public:
  explicit Factors(Device& device) : LongCall(device, "solver.getrf") {
    auto values = integers<double>(n_ * n_, 1);
    for (std::int64_t i = 0; i < n_; ++i)
      values[static_cast<std::size_t>(i * n_ + (i + 1) % n_)] = 3.0 * static_cast<double>(n_);
    matrix_ = MatrixRef(input("matrix", std::move(values)), n_, n_);
  }
  void prepare() override {
    make_room(a_, n_ * n_), make_room(pivots_, n_);
    device_->copy(matrix_.buffer, a_).get();
  }
  Future<void> submit() override {
    return device_->solver().getrf(MatrixRef(a_, n_, n_), pivots_).then([](std::int32_t) {});
  }
  double error() override {
    const auto b = product(matrix_, ones_);
    device_->solver().getrs(blas::Transpose::no, MatrixRef(a_, n_, n_), pivots_,
                            MatrixRef(b, n_, 1));
    return distance(device_->download(b), device_->download(ones_)) / 1e-10;
  }
  [[nodiscard]] bool overwrites() const override { return true; }
  [[nodiscard]] bool is_stale() const override { return !a_.valid() && !pivots_.valid(); }

 private:
  std::int64_t n_ = sized(8192, 1280);
  MatrixRef<GpuRef<double>> matrix_;
  GpuRef<double> ones_ = input("ones", std::vector<double>(static_cast<std::size_t>(n_), 1.0)), a_;
  GpuRef<std::int64_t> pivots_;
};

/// Checked by A V = V diag(w) and by the columns' norms.
class Eigenvectors final : public LongCall {
 public:
  explicit Eigenvectors(Device& device) : LongCall(device, "solver.syevd") {
    auto values = integers<double>(n_ * n_, 1);
    const auto n = static_cast<std::size_t>(n_);
    for (std::size_t j = 0; j < n; ++j)
      for (std::size_t i = 0; i < j; ++i) values[j * n + i] = values[i * n + j];
    matrix_ = MatrixRef(input("matrix", std::move(values)), n_, n_);
  }
  void prepare() override {
    make_room(a_, n_ * n_), make_room(w_, n_);
    device_->copy(matrix_.buffer, a_).get();
  }
  Future<void> submit() override {
    return device_->solver()
        .syevd(solver::Vectors::yes, blas::Uplo::lower, MatrixRef(a_, n_, n_), w_)
        .then([](std::int32_t) {});
  }
  double error() override {
    const MatrixRef v(a_, n_, n_), residual(device_->alloc<double>(n_ * n_), n_, n_);
    device_->blas().dgmm(blas::Side::right, v, w_, residual);
    device_->blas().gemm(blas::Transpose::no, blas::Transpose::no, 1.0, matrix_, v, -1.0, residual);
    return std::max(norm(residual.buffer),
                    std::abs(norm(a_) - std::sqrt(static_cast<double>(n_)))) /
           (1e-11 * static_cast<double>(n_));
  }
  [[nodiscard]] bool overwrites() const override { return true; }
  [[nodiscard]] bool is_stale() const override { return !a_.valid() && !w_.valid(); }

 private:
  std::int64_t n_ = sized(4096, 384);
  MatrixRef<GpuRef<double>> matrix_;
  GpuRef<double> a_, w_;
};

/// Checked by U diag(s) V^T = A.
class SingularValues final : public LongCall {
 public:
  explicit SingularValues(Device& device) : LongCall(device, "solver.gesvd") {}
  void prepare() override {
    for (auto* buffer : {&a_, &u_, &vt_}) make_room(*buffer, n_ * n_);
    make_room(s_, n_);
    device_->copy(matrix_, a_).get();
  }
  Future<void> submit() override {
    return device_->solver()
        .gesvd(solver::Columns::all, solver::Columns::all, MatrixRef(a_, n_, n_), s_,
               MatrixRef(u_, n_, n_), MatrixRef(vt_, n_, n_))
        .then([](std::int32_t) {});
  }
  double error() override {
    const MatrixRef us(device_->alloc<double>(n_ * n_), n_, n_),
        residual(device_->alloc<double>(n_ * n_), n_, n_);
    device_->blas().dgmm(blas::Side::right, MatrixRef(u_, n_, n_), s_, us);
    device_->copy(matrix_, residual.buffer);
    device_->blas().gemm(blas::Transpose::no, blas::Transpose::no, 1.0, us, MatrixRef(vt_, n_, n_),
                         -1.0, residual);
    return norm(residual.buffer) / (1e-11 * static_cast<double>(n_));
  }
  [[nodiscard]] bool overwrites() const override { return true; }
  [[nodiscard]] bool is_stale() const override {
    return !a_.valid() && !s_.valid() && !u_.valid() && !vt_.valid();
  }

 private:
  std::int64_t n_ = sized(1024, 192);
  GpuRef<double> matrix_ = input("matrix", integers<double>(n_*n_, 1)), a_, s_, u_, vt_;
};

/// Of one element that is not 0, at (p, p, …): element (k, l, …) is exp(-2 pi i p (k + l + …) / n).
template <class T>
class Spectrum final : public LongCall {
 public:
  Spectrum(Device& device, int dimensions, std::int64_t n)
      : LongCall(device, "fft.transform"), n_(n) {
    shape_.extents.rank = static_cast<std::uint32_t>(dimensions);
    std::int64_t place = 0;
    for (int i = 0; i < dimensions; ++i) {
      shape_.extents.extent[static_cast<std::size_t>(i)] = n;
      length_ *= n, place = place * n + kPlace;
    }
    std::vector<std::complex<T>> values(static_cast<std::size_t>(length_));
    values[static_cast<std::size_t>(place)] = 1;
    x_ = input("x", std::move(values));
  }
  void prepare() override { make_room(y_, length_); }
  Future<void> submit() override { return device_->fft().forward(x_, y_, shape_); }
  double error() override {
    std::vector<std::complex<T>> turns(static_cast<std::size_t>(n_));
    for (std::int64_t i = 0; i < n_; ++i)
      turns[static_cast<std::size_t>(i)] = std::complex<T>(std::polar(
          1.0, -2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(n_)));
    const auto found = device_->download(y_);
    double most = 0;
    for (std::int64_t i = 0; i < length_; ++i) {
      std::int64_t sum = 0;
      for (auto rest = i; rest > 0; rest /= n_) sum += rest % n_;
      const auto expected = turns[static_cast<std::size_t>(sum % n_ * kPlace % n_)];
      const auto apart =
          static_cast<double>(std::abs(found[static_cast<std::size_t>(i)] - expected));
      if (!(apart <= most)) most = apart;
    }
    return most / (std::is_same_v<T, float> ? 1e-4 : 1e-9);
  }
  [[nodiscard]] bool is_stale() const override { return !y_.valid(); }

 private:
  static constexpr std::int64_t kPlace = 5;
  std::int64_t n_, length_ = 1;
  FftOptions shape_;
  GpuRef<std::complex<T>> x_, y_;
};

/// Random numbers, which are those that the call gave when nothing disturbed it.
class Numbers : public LongCall {
 public:
  Numbers(Device& device, std::string operation, std::int64_t count)
      : LongCall(device, std::move(operation)), count_(count) {}
  void prepare() override { make_room(numbers_, count_); }
  double error() override {
    const auto found = device_->download(numbers_);
    if (first_.empty()) {
      // What stood there before would be all alike.
      const auto alike = std::count(found.begin(), found.end(), found.front());
      first_ = found;
      return alike < count_ / 8 ? 0 : 2;
    }
    return found == first_ ? 0 : 2;
  }
  [[nodiscard]] bool is_stale() const override { return !numbers_.valid(); }

 protected:
  std::int64_t count_;
  GpuRef<std::uint32_t> numbers_;

 private:
  std::vector<std::uint32_t> first_;
};

/// A generator is made for each call. On the host MT19937 would take 4 s.
class GeneratorSetUp final : public Numbers {
 public:
  explicit GeneratorSetUp(Device& device)
      : Numbers(device, "rng.sequence", sized(1 << 26, 1 << 16)) {}
  Future<void> submit() override {
    RandomSequence sequence(
        {.generator = on_cuda() ? rng::Generator::mt19937 : rng::Generator::xorwow,
         .distribution = rng::Distribution::bits,
         .seed = 11});
    return device_->rng().next(sequence, numbers_);
  }
};

class PoissonNumbers final : public Numbers {
 public:
  explicit PoissonNumbers(Device& device)
      : Numbers(device, "rng.poisson", sized(1 << 28, 1 << 20)) {}
  Future<void> submit() override { return device_->rng().poisson(numbers_, {.seed = 12}, 1000.0); }
};

}  // namespace troupe::test
