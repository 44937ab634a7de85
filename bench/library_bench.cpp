// The longest calls of the dense and spectral libraries by troupe and by the libraries themselves.
//
// Both sides are measured by this one program, in turn, as in cuda_raw_bench. What a call destroys
// is copied back before it, on both sides. A figure is met if the interval of its ratio reaches it.
#include <cufft.h>
#include <curand.h>
#include <cusolverDn.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <cstdio>
#include <stdexcept>
#include <string>

#include <troupe/lib/blas.hpp>
#include <troupe/lib/fft.hpp>
#include <troupe/lib/rng.hpp>
#include <troupe/lib/solver.hpp>

#include "comparison.hpp"
#include "local_device.hpp"
#include "raw_cuda.hpp"
#include "sides.hpp"

namespace troupe::bench {
namespace {

using bench::must;

void must(cusolverStatus_t status) {
  if (status != CUSOLVER_STATUS_SUCCESS)
    throw std::runtime_error(fmt::format("cuSOLVER: status {}", static_cast<int>(status)));
}
void must(cufftResult status) {
  if (status != CUFFT_SUCCESS)
    throw std::runtime_error(fmt::format("cuFFT: status {}", static_cast<int>(status)));
}
void must(curandStatus_t status) {
  if (status != CURAND_STATUS_SUCCESS)
    throw std::runtime_error(fmt::format("cuRAND: status {}", static_cast<int>(status)));
}

struct Bench {
  Device* device;
  std::int64_t repetitions;
  std::vector<Comparison>* lines;

  /// `raw` and `ours` queue one call each; `wait` for the raw ones. `calls` make a measurement.
  template <class RawCall, class OurCall>
  void measure(std::string name, Raw& raw, int calls, const RawCall& raw_call,
               const OurCall& our_call) const {
    const auto theirs = [&](int count) {
      for (int i = 0; i < count; ++i) raw_call();
      raw.wait();
    };
    const auto ours = [&](int count) {
      for (int i = 1; i < count; ++i) (void)our_call();
      our_call().get();
    };
    auto* const tiny = static_cast<float*>(raw.device(sizeof(float)));
    const auto our_tiny = device->alloc<float>(1);
    const auto wake_raw = [&] {
      must(cudaMemsetAsync(tiny, 0, sizeof(float), raw.stream()));
      raw.wait();
    };
    lines->push_back(compare(std::move(name), "ms", repetitions, {[&] { theirs(calls); }, wake_raw},
                             {[&] { ours(calls); }, [&] { device->fill(our_tiny, 0.0f).get(); }},
                             [calls](double seconds) { return seconds / calls * 1e3; }));
  }
};

/// The first elements of both sides' results must agree, relative to the largest of them.
template <class T>
void check_equal(Raw& raw, const T* theirs, Device& device, const GpuRef<T>& ours,
                 const std::string& what, double tolerance) {
  const auto count = std::min<std::int64_t>(ours.length(), 4096);
  std::vector<T> values(static_cast<std::size_t>(count));
  raw.copy(values.data(), theirs, values.size() * sizeof(T));
  raw.wait();
  const auto mine = device.download(ours.slice(0, count));
  const auto number = [](const T& value) {
    if constexpr (Complex<T>)
      return std::complex<double>(value);
    else if constexpr (std::is_same_v<T, BFloat16>)
      return static_cast<double>(std::bit_cast<float>(std::uint32_t{value.bits} << 16));
    else
      return static_cast<double>(value);
  };
  double apart = 0, largest = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto difference = std::abs(number(values[i]) - number(mine[i]));
    apart = std::isnan(difference) ? INFINITY : std::max(apart, difference);
    largest = std::max(largest, std::abs(number(values[i])));
  }
  if (apart > tolerance * largest || largest == 0)
    throw std::runtime_error(fmt::format("{}: troupe's result differs by {}", what, apart));
}

/// The same contents on both sides.
template <class T>
struct Both {
  T* raw;
  GpuRef<T> ours;

  Both(Raw& side, Device& device, std::int64_t count)
      : raw(static_cast<T*>(side.device(static_cast<std::size_t>(count) * sizeof(T)))),
        ours(device.alloc<T>(count)) {}
  Both(Raw& side, Device& device, const std::vector<T>& values)
      : Both(side, device, static_cast<std::int64_t>(values.size())) {
    side.copy(raw, values.data(), values.size() * sizeof(T));
    side.wait();
    device.upload(std::span<const T>(values), ours).get();
  }
};

template <class T, blas::Compute compute>
void product(const Bench& bench, std::string name, std::int64_t n, cudaDataType type,
             cublasComputeType_t raw_compute, double tolerance) {
  using Scale = detail::ScaleOf<T, compute>;
  Raw raw;
  const Both<T> a(raw, *bench.device, numbers<T>(n * n, 1)),
      b(raw, *bench.device, numbers<T>(n * n, 2)), c(raw, *bench.device, n * n);
  const Scale one = 1, zero = 0;
  const MatrixRef x(a.ours, n, n), y(b.ours, n, n), z(c.ours, n, n);
  name = fmt::format("gemm {} n={}", name, n);
  bench.measure(
      name, raw, n <= 4096 ? 100 : 4,
      [&] {
        must(cublasGemmEx_64(raw.blas(), CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, a.raw, type, n,
                             b.raw, type, n, &zero, c.raw, type, n, raw_compute,
                             CUBLAS_GEMM_DEFAULT));
      },
      [&] {
        return bench.device->blas().gemm_ex<compute, T, T>(blas::Transpose::no, blas::Transpose::no,
                                                           one, x, y, zero, z);
      });
  check_equal(raw, c.raw, *bench.device, c.ours, name, tolerance);
}

void products(const Bench& bench, std::int64_t largest) {
  using blas::Compute;
  for (std::int64_t n = std::min<std::int64_t>(largest, 4096); n <= largest; n *= 4) {
    product<BFloat16, Compute::f32>(bench, "bf16", n, CUDA_R_16BF, CUBLAS_COMPUTE_32F, 1e-2);
    product<float, Compute::tf32>(bench, "tf32", n, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, 1e-4);
    product<float, Compute::f32>(bench, "f32", n, CUDA_R_32F, CUBLAS_COMPUTE_32F, 1e-4);
    product<double, Compute::f64>(bench, "f64", n, CUDA_R_64F, CUBLAS_COMPUTE_64F, 1e-12);
  }
}

/// Complex and forward, of f32.
void transform(const Bench& bench, const std::string& name, const FftOptions& shape) {
  Raw raw;
  std::int64_t length = 1;
  long long extents[fft::kMaxRank] = {};
  for (int i = 0; i < static_cast<int>(shape.extents.rank); ++i) {
    extents[i] = shape.extents.extent[static_cast<std::size_t>(i)];
    length *= extents[i];
  }
  const auto count = length * shape.batch;
  std::vector<std::complex<float>> values(static_cast<std::size_t>(count));
  const auto parts = numbers<float>(2 * count, 3);
  std::copy(parts.begin(), parts.end(), reinterpret_cast<float*>(values.data()));
  const Both<std::complex<float>> x(raw, *bench.device, values), y(raw, *bench.device, count);
  cufftHandle plan = 0;
  std::size_t work = 0;
  must(cufftCreate(&plan));
  must(cufftMakePlanMany64(plan, static_cast<int>(shape.extents.rank), extents, nullptr, 1, length,
                           nullptr, 1, length, CUFFT_C2C, shape.batch, &work));
  must(cufftSetStream(plan, raw.stream()));
  bench.measure(
      name, raw, 100,
      [&] {
        must(cufftExecC2C(plan, reinterpret_cast<cufftComplex*>(x.raw),
                          reinterpret_cast<cufftComplex*>(y.raw), CUFFT_FORWARD));
      },
      [&] { return bench.device->fft().forward(x.ours, y.ours, shape); });
  check_equal(raw, y.raw, *bench.device, y.ours, name, 1e-5);
  must(cufftDestroy(plan));
}

void transforms(const Bench& bench, std::int64_t edge) {
  transform(bench, "fft 2^10, 2^16 of them", {.extents = {1024}, .batch = edge * 128});
  transform(bench, "fft 2^20, 64 of them", {.extents = {1 << 20}, .batch = edge / 8});
  transform(bench, fmt::format("fft {}^3", edge), {.extents = {edge, edge, edge}});
}

/// The factorisations of cuSOLVER's that a raw program would call, with memory for one of them.
class RawSolver {
 public:
  RawSolver(Raw& raw, std::int64_t n) : raw_(&raw), n_(n) {
    must(cusolverDnCreate(&handle_));
    must(cusolverDnSetStream(handle_, raw.stream()));
    must(cusolverDnCreateParams(&params_));
    info_ = static_cast<int*>(raw.device(sizeof(int)));
    pivots_ =
        static_cast<std::int64_t*>(raw.device(static_cast<std::size_t>(n) * sizeof(std::int64_t)));
    values_ = static_cast<double*>(raw.device(static_cast<std::size_t>(n) * sizeof(double)));
  }
  ~RawSolver() {
    raw_->wait();
    (void)cusolverDnDestroyParams(params_);
    (void)cusolverDnDestroy(handle_);
  }
  RawSolver(const RawSolver&) = delete;
  RawSolver& operator=(const RawSolver&) = delete;

  void potrf(double* a) {
    room(cusolverDnXpotrf_bufferSize(handle_, params_, kHalf, n_, kType, a, n_, kType, &on_device_,
                                     &on_host_));
    must(cusolverDnXpotrf(handle_, params_, kHalf, n_, kType, a, n_, kType, device_, on_device_,
                          host_.data(), on_host_, info_));
  }
  void getrf(double* a) {
    room(cusolverDnXgetrf_bufferSize(handle_, params_, n_, n_, kType, a, n_, kType, &on_device_,
                                     &on_host_));
    must(cusolverDnXgetrf(handle_, params_, n_, n_, kType, a, n_, pivots_, kType, device_,
                          on_device_, host_.data(), on_host_, info_));
  }
  void syevd(double* a) {
    room(cusolverDnXsyevd_bufferSize(handle_, params_, CUSOLVER_EIG_MODE_VECTOR, kHalf, n_, kType,
                                     a, n_, kType, values_, kType, &on_device_, &on_host_));
    must(cusolverDnXsyevd(handle_, params_, CUSOLVER_EIG_MODE_VECTOR, kHalf, n_, kType, a, n_,
                          kType, values_, kType, device_, on_device_, host_.data(), on_host_,
                          info_));
  }
  [[nodiscard]] const double* eigenvalues() const { return values_; }

 private:
  static constexpr auto kHalf = CUBLAS_FILL_MODE_LOWER;
  static constexpr auto kType = CUDA_R_64F;

  void room(cusolverStatus_t asked) {
    must(asked);
    host_.resize(std::max(host_.size(), on_host_));
    if (on_device_ <= has_) return;
    device_ = raw_->device(on_device_);
    has_ = on_device_;
  }
  Raw* raw_;
  std::int64_t n_;
  cusolverDnHandle_t handle_ = nullptr;
  cusolverDnParams_t params_ = nullptr;
  int* info_ = nullptr;
  std::int64_t* pivots_ = nullptr;
  double* values_ = nullptr;
  void* device_ = nullptr;
  std::vector<std::byte> host_;
  std::size_t on_device_ = 0, on_host_ = 0, has_ = 0;
};

void factorisations(const Bench& bench, std::int64_t n) {
  Raw raw;
  RawSolver theirs(raw, n);
  auto values = numbers<double>(n * n, 4);
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = 0; i < j; ++i)
      values[static_cast<std::size_t>(j * n + i)] = values[static_cast<std::size_t>(i * n + j)];
    values[static_cast<std::size_t>(j * (n + 1))] += static_cast<double>(n);  // definite
  }
  const Both<double> saved(raw, *bench.device, values), a(raw, *bench.device, n * n);
  const auto pivots = bench.device->alloc<std::int64_t>(n);
  const auto eigenvalues = bench.device->alloc<double>(n);
  const MatrixRef matrix(a.ours, n, n);
  const auto bytes = values.size() * sizeof(double);
  const auto restore_raw = [&] { raw.copy(a.raw, saved.raw, bytes); };
  const auto restore = [&] { (void)bench.device->copy(saved.ours, a.ours); };
  const auto line = [&](const char* name, int calls, const auto& raw_call, const auto& our_call) {
    bench.measure(
        fmt::format("{} f64 n={}", name, n), raw, calls, [&] { restore_raw(), raw_call(a.raw); },
        [&] {
          restore();
          return our_call();
        });
  };
  auto solver = bench.device->solver();
  line(
      "potrf", 10, [&](double* x) { theirs.potrf(x); },
      [&] { return solver.potrf(blas::Uplo::lower, matrix); });
  check_equal(raw, a.raw, *bench.device, a.ours, "potrf", 1e-12);
  line(
      "getrf", 4, [&](double* x) { theirs.getrf(x); },
      [&] { return solver.getrf(matrix, pivots); });
  check_equal(raw, a.raw, *bench.device, a.ours, "getrf", 1e-12);
  line(
      "syevd", 1, [&](double* x) { theirs.syevd(x); },
      [&] { return solver.syevd(solver::Vectors::yes, blas::Uplo::lower, matrix, eigenvalues); });
  check_equal(raw, theirs.eigenvalues(), *bench.device, eigenvalues, "syevd", 1e-12);
}

void random_numbers(const Bench& bench, std::int64_t count) {
  Raw raw;
  const Both<float> x(raw, *bench.device, count);
  curandGenerator_t generator = nullptr;
  must(curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_PHILOX4_32_10));
  must(curandSetStream(generator, raw.stream()));
  must(curandSetPseudoRandomGeneratorSeed(generator, 5));
  const auto name = fmt::format("uniform f32, {} Mi", count >> 20);
  bench.measure(
      name, raw, 100,
      [&] { must(curandGenerateUniform(generator, x.raw, static_cast<std::size_t>(count))); },
      [&] { return bench.device->rng().uniform(x.ours, {.seed = 5}); });
  must(curandDestroyGenerator(generator));
}

std::vector<OptionSpec> option_specs() {
  return {
      {"repetitions", OptionType::integer, "15", "N", "measurements of each side", {}, "1", "1000"},
      {"largest-matrix",
       OptionType::integer,
       "16384",
       "N",
       "order of the largest product",
       {},
       "64",
       "65536"},
      {"factored",
       OptionType::integer,
       "8192",
       "N",
       "order of the matrices that are factored",
       {},
       "64",
       "65536"},
      {"fft-edge",
       OptionType::integer,
       "512",
       "N",
       "edge of the cube that is transformed",
       {},
       "8",
       "2048"},
      {"json", OptionType::text, "", "FILE", "write the results as JSON"},
  };
}

int run(const Config& config) {
  LocalDevice device(config, "cuda");
  std::vector<Comparison> lines;
  const Bench bench{&*device, config.integer("repetitions"), &lines};
  products(bench, config.integer("largest-matrix"));
  transforms(bench, config.integer("fft-edge"));
  factorisations(bench, config.integer("factored"));
  random_numbers(bench, std::int64_t{1} << 28);
  print(fmt::format("{}: the libraries' own calls and troupe, medians of {} pairs",
                    device->info().name, bench.repetitions),
        lines);
  write_json(config.text("json"), lines).take();
  return 0;
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  using namespace troupe;
  try {
    const auto config = Config::parse(argc, argv, bench::option_specs()).take();
    if (config.wants_help()) {
      fmt::print("{}", config.help_text("library_bench",
                                        "The libraries' longest calls, by troupe and directly."));
      return 0;
    }
    return bench::run(config);
  } catch (const std::exception& e) {
    fmt::print(stderr, "library_bench: {}\n", e.what());
    return 1;
  }
}
