// troupe on one GPU against the same calls of the CUDA libraries made directly.
//
// Both sides are measured by this one program, in turn, so that drifting clocks hit both alike. The
// raw side's context is this process's, troupe's is its device host's; only one of them has work at
// a time, and before each measurement one small operation makes the GPU switch to it.
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>

#include <troupe/lib/blas.hpp>
#include <troupe/lib/vector.hpp>

#include "comparison.hpp"
#include "local_device.hpp"
#include "raw_cuda.hpp"
#include "raw_kernels.hpp"
#include "sides.hpp"

namespace troupe::bench {
namespace {

constexpr int kKernels = 20'000;
constexpr int kTiny = 8;
constexpr std::int64_t kSmallestMatrix = 64;
Comparison tiny_kernels(Raw& raw, Device& device, std::int64_t repetitions) {
  auto* const theirs = static_cast<float*>(raw.device(sizeof(float) * kTiny));
  const auto ours = device.alloc<float>(kTiny);
  const auto raw_kernels = [&](int count) {
    for (int i = 0; i < count; ++i) must(fill_few(theirs, 1.5f, kTiny, raw.stream()));
    raw.wait();
  };
  const auto our_kernels = [&](int count) {
    for (int i = 1; i < count; ++i) (void)device.fill(ours, 1.5f);
    device.fill(ours, 1.5f).get();
  };
  return compare("20000 tiny kernels, each", "us", repetitions,
                 {[&] { raw_kernels(kKernels); }, [&] { raw_kernels(1); }},
                 {[&] { our_kernels(kKernels); }, [&] { our_kernels(1); }},
                 [](double seconds) { return seconds / kKernels * 1e6; });
}

/// So many products that a batch takes a millisecond or more, and not much longer than 50.
int products_per_batch(std::int64_t n) {
  if (n <= 512) return 200;
  return n <= 1024 ? 100 : n <= 2048 ? 40 : 16;
}

void gemm(cublasHandle_t handle, std::int64_t n, const float* a, const float* b, float* c) {
  const float one = 1, zero = 0;
  must(cublasSgemm_64(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, a, n, b, n, &zero, c, n));
}
void gemm(cublasHandle_t handle, std::int64_t n, const double* a, const double* b, double* c) {
  const double one = 1, zero = 0;
  must(cublasDgemm_64(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, a, n, b, n, &zero, c, n));
}

/// Both sides must have computed the same: the largest difference, relative to the largest element.
template <class T>
void check_equal(const std::vector<T>& raw, const std::vector<T>& ours, const std::string& what) {
  double difference = 0, largest = 0;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    const auto apart = std::abs(static_cast<double>(raw[i]) - static_cast<double>(ours[i]));
    difference = std::isnan(apart) ? INFINITY : std::max(difference, apart);
    largest = std::max(largest, std::abs(static_cast<double>(raw[i])));
  }
  const double tolerance = std::is_same_v<T, float> ? 1e-4 : 1e-12;
  if (difference > tolerance * largest || largest == 0) {
    throw std::runtime_error(fmt::format("{}: troupe's result differs by {}", what, difference));
  }
}

template <class T>
void products(Raw& raw, Device& device, std::int64_t largest, std::int64_t repetitions,
              std::vector<Comparison>& lines) {
  const auto elements = largest * largest;
  const auto bytes = static_cast<std::size_t>(elements) * sizeof(T);
  const auto a = numbers<T>(elements, 1), b = numbers<T>(elements, 2);
  auto* const raw_a = static_cast<T*>(raw.device(bytes));
  auto* const raw_b = static_cast<T*>(raw.device(bytes));
  auto* const raw_c = static_cast<T*>(raw.device(bytes));
  raw.copy(raw_a, a.data(), bytes);
  raw.copy(raw_b, b.data(), bytes);
  raw.wait();
  const auto our_a = device.alloc<T>(elements), our_b = device.alloc<T>(elements);
  const auto our_c = device.alloc<T>(elements);
  device.upload<T>(a, our_a);
  device.upload<T>(b, our_b).get();

  for (std::int64_t n = kSmallestMatrix; n <= largest; n *= 2) {
    const int batch = products_per_batch(n);
    const auto raw_products = [&](int count) {
      for (int i = 0; i < count; ++i) gemm(raw.blas(), n, raw_a, raw_b, raw_c);
      raw.wait();
    };
    const auto part = [n](const GpuRef<T>& matrix) { return matrix.slice(0, n * n); };
    const auto our_products = [&, x = part(our_a), y = part(our_b), z = part(our_c)](int count) {
      for (int i = 1; i < count; ++i) (void)device.blas().gemm(x, y, z, {.m = n, .n = n, .k = n});
      device.blas().gemm(x, y, z, {.m = n, .n = n, .k = n}).get();
    };
    const auto name = fmt::format("gemm {} n={}", to_string(dtype_of<T>), n);
    lines.push_back(compare(name, "us", repetitions,
                            {[&] { raw_products(batch); }, [&] { raw_products(1); }},
                            {[&] { our_products(batch); }, [&] { our_products(1); }},
                            [batch](double seconds) { return seconds / batch * 1e6; }));
    std::vector<T> result(static_cast<std::size_t>(n * n));
    raw.copy(result.data(), raw_c, result.size() * sizeof(T));
    raw.wait();
    check_equal(result, device.download(part(our_c)), name);
  }
}

void transfers(Raw& raw, Device& device, std::size_t largest, std::int64_t repetitions,
               std::vector<Comparison>& lines) {
  constexpr std::size_t kSizes[] = {std::size_t{64} << 20, std::size_t{256} << 20,
                                    std::size_t{1} << 30};
  constexpr std::size_t kBytesPerBatch = std::size_t{1} << 30;
  auto* const raw_host = static_cast<std::byte*>(raw.pinned(largest));
  void* const raw_device = raw.device(largest);
  const auto our_host = device.pinned<std::uint8_t>(largest);
  const auto our_device = device.alloc<std::uint8_t>(static_cast<std::int64_t>(largest));
  std::memset(raw_host, 1, largest);
  std::memset(our_host.data(), 2, largest);

  for (const auto bytes : kSizes) {
    if (bytes > largest) break;
    const int batch = static_cast<int>(kBytesPerBatch / bytes);
    const auto part = our_device.slice(0, static_cast<std::int64_t>(bytes));
    const auto to_rate = [bytes, batch](double seconds) {
      return static_cast<double>(bytes) * batch / seconds / 1e9;
    };
    for (const bool to_device : {true, false}) {
      const auto raw_copies = [&](int count) {
        for (int i = 0; i < count; ++i) {
          raw.copy(to_device ? raw_device : raw_host, to_device ? raw_host : raw_device, bytes);
        }
        raw.wait();
      };
      const auto our_copy = [&] {
        return to_device ? device.copy(our_host, part) : device.copy(part, our_host);
      };
      const auto our_copies = [&](int count) {
        for (int i = 1; i < count; ++i) (void)our_copy();
        our_copy().get();
      };
      lines.push_back(compare(fmt::format("{} {} MiB", to_device ? "H2D" : "D2H", bytes >> 20),
                              "GB/s", repetitions,
                              {[&] { raw_copies(batch); }, [&] { raw_copies(1); }},
                              {[&] { our_copies(batch); }, [&] { our_copies(1); }}, to_rate));
    }
  }
}

std::vector<OptionSpec> option_specs() {
  return {
      {"repetitions", OptionType::integer, "7", "N", "measurements of each side", {}, "1", "1000"},
      {"largest-matrix",
       OptionType::integer,
       "4096",
       "N",
       "order of the largest matrices multiplied",
       {},
       "64",
       "16384"},
      {"largest-copy",
       OptionType::bytes,
       "1GiB",
       "SIZE",
       "64MiB, 256MiB or 1GiB",
       {},
       "64MiB",
       "1GiB"},
      {"json", OptionType::text, "", "FILE", "write the results as JSON"},
  };
}

int run(const Config& config) {
  LocalDevice device(config, "cuda");
  Raw raw;
  const auto repetitions = config.integer("repetitions");
  std::vector<Comparison> lines;
  lines.push_back(tiny_kernels(raw, *device, repetitions));
  products<float>(raw, *device, config.integer("largest-matrix"), repetitions, lines);
  products<double>(raw, *device, config.integer("largest-matrix"), repetitions, lines);
  transfers(raw, *device, config.bytes("largest-copy"), repetitions, lines);
  print(fmt::format("{}: plain CUDA calls and troupe, medians of {}", device->info().name,
                    repetitions),
        lines);
  write_json(config.text("json"), lines).take();
  return 0;
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  return troupe::bench::run_benchmark(argc, argv, "cuda_raw_bench",
                                      "troupe against plain CUDA calls.",
                                      troupe::bench::option_specs(), troupe::bench::run);
}
