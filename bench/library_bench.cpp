// The longest calls of the dense and spectral libraries by troupe and by the libraries themselves.
//
// Both sides are measured by this one program, in turn, as in cuda_raw_bench. What a call destroys
// is copied back before it, on both sides. A figure is met if the interval of its ratio reaches it.
#include <fmt/format.h>

#include <algorithm>
#include <complex>
#include <random>
#include <string>

#include <troupe/lib/blas.hpp>
#include <troupe/lib/fft.hpp>
#include <troupe/lib/rng.hpp>
#include <troupe/lib/solver.hpp>

#include "beside.hpp"
#include "local_device.hpp"
#include "raw_libraries.hpp"

namespace troupe::bench {
namespace {

/// Numbers of f8 between -1 and 1.
std::vector<Float8E4M3> eighths(std::int64_t count, std::uint64_t seed) {
  constexpr std::uint8_t kOne = 0x38;
  std::vector<Float8E4M3> values(static_cast<std::size_t>(count));
  std::mt19937_64 random(seed);
  for (auto& value : values) {
    const auto bits = random();
    value.bits = static_cast<std::uint8_t>(bits % kOne | (bits >> 32 & 0x80u));
  }
  return values;
}

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

void product_f8(const Bench& bench, std::int64_t n) {
  Raw raw;
  RawF8 theirs(raw, n);
  const Both<Float8E4M3> a(raw, *bench.device, eighths(n * n, 1)),
      b(raw, *bench.device, eighths(n * n, 2));
  const Both<BFloat16> d(raw, *bench.device, n * n);
  const MatrixRef x(a.ours, n, n), y(b.ours, n, n);
  const MatrixRef z(d.ours, n, n);
  const auto name = fmt::format("matmul f8e4m3 n={}", n);
  bench.measure(
      name, raw, n <= 4096 ? 100 : 8, [&] { theirs.multiply(a.raw, b.raw, d.raw); },
      [&] {
        return bench.device->blas().matmul<Float8E4M3, Float8E4M3, BFloat16>(
            x, y, z, {.transpose_a = blas::Transpose::yes});
      });
  check_equal(raw, d.raw, *bench.device, d.ours, name, 1e-2);
}

void products(const Bench& bench, std::int64_t largest) {
  using blas::Compute;
  for (std::int64_t n = std::min<std::int64_t>(largest, 4096); n <= largest; n *= 4) {
    product_f8(bench, n);
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
  return troupe::bench::run_benchmark(argc, argv, "library_bench",
                                      "The libraries' longest calls, by troupe and directly.",
                                      troupe::bench::option_specs(), troupe::bench::run);
}
