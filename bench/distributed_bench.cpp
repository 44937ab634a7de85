// Products and Fourier transforms that all GPUs compute together, beside what bounds them: as many
// times one GPU's product, and the exchange of the transform alone.
//
//   mpirun -n N distributed_bench [--engine cuda] [--n N] [--fft N] [--pieces N] [--grid-rows P]
//   [--json FILE]
//
// The time of a measurement is that of the slowest rank.
#include <fmt/format.h>

#include <cmath>
#include <complex>

#include <troupe/distributed.hpp>
#include <troupe/lib/blas.hpp>
#include <troupe/runtime.hpp>

#include "world_bench.hpp"

namespace troupe::bench {
namespace {

using distributed::Grid;
using distributed::Layout;
using distributed::Matrix;
using distributed::Pfft3;
using distributed::Pgemm;

std::vector<OptionSpec> option_specs() {
  return {
      {"repetitions", OptionType::integer, "7", "N", "measurements of each side", {}, "1", "1000"},
      {"n", OptionType::integer, "32768", "N", "rows and columns of the f64 matrices", {}, "1"},
      {"panel", OptionType::integer, "1024", "N", "columns of A that are sent at once", {}, "1"},
      {"fft",
       OptionType::integer,
       "512",
       "N",
       "extent of the c64 array in each dimension",
       {},
       "1"},
      {"pieces",
       OptionType::integer,
       "0",
       "N",
       "slabs of the transform are exchanged in N pieces (0: as many as their size suggests)",
       {},
       "0",
       "64"},
      {"grid-rows",
       OptionType::integer,
       "1",
       "P",
       "rows of the grid of the product, which divide the number of ranks",
       {},
       "1"},
      {"json", OptionType::text, "", "FILE", "write the results as JSON"},
  };
}

/// The same n on one GPU is the raw side: each rank computes all of it by itself, and the figure is
/// what all of them do together.
Comparison product(Runtime& runtime) {
  auto& world = runtime.world();
  auto& device = runtime.device();
  const auto& config = runtime.config();
  const auto n = config.integer("n");
  const int rows = static_cast<int>(config.integer("grid-rows"));
  Grid grid(world, rows, world.size() / rows);
  const auto layout = Layout::blocks(n, n, grid.rows(), grid.columns());
  Matrix<double> a(device, grid, layout), b(device, grid, layout), c(device, grid, layout);
  Pgemm<double> plan(device, grid, layout, layout, layout, {.panel = config.integer("panel")});
  device.fill(a.local(), 1.0), device.fill(b.local(), 0.5);
  const auto whole_a = device.alloc<double>(n * n), whole_b = device.alloc<double>(n * n),
             whole_c = device.alloc<double>(n * n);
  device.fill(whole_a, 1.0), device.fill(whole_b, 0.5);

  const auto ours = [&] { plan.multiply(1.0, a, b, 0.0, c).get(); };
  const auto theirs = [&] {
    device.blas().gemm(whole_a, whole_b, whole_c, {.m = n, .n = n, .k = n}).get();
  };
  const double flops = 2.0 * std::pow(static_cast<double>(n), 3);
  // A benchmark of wrong answers is worth nothing.
  ours();
  const auto half = static_cast<double>(n) / 2;
  Result<void> right;
  if (c.local().length() > 0 && device.download(c.local().slice(0, 1))[0] != half)
    right = Error{Errc::library, 0, "pgemm is wrong"};
  world.agree(right);
  Comparison line{fmt::format("gemm f64 {}, {} x one GPU", n, world.size()), "TFLOP/s", {}, {}};
  bool alone = false;
  measure(
      line, config.integer("repetitions"), [&] { alone = false, ours(); },
      [&] { alone = true, theirs(); },
      [&](const std::function<void()>& work) {
        const double seconds = seconds_of(world, work);
        return flops * (alone ? world.size() : 1) / seconds / 1e12;
      });
  return line;
}

/// Slabs; the raw side is the exchange alone, of as many bytes in as large messages.
std::vector<Comparison> transform(Runtime& runtime) {
  auto& world = runtime.world();
  auto& device = runtime.device();
  const auto n = runtime.config().integer("fft");
  const auto repetitions = runtime.config().integer("repetitions");
  Grid grid(world, world.size(), 1);
  Pfft3<std::complex<float>> plan(device, grid, {n, n, n},
                                  static_cast<int>(runtime.config().integer("pieces")));
  const auto l0 = plan.space_box().extent[0], c1 = plan.spectrum_box().extent[1];
  std::vector<std::int64_t> sent, received;
  for (const auto& [space, spectrum] : world.gather_values(std::array{l0, c1}))
    sent.push_back(l0 * spectrum * n), received.push_back(space * c1 * n);
  const auto from = device.alloc<std::complex<float>>(plan.space().length()),
             to = device.alloc<std::complex<float>>(plan.spectrum().length());
  device.fill(from, std::complex<float>(0)), device.fill(plan.space(), std::complex<float>(1));
  const auto ours = [&] { plan.forward().get(); };
  // The transform of ones: all is in the first element.
  ours();
  Result<void> right;
  const auto volume = std::pow(static_cast<double>(n), 3);
  if (world.rank() == 0 && plan.spectrum().length() > 0 &&
      std::abs(device.download(plan.spectrum().slice(0, 1))[0] -
               std::complex<float>(static_cast<float>(volume))) > 1e-4 * volume)
    right = Error{Errc::library, 0, "pfft3 is wrong"};
  world.agree(right);

  const auto value = [&](const std::function<void()>& work) {
    return seconds_of(world, work) * 1e6;
  };
  const auto name = fmt::format("fft c64 {}^3, ", n);
  std::vector<Comparison> lines;
  lines.push_back({name + "exchange alone", "us", {}, {}});
  measure(
      lines.back(), repetitions, ours,
      [&] { world.all_to_all<std::complex<float>>(from, sent, to, received).get(); }, value);
  // What a rank would do with a P-th of the array without the others: the same work, no exchange.
  const auto rows = std::max<std::int64_t>(1, n / world.size());
  const auto own = device.alloc<std::complex<float>>(rows * n * n);
  device.fill(own, std::complex<float>(0));
  lines.push_back({name + "transforms alone", "us", {}, {}});
  measure(
      lines.back(), repetitions, ours,
      [&] {
        device.fft().forward<float>(own, own, {.extents = {n, n}, .batch = rows});
        const fft::Storage side_by_side{.distance = 1, .stride = rows * n};
        device.fft()
            .forward<float>(
                own, own,
                {.extents = {n}, .batch = rows * n, .input = side_by_side, .output = side_by_side})
            .get();
      },
      value);
  return lines;
}

int run(Runtime& runtime) {
  require_report_file(runtime);
  const auto rows = runtime.config().integer("grid-rows");
  if (runtime.world().size() % rows != 0)
    throw CollectiveException({Errc::invalid, 0, "--grid-rows does not divide the ranks"});
  std::vector<Comparison> lines{product(runtime)};
  for (auto& line : transform(runtime)) lines.push_back(std::move(line));
  report(runtime,
         fmt::format("{} ranks, {}: distributed products and transforms, medians of {}",
                     runtime.world().size(), runtime.device().info().name,
                     runtime.config().integer("repetitions")),
         lines);
  return kExitSuccess;
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  using namespace troupe;
  const Program program{"distributed_bench",
                        "Measures products and Fourier transforms on all GPUs together.",
                        bench::option_specs()};
  return run_program(argc, argv, program, bench::run);
}
