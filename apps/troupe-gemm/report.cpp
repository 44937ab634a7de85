#include "report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "job_report.hpp"

namespace troupe::gemm {
namespace {

/// TFLOP/s of all ranks.
struct Throughput {
  double min = 0, median = 0, max = 0;
};

Throughput throughput(const Report& r, const Options& options) {
  if (r.times.empty()) return {};
  std::vector<double> all;
  for (const double time : r.times) all.push_back(time > 0 ? options.flops() / time / 1e12 : 0);
  std::sort(all.begin(), all.end());
  return {all.front(), app::median_of(all), all.back()};
}

std::string extents(const Pair& pair) {
  return fmt::format("{} x {}", pair[0], pair[1]);
}

std::string line_of(const char* name, const distributed::Layout& layout) {
  return fmt::format("  {} = {}, blocks of {} x {}\n", name, extents({layout.rows, layout.columns}),
                     layout.block_rows, layout.block_columns);
}

std::string product_of(const Options& options) {
  const auto name = [](const char* of, blas::Transpose transpose) {
    return std::string(of) + (transpose == blas::Transpose::no    ? ""
                              : transpose == blas::Transpose::yes ? "^T"
                                                                  : "^H");
  };
  return fmt::format("C = {} {} {} + {} C", options.alpha, name("A", options.transpose_a),
                     name("B", options.transpose_b), options.beta);
}

nlohmann::json json_of(const distributed::Layout& layout) {
  return {{"extents", Pair{layout.rows, layout.columns}},
          {"block", Pair{layout.block_rows, layout.block_columns}}};
}

}  // namespace

std::string to_text(const Report& r, const Options& options) {
  std::string text = fmt::format("\ntroupe-gemm: {}, {}, {} ranks in a grid of {}, engine {}\n",
                                 product_of(options), type_name(options.dtype), r.ranks,
                                 extents(r.grid), r.engine);
  text += line_of("A", r.a) + line_of("B", r.b) + line_of("C", r.c);
  for (const auto& device : r.devices) text += "  " + device + "\n";
  if (r.restarted_from >= 0)
    text += fmt::format("  went on from the saved state of repetition {}\n", r.restarted_from);
  auto times = r.times;
  std::sort(times.begin(), times.end());
  text += "TROUPE TIMES [ms] =";
  for (const double time : times) text += fmt::format(" {:.3f}", 1e3 * time);
  text += fmt::format("\n{} repetitions in {:.3f} s\n", r.times.size(), r.seconds);
  const auto total = throughput(r, options);
  const double ranks = r.ranks;
  text += fmt::format("Throughput [TFLOP/s]   {:>10} {:>10} {:>10}\n", "min", "median", "max");
  text += fmt::format("  per rank             {:>10.4g} {:>10.4g} {:>10.4g}\n", total.min / ranks,
                      total.median / ranks, total.max / ranks);
  text += fmt::format("  total                {:>10.4g} {:>10.4g} {:>10.4g}\n", total.min,
                      total.median, total.max);
  text += fmt::format("Result is{} CORRECT!\n", r.right() ? "" : " NOT");
  text += fmt::format("  largest residual of Freivalds' check {:.3e} (tolerance {:.1e})\n",
                      r.residual.error, r.residual.tolerance);
  if (r.elements)
    text += fmt::format("  largest error of an element {:.3e} (tolerance {:.1e})\n",
                        r.elements->error, r.elements->tolerance);
  return text + app::to_text(r.recoveries, "repetition") + app::to_text(r.corruptions);
}

nlohmann::json to_json(const Report& r, const Options& options) {
  auto times = nlohmann::json::array();
  for (const double time : r.times) times.push_back(1e3 * time);
  const auto total = throughput(r, options);
  nlohmann::json report{{"app", "troupe-gemm"},
                        {"engine", r.engine},
                        {"ranks", r.ranks},
                        {"grid", r.grid},
                        {"m", options.m},
                        {"n", options.n},
                        {"k", options.k},
                        {"type", type_name(options.dtype)},
                        {"transpose", transposes(options)},
                        {"alpha", options.alpha},
                        {"beta", options.beta},
                        {"a", json_of(r.a)},
                        {"b", json_of(r.b)},
                        {"c", json_of(r.c)},
                        {"iterations", r.times.size()},
                        {"restarted_from", r.restarted_from},
                        {"seconds", r.seconds},
                        {"times_ms", times},
                        {"time_ms_median", 1e3 * app::median_of(r.times)},
                        {"tflops_min", total.min},
                        {"tflops_median", total.median},
                        {"tflops_max", total.max},
                        {"tflops_per_rank_median", total.median / r.ranks},
                        {"right", r.right()},
                        {"residual", r.residual.error},
                        {"tolerance", r.residual.tolerance},
                        {"recoveries", app::to_json(r.recoveries)},
                        {"corruptions", app::to_json(r.corruptions)},
                        {"devices", r.devices}};
  if (r.elements) {
    report["element_error"] = r.elements->error;
    report["element_tolerance"] = r.elements->tolerance;
  }
  return report;
}

}  // namespace troupe::gemm
