// What the first call of each kind costs after a recovery: in a device host that has never been
// asked for it, in the steady state, and in the successor of a device host that has died, which has
// prepared what recurs.
//
//   first_call_bench --engine cuda --standby local --restart-budget 100 [--repetitions N]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <complex>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>
#include <troupe/lib/operations.hpp>
#include <troupe/sequence.hpp>

#include "comparison.hpp"
#include "local_device.hpp"

namespace troupe::bench {
namespace {

using Clock = std::chrono::steady_clock;

/// Calls of which the median is the steady time; of long ones as many as a second has room for.
constexpr int kMostSteady = 50, kLeastSteady = 5;
constexpr double kSteadySeconds = 1;
/// After a recovery a first call may take its steady time by so much, or so much longer.
constexpr double kFactor = 1.5, kSlack = 200e-6;
/// The same of a recorded sequence, which is made a graph anew.
constexpr double kSequenceSlack = 20e-3;
/// A standby has started and prepared by then: some four times what it needs on a GPU.
constexpr auto kStandby = std::chrono::seconds(6);

struct Call {
  std::string name;
  std::function<void()> run;  ///< and waits for it
  double slack = kSlack;
  double first = 0, steady = 0;
  std::vector<double> after = {};  ///< each death

  [[nodiscard]] double at_most() const { return std::max(kFactor * steady, steady + slack); }
};

double seconds_of(const std::function<void()>& work) {
  const auto start = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

template <class T>
GpuRef<T> zeros(Device& device, std::int64_t n) {
  auto x = device.alloc<T>(n);
  device.fill(x, T{}).get();
  return x;
}

/// Products with epilogues and decompositions. What these destroy is copied back before, as part of
/// the call.
void add_dense(Device& device, std::vector<Call>& calls) {
  constexpr std::int64_t kOrder = 1024, kSmall = 512;
  const MatrixRef a(zeros<BFloat16>(device, kOrder * kOrder), kOrder, kOrder);
  const MatrixRef d(zeros<BFloat16>(device, kOrder * kOrder), kOrder, kOrder);
  const auto bias = zeros<BFloat16>(device, kOrder);
  calls.push_back({"matmul gelu_bias bf16 1024", [=, &device] {
                     device.blas()
                         .matmul<BFloat16, BFloat16, BFloat16>(
                             a, a, d, {.epilogue = blas::Epilogue::gelu_bias, .bias = bias})
                         .get();
                   }});
  const auto numbers = device.alloc<double>(kOrder * kOrder);
  device.rng().uniform(numbers, {.seed = 3}).get();
  const auto x = zeros<double>(device, kOrder * kOrder), u = zeros<double>(device, kSmall * kSmall),
             vt = zeros<double>(device, kSmall * kSmall), values = zeros<double>(device, kOrder);
  const auto pivots = zeros<std::int64_t>(device, kOrder);
  calls.push_back({"solver.getrf f64 1024", [=, &device] {
                     device.copy(numbers, x);
                     (void)device.solver().getrf(MatrixRef(x, kOrder, kOrder), pivots).get();
                   }});
  calls.push_back({"solver.syevd f64 1024", [=, &device] {
                     device.copy(numbers, x);
                     (void)device.solver()
                         .syevd(solver::Vectors::yes, blas::Uplo::lower,
                                MatrixRef(x, kOrder, kOrder), values)
                         .get();
                   }});
  calls.push_back({"solver.gesvd f64 512", [=, &device] {
                     device.copy(numbers, x);
                     (void)device.solver()
                         .gesvd(solver::Columns::all, solver::Columns::all,
                                MatrixRef(x, kSmall, kSmall), values.slice(0, kSmall),
                                MatrixRef(u, kSmall, kSmall), MatrixRef(vt, kSmall, kSmall))
                         .get();
                   }});
}

/// Transforms in f16, laws, and one of cuRAND's sequences, which goes on from call to call.
void add_spectral(Device& device, std::vector<Call>& calls) {
  constexpr std::int64_t kNumbers = 1 << 20;
  const auto signal = zeros<Half>(device, 2 * 64 * 4096),
             spectrum = zeros<Half>(device, 2 * 64 * 4096);
  calls.push_back(
      {"fft f16 4096 x 64", [=, &device] {
         fft::on(device).forward(signal, spectrum, {.extents = {4096}, .batch = 64}).get();
       }});
  const auto x = zeros<float>(device, kNumbers);
  const auto counts = zeros<std::uint32_t>(device, kNumbers);
  calls.push_back(
      {"rng.gamma f32", [=, &device] { device.rng().gamma(x, {.seed = 1}, 2.5).get(); }});
  calls.push_back(
      {"rng.poisson", [=, &device] { device.rng().poisson(counts, {.seed = 1}, 30).get(); }});
  const auto sequence = std::make_shared<RandomSequence>(RandomSequence::Options{.seed = 5});
  calls.push_back(
      {"rng.sequence xorwow f32", [=, &device] { device.rng().next(*sequence, x).get(); }});
}

/// The buffers stay with the closures.
std::vector<Call> make_calls(Device& device) {
  std::vector<Call> calls;
  constexpr std::int64_t kVector = 1 << 20, kOrder = 1024, kRows = 1 << 16;
  const auto x = zeros<float>(device, kVector), y = zeros<float>(device, kVector),
             one = zeros<float>(device, 1);
  calls.push_back({"blas.axpy", [=, &device] { device.blas().axpy(2.0f, x, y).get(); }});
  calls.push_back({"blas.dot", [=, &device] { device.blas().dot(x, y, one).get(); }});
  const auto a = zeros<float>(device, kOrder * kOrder), b = zeros<float>(device, kOrder * kOrder),
             c = zeros<float>(device, kOrder * kOrder);
  calls.push_back({"blas.gemm f32 1024", [=, &device] {
                     device.blas().gemm(a, b, c, {.m = kOrder, .n = kOrder, .k = kOrder}).get();
                   }});
  calls.push_back({"blas.gemv f32 1024", [=, &device] {
                     device.blas()
                         .gemv(a, x.slice(0, kOrder), y.slice(0, kOrder),
                               {.m = kOrder, .n = kOrder})
                         .get();
                   }});
  const auto begins = zeros<std::int32_t>(device, kRows + 1),
             columns = zeros<std::int32_t>(device, 8 * kRows);
  const auto values = zeros<float>(device, 8 * kRows);
  calls.push_back({"sparse.spmv f32", [=, &device] {
                     device.sparse()
                         .spmv(
                             CsrMatrix<float, std::int32_t>{kRows, kRows, begins, columns, values},
                             x.slice(0, kRows), y.slice(0, kRows))
                         .get();
                   }});
  calls.push_back(
      {"rng.uniform f32", [=, &device] { device.rng().uniform(y, {.seed = 1}).get(); }});
  calls.push_back(
      {"vector.axpby f32", [=, &device] { device.vector().axpby(1.0f, x, 1.0f, y).get(); }});
  const auto sequence = device.record([&] {
    for (int i = 0; i < 100; ++i)
      device.vector().axpby(1.0f, x.slice(0, kOrder), 1.0f, y.slice(0, kOrder));
  });
  calls.push_back({"sequence of 100 axpby", [=] { sequence.run().get(); }, kSequenceSlack});
  const auto flags = zeros<std::int64_t>(device, kVector);
  calls.push_back({"primitives.select i64", [=, &device] {
                     (void)primitives::on(device).select_nonzero(x, flags, OnFailure::report).get();
                   }});
  const auto spd = zeros<double>(device, 256 * 256);
  calls.push_back({"solver.potrf f64 256", [=, &device] {
                     (void)device.solver()
                         .potrf(blas::Uplo::lower, MatrixRef(spd, 256, 256), OnFailure::report)
                         .get();
                   }});
  const auto signal = zeros<std::complex<float>>(device, 64 * 4096), spectrum = signal;
  calls.push_back(
      {"fft c2c 4096 x 64", [=, &device] {
         fft::on(device).forward(signal, spectrum, {.extents = {4096}, .batch = 64}).get();
       }});
  const auto grid = zeros<float>(device, 128 * 128 * 128);
  const auto half = zeros<std::complex<float>>(device, 128 * 128 * 65);
  calls.push_back(
      {"fft r2c 128^3", [=, &device] {
         fft::on(device).real_to_complex(grid, half, {.extents = {128, 128, 128}}).get();
       }});
  const auto keys = zeros<std::uint32_t>(device, kVector),
             sorted = zeros<std::uint32_t>(device, kVector);
  calls.push_back({"primitives.sort u32 2^20",
                   [=, &device] { primitives::on(device).sort(keys, sorted).get(); }});
  const auto image = zeros<Half>(device, 8 * 56 * 56 * 64),
             result = zeros<Half>(device, 8 * 56 * 56 * 64),
             filter = zeros<Half>(device, 64 * 3 * 3 * 64);
  calls.push_back({"dnn.convolution f16", [=, &device] {
                     dnn::on(device)
                         .convolution(image, filter, result,
                                      {.batch = 8,
                                       .input_channels = 64,
                                       .output_channels = 64,
                                       .extents = {56, 56},
                                       .filter = {3, 3},
                                       .padding_before = {1, 1}})
                         .get();
                   }});
  const auto q = zeros<Half>(device, 2 * 512 * 8 * 64), k = zeros<Half>(device, 2 * 512 * 8 * 64),
             v = zeros<Half>(device, 2 * 512 * 8 * 64), o = zeros<Half>(device, 2 * 512 * 8 * 64);
  calls.push_back({"dnn.attention f16", [=, &device] {
                     dnn::on(device)
                         .attention(q, k, v, o,
                                    {.batch = 2, .heads_q = 8, .sequence_q = 512, .dim_qk = 64})
                         .get();
                   }});
  add_dense(device, calls);
  add_spectral(device, calls);
  return calls;
}

double median_seconds(Call& call) {
  std::vector<double> times;
  double sum = 0;
  while (static_cast<int>(times.size()) < kLeastSteady ||
         (static_cast<int>(times.size()) < kMostSteady && sum < kSteadySeconds)) {
    times.push_back(seconds_of(call.run));
    sum += times.back();
  }
  return median(times);
}

void report(const std::vector<Call>& calls, const std::string& path) {
  std::vector<std::string> lines;
  fmt::print("{:28}{:>12}{:>12}{:>16}{:>14}{:>10}\n", "call", "first, us", "steady, us",
             "after death, us", "after/steady", "at most");
  for (const auto& call : calls) {
    const auto after = median(call.after), ratio = after / call.steady,
               at_most = call.at_most() / call.steady;
    fmt::print("{:28}{:12.1f}{:12.1f}{:16.1f}{:14.2f}{:10.2f}{}\n", call.name, 1e6 * call.first,
               1e6 * call.steady, 1e6 * after, ratio, at_most, ratio <= at_most ? "" : "  missed");
    lines.push_back(nlohmann::ordered_json{
        {"name", call.name},
        {"first_s", call.first},
        {"steady_s", call.steady},
        {"after_death_s", after},
        {"ratio", ratio},
        {"at_most", at_most},
        {"after_death_values_s",
         call.after}}.dump());
  }
  write_json_lines(path, lines).take();
}

std::vector<OptionSpec> option_specs() {
  return {
      {"repetitions", OptionType::integer, "5", "N", "deaths", {}, "1", "100"},
      {"json", OptionType::text, "", "FILE", "write the results as JSON"},
  };
}

int run(const Config& config) {
  LocalDevice device(config, config.text("engine") == "cpu" ? "cpu" : "cuda");
  auto calls = make_calls(*device);
  for (auto& call : calls) {
    call.first = seconds_of(call.run);
    call.steady = median_seconds(call);
  }
  for (std::int64_t death = 0; death < config.integer("repetitions"); ++death) {
    std::this_thread::sleep_for(kStandby);
    (void)device->inject(memory::FaultKind::kill).wait();
    device->nop().get();
    for (auto& call : calls) call.after.push_back(seconds_of(call.run));
    for (auto& call : calls) call.run(), call.run();  // it recurs
  }
  report(calls, config.text("json"));
  return 0;
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  return troupe::bench::run_benchmark(argc, argv, "first_call_bench",
                                      "First calls after the death of a device host.",
                                      troupe::bench::option_specs(), troupe::bench::run);
}
