// Calls of the cpu engine beside the host libraries' own, which this program calls directly, with
// as many threads: what a call costs more that is submitted and waited for.
//
// Both sides are measured in turn, one call each. What a call destroys is restored before the clock
// starts; then the machine rests until OpenBLAS's threads of the other side have gone to sleep.
#include <cblas.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <lapacke.h>

#include <chrono>
#include <cmath>
#include <complex>
#include <functional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <troupe/lib/blas.hpp>
#include <troupe/lib/fft.hpp>
#include <troupe/lib/solver.hpp>

#include "comparison.hpp"
#include "local_device.hpp"
#include "rank/launch.hpp"
#include "sides.hpp"

namespace troupe::bench {
namespace {

using Complex128 = std::complex<double>;

/// OpenBLAS's threads spin for 2^26 ticks after a call.
constexpr auto kRest = std::chrono::milliseconds(60);
constexpr double kTarget = 50;  ///< microseconds

/// The same contents on both sides, and what restores them.
template <class T>
struct Both {
  std::vector<T> saved, raw;
  GpuRef<T> ours_saved, ours;

  Both(Device& device, std::vector<T> values)
      : saved(std::move(values)),
        raw(saved),
        ours_saved(device.alloc<T>(std::ssize(saved))),
        ours(device.alloc<T>(std::ssize(saved))) {
    device.upload<T>(saved, ours_saved).get();
    device.copy(ours_saved, ours).get();
  }
  void restore_raw() { std::copy(saved.begin(), saved.end(), raw.begin()); }
  void restore(Device& device) { device.copy(ours_saved, ours).get(); }
};

/// Between -1 and 1.
std::vector<double> uniform(std::int64_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> between(-1, 1);
  std::vector<double> values(static_cast<std::size_t>(count));
  for (auto& value : values) value = between(random);
  return values;
}

struct Bench {
  Device* device;
  std::int64_t repetitions;
  std::vector<Comparison>* lines;

  /// `changed`: what the calls write, or what they overwrite.
  template <class T, class OurCall>
  void measure(const std::string& name, Both<T>& changed, const std::function<void()>& raw_call,
               const OurCall& our_call) const {
    const auto rest_raw = [&] {
      changed.restore_raw();
      std::this_thread::sleep_for(kRest);
    };
    const auto rest = [&] {
      changed.restore(*device);
      std::this_thread::sleep_for(kRest);
    };
    rest_raw(), rest();
    lines->push_back(compare(name, "us", repetitions, {raw_call, rest_raw},
                             {[&] { our_call().get(); }, rest},
                             [](double seconds) { return seconds * 1e6; }));
    changed.restore_raw(), changed.restore(*device);
    raw_call(), our_call().get();
    const auto mine = device->download(changed.ours);
    double apart = 0, largest = 0;
    for (std::size_t i = 0; i < mine.size(); ++i) {
      apart = std::max(apart, std::abs(changed.raw[i] - mine[i]));
      largest = std::max(largest, std::abs(changed.raw[i]));
    }
    if (!(apart <= 1e-9 * largest))
      throw std::runtime_error(fmt::format("{}: troupe's result differs by {}", name, apart));
  }
};

void products(const Bench& bench) {
  auto& device = *bench.device;
  for (const int n : {64, 256, 1024}) {
    Both<double> a(device, uniform(n * n, 1)), b(device, uniform(n * n, 2)),
        c(device, uniform(n * n, 3));
    const MatrixRef x(a.ours, n, n), y(b.ours, n, n), z(c.ours, n, n);
    bench.measure(
        fmt::format("gemm f64 n={}", n), c,
        [&] {
          cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, a.raw.data(), n,
                      b.raw.data(), n, 0, c.raw.data(), n);
        },
        [&] {
          return device.blas().gemm(blas::Transpose::no, blas::Transpose::no, 1.0, x, y, 0.0, z);
        });
  }
  constexpr int kOrder = 512, kVector = 1 << 16;
  auto values = uniform(kOrder * kOrder, 4);
  for (int i = 0; i < kOrder; ++i) values[static_cast<std::size_t>(i * (kOrder + 1))] = kOrder;
  Both<double> l(device, values), b(device, uniform(kOrder * kOrder, 5)),
      v(device, uniform(kVector, 6)), w(device, uniform(kVector, 7));
  const MatrixRef left(l.ours, kOrder, kOrder), right(b.ours, kOrder, kOrder);
  bench.measure(
      "trsm f64 n=512", b,
      [&] {
        cblas_dtrsm(CblasColMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit, kOrder,
                    kOrder, 1, l.raw.data(), kOrder, b.raw.data(), kOrder);
      },
      [&] {
        return device.blas().trsm(blas::Side::left, blas::Uplo::lower, blas::Transpose::no,
                                  blas::Diagonal::stored, 1.0, left, right);
      });
  bench.measure(
      "axpy f64 n=2^16", w, [&] { cblas_daxpy(kVector, 2, v.raw.data(), 1, w.raw.data(), 1); },
      [&] { return device.blas().axpy(2.0, v.ours, w.ours); });
}

void factorisations(const Bench& bench) {
  auto& device = *bench.device;
  auto solver = device.solver();
  constexpr int kOrder = 512, kSmall = 128;
  const auto symmetric = [](int n) {
    auto values = uniform(n * n, 8);
    for (int j = 0; j < n; ++j) {
      for (int i = 0; i < j; ++i)
        values[static_cast<std::size_t>(j * n + i)] = values[static_cast<std::size_t>(i * n + j)];
      values[static_cast<std::size_t>(j * (n + 1))] += n;
    }
    return values;
  };
  const auto info = [](lapack_int told) {
    if (told != 0) throw std::runtime_error(fmt::format("LAPACK: info {}", told));
  };
  Both<double> a(device, symmetric(kOrder)), small(device, symmetric(kSmall));
  const MatrixRef x(a.ours, kOrder, kOrder), y(small.ours, kSmall, kSmall);
  bench.measure(
      "potrf f64 n=512", a,
      [&] { info(LAPACKE_dpotrf(LAPACK_COL_MAJOR, 'L', kOrder, a.raw.data(), kOrder)); },
      [&] { return solver.potrf(blas::Uplo::lower, x); });
  std::vector<lapack_int> pivots(kOrder);
  const auto our_pivots = device.alloc<std::int64_t>(kOrder);
  bench.measure(
      "getrf f64 n=512", a,
      [&] {
        info(LAPACKE_dgetrf(LAPACK_COL_MAJOR, kOrder, kOrder, a.raw.data(), kOrder, pivots.data()));
      },
      [&] { return solver.getrf(x, our_pivots); });
  std::vector<double> values(kSmall), super(kSmall), u(kSmall * kSmall), vt(kSmall * kSmall);
  const auto our_values = device.alloc<double>(kSmall),
             our_u = device.alloc<double>(kSmall * kSmall),
             our_vt = device.alloc<double>(kSmall * kSmall);
  bench.measure(
      "syevd f64 n=128", small,
      [&] {
        info(LAPACKE_dsyevd(LAPACK_COL_MAJOR, 'V', 'L', kSmall, small.raw.data(), kSmall,
                            values.data()));
      },
      [&] { return solver.syevd(solver::Vectors::yes, blas::Uplo::lower, y, our_values); });
  bench.measure(
      "gesvd f64 n=128", small,
      [&] {
        info(LAPACKE_dgesvd(LAPACK_COL_MAJOR, 'A', 'A', kSmall, kSmall, small.raw.data(), kSmall,
                            values.data(), u.data(), kSmall, vt.data(), kSmall, super.data()));
      },
      [&] {
        return solver.gesvd(solver::Columns::all, solver::Columns::all, y, our_values,
                            MatrixRef(our_u, kSmall, kSmall), MatrixRef(our_vt, kSmall, kSmall));
      });
}

/// FFTW as a program with its header calls it. It is GPL, so that nothing is linked with it.
class Fftw {
 public:
  Fftw() {
    void* library = ::dlopen("libfftw3.so.3", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return;
    find(library, "fftw_plan_dft", plan_);
    find(library, "fftw_execute", execute_);
  }
  [[nodiscard]] bool loaded() const { return plan_ != nullptr && execute_ != nullptr; }
  /// A forward transform by FFTW_ESTIMATE, to be called; its plan is never destroyed.
  [[nodiscard]] std::function<void()> forward(const std::vector<int>& extents, Complex128* from,
                                              Complex128* to) const {
    void* const plan =
        plan_(static_cast<int>(extents.size()), extents.data(), from, to, -1, 1u << 6);
    if (plan == nullptr) throw std::runtime_error("FFTW has no plan");
    return [execute = execute_, plan] { execute(plan); };
  }

 private:
  template <class Symbol>
  static void find(void* library, const char* name, Symbol& symbol) {
    symbol = reinterpret_cast<Symbol>(::dlsym(library, name));
  }
  void* (*plan_)(int rank, const int* extents, Complex128* from, Complex128* to, int sign,
                 unsigned flags) = nullptr;
  void (*execute_)(void* plan) = nullptr;
};

void transforms(const Bench& bench) {
  const Fftw fftw;
  if (!fftw.loaded()) return fmt::print("FFTW is not installed\n");
  auto& device = *bench.device;
  const auto line = [&](const std::string& name, const std::vector<int>& extents) {
    FftOptions shape;
    std::int64_t length = 1;
    shape.extents.rank = static_cast<std::uint32_t>(extents.size());
    for (std::size_t i = 0; i < extents.size(); ++i) length *= shape.extents.extent[i] = extents[i];
    std::vector<Complex128> values;
    for (const double value : uniform(length, 9)) values.emplace_back(value, -value);
    Both<Complex128> x(device, values), y(device, std::vector<Complex128>(values.size()));
    bench.measure(name, y, fftw.forward(extents, x.raw.data(), y.raw.data()),
                  [&] { return device.fft().forward(x.ours, y.ours, shape); });
  };
  line("fft c128 2^14", {1 << 14});
  line("fft c128 64^3", {64, 64, 64});
}

void print_differences(const std::vector<Comparison>& lines) {
  fmt::print("  {:<20}{:>12}{:>12}{:>16}  {}\n", "", "library, us", "troupe, us", "difference, us",
             "95 %");
  for (const auto& line : lines) {
    const auto [low, high] = line.difference_interval();
    fmt::print("  {:<20}{:>12.1f}{:>12.1f}{:>16.1f}  {:.1f} to {:.1f}{}\n", line.name,
               median(line.raw), median(line.ours), line.difference(), low, high,
               low <= kTarget ? "" : "  missed");
  }
}

std::vector<OptionSpec> option_specs() {
  return {
      {"repetitions", OptionType::integer, "31", "N", "measurements of each side", {}, "1", "1000"},
      {"json", OptionType::text, "", "FILE", "write the results as JSON"},
  };
}

int run(const Config& config) {
  LocalDevice device(config, "cpu");
  const int threads = rank_process::core_share({rank_process::core_mask()}, 0);
  ::openblas_set_num_threads(threads);
  ::LAPACKE_set_nancheck(0);  // as in the engine
  std::vector<Comparison> lines;
  const Bench bench{&*device, config.integer("repetitions"), &lines};
  products(bench);
  factorisations(bench);
  transforms(bench);
  fmt::print("the host libraries' own calls and troupe, {} threads, medians of {} pairs\n", threads,
             bench.repetitions);
  print_differences(lines);
  write_json(config.text("json"), lines).take();
  return 0;
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  return troupe::bench::run_benchmark(argc, argv, "host_library_bench",
                                      "The cpu engine's calls, by troupe and directly.",
                                      troupe::bench::option_specs(), troupe::bench::run);
}
