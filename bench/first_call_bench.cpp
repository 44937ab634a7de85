// What the first call of each kind costs after a recovery: in a device host that has never been
// asked for it, in the steady state, and in the successor of a device host that has died, which has
// prepared what recurs.
//
// The backend is that of TROUPE_TEST_BACKEND (cpu or cuda; default cpu). Arguments: --repeat N
// (deaths, default 5), --json FILE; others are troupe's own.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <complex>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>
#include <troupe/lib/operations.hpp>
#include <troupe/sequence.hpp>

#include "comparison.hpp"
#include "local_device.hpp"

namespace {

using namespace troupe;
using Clock = std::chrono::steady_clock;

constexpr int kSteady = 50;
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
};

double seconds_of(const std::function<void()>& work) {
  const auto start = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// The buffers stay with the closures.
std::vector<Call> make_calls(Device& device) {
  std::vector<Call> calls;
  const auto zeros = [&device]<class T>(T, std::int64_t n) {
    auto x = device.alloc<T>(n);
    device.fill(x, T{}).get();
    return x;
  };
  constexpr std::int64_t kVector = 1 << 20, kOrder = 1024, kRows = 1 << 16;
  const auto x = zeros(float{}, kVector), y = zeros(float{}, kVector), one = zeros(float{}, 1);
  calls.push_back({"blas.axpy", [=, &device] { device.blas().axpy(2.0f, x, y).get(); }});
  calls.push_back({"blas.dot", [=, &device] { device.blas().dot(x, y, one).get(); }});
  const auto a = zeros(float{}, kOrder * kOrder), b = zeros(float{}, kOrder * kOrder),
             c = zeros(float{}, kOrder * kOrder);
  calls.push_back({"blas.gemm f32 1024", [=, &device] {
                     device.blas().gemm(a, b, c, {.m = kOrder, .n = kOrder, .k = kOrder}).get();
                   }});
  calls.push_back({"blas.gemv f32 1024", [=, &device] {
                     device.blas()
                         .gemv(a, x.slice(0, kOrder), y.slice(0, kOrder),
                               {.m = kOrder, .n = kOrder})
                         .get();
                   }});
  const auto begins = zeros(std::int32_t{}, kRows + 1), columns = zeros(std::int32_t{}, 8 * kRows);
  const auto values = zeros(float{}, 8 * kRows);
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
  const auto flags = zeros(std::int64_t{}, kVector);
  calls.push_back({"primitives.select i64", [=, &device] {
                     (void)primitives::on(device).select_nonzero(x, flags, OnFailure::report).get();
                   }});
  const auto spd = zeros(double{}, 256 * 256);
  calls.push_back({"solver.potrf f64 256", [=, &device] {
                     (void)device.solver()
                         .potrf(blas::Uplo::lower, MatrixRef(spd, 256, 256), OnFailure::report)
                         .get();
                   }});
  const auto signal = zeros(std::complex<float>{}, 64 * 4096), spectrum = signal;
  calls.push_back(
      {"fft c2c 4096 x 64", [=, &device] {
         fft::on(device).forward(signal, spectrum, {.extents = {4096}, .batch = 64}).get();
       }});
  const auto grid = zeros(float{}, 128 * 128 * 128);
  const auto half = zeros(std::complex<float>{}, 128 * 128 * 65);
  calls.push_back(
      {"fft r2c 128^3", [=, &device] {
         fft::on(device).real_to_complex(grid, half, {.extents = {128, 128, 128}}).get();
       }});
  const auto keys = zeros(std::uint32_t{}, kVector), sorted = zeros(std::uint32_t{}, kVector);
  calls.push_back({"primitives.sort u32 2^20",
                   [=, &device] { primitives::on(device).sort(keys, sorted).get(); }});
  const auto image = zeros(Half{}, 8 * 56 * 56 * 64), result = zeros(Half{}, 8 * 56 * 56 * 64),
             filter = zeros(Half{}, 64 * 3 * 3 * 64);
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
  const auto q = zeros(Half{}, 2 * 512 * 8 * 64), k = zeros(Half{}, 2 * 512 * 8 * 64),
             v = zeros(Half{}, 2 * 512 * 8 * 64), o = zeros(Half{}, 2 * 512 * 8 * 64);
  calls.push_back({"dnn.attention f16", [=, &device] {
                     dnn::on(device)
                         .attention(q, k, v, o,
                                    {.batch = 2, .heads_q = 8, .sequence_q = 512, .dim_qk = 64})
                         .get();
                   }});
  return calls;
}

}  // namespace

int main(int argc, char** argv) {
  int repeat = 5;
  std::string file;
  std::vector<char*> rest{argv[0]};
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--repeat" && i + 1 < argc) {
      repeat = std::max(1, std::atoi(argv[++i]));
    } else if (argument == "--json" && i + 1 < argc) {
      file = argv[++i];
    } else {
      rest.push_back(argv[i]);
    }
  }
  try {
    auto config = Config::parse(static_cast<int>(rest.size()), rest.data()).take();
    const char* const chosen = std::getenv("TROUPE_TEST_BACKEND");
    bench::LocalDevice opened(config, chosen != nullptr ? chosen : "cpu");
    auto& device = *opened;
    auto calls = make_calls(device);
    for (auto& call : calls) {
      call.first = seconds_of(call.run);
      std::vector<double> times;
      for (int i = 0; i < kSteady; ++i) times.push_back(seconds_of(call.run));
      std::nth_element(times.begin(), times.begin() + kSteady / 2, times.end());
      call.steady = times[kSteady / 2];
    }
    for (int death = 0; death < repeat; ++death) {
      std::this_thread::sleep_for(kStandby);
      (void)device.inject(memory::FaultKind::kill).wait();
      device.nop().get();
      for (auto& call : calls) call.after.push_back(seconds_of(call.run));
      for (auto& call : calls) call.run(), call.run();  // it recurs
    }
    nlohmann::json report = nlohmann::json::array();
    fmt::print("{:24}{:>12}{:>12}{:>16}{:>10}\n", "call", "first, us", "steady, us",
               "after death, us", "at most");
    for (auto& call : calls) {
      std::sort(call.after.begin(), call.after.end());
      const auto after = call.after[call.after.size() / 2];
      const auto most = std::max(kFactor * call.steady, call.steady + call.slack);
      fmt::print("{:24}{:12.1f}{:12.1f}{:16.1f}{:10.1f}{}\n", call.name, 1e6 * call.first,
                 1e6 * call.steady, 1e6 * after, 1e6 * most, after <= most ? "" : "  missed");
      report.push_back({{"call", call.name},
                        {"first_s", call.first},
                        {"steady_s", call.steady},
                        {"after_death_s", call.after},
                        {"at_most_s", most}});
    }
    if (!file.empty()) std::ofstream(file) << report.dump(2) << "\n";
  } catch (const std::exception& error) {
    fmt::print(stderr, "first_call_bench: {}\n", error.what());
    return 2;
  }
  return 0;
}
