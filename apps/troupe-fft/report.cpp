#include "report.hpp"

#include <fmt/format.h>

#include <numeric>

#include "job_report.hpp"

namespace troupe::fft3 {
namespace {

Triple of_spectrum(const Triple& grid) {
  return {1, grid[0], grid[1]};
}

std::string in_brackets(const Triple& grid) {
  return fmt::format("({}, {}, {})", grid[0], grid[1], grid[2]);
}

}  // namespace

double Report::seconds_each() const {
  if (times.empty()) return 0;
  return std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(2 * times.size());
}

double Report::flops_per_second(const Options& options) const {
  const double each = seconds_each();
  return each > 0 ? options.flops() / each : 0;
}

std::string to_text(const Report& r, const Options& options) {
  const std::string line(77, '-');
  std::string text = fmt::format("\n{}\ntroupe-fft performance test\n{}\n", line, line);
  text += fmt::format("Engine:       {}, {} {}\n", r.engine, options.single ? "float" : "double",
                      options.real ? "r2c" : "c2c");
  for (const auto& device : r.devices) text += "              " + device + "\n";
  text += fmt::format("Size:         {}x{}x{}\n", options.points[0], options.points[1],
                      options.points[2]);
  text += fmt::format("MPI ranks:    {}\n", r.ranks);
  text +=
      fmt::format("Grids:        {}  {}\n", in_brackets(r.grid), in_brackets(of_spectrum(r.grid)));
  if (r.restarted_from >= 0)
    text += fmt::format("Went on from: run {} of a saved state\n", r.restarted_from);
  text += fmt::format("Num runs:     {}, in {:.3f} (s)\n", r.times.size(), r.seconds);
  text += fmt::format("Time per run: {:.6g} (s)\n", r.seconds_each());
  text += fmt::format("Performance:  {:.6g} GFlops/s\n", r.flops_per_second(options) / 1e9);
  text += fmt::format("Memory usage: {}MB/rank\n", r.memory_bytes >> 20);
  text += fmt::format("Tolerance:    {:.3g}, of the spectrum {:.3g}\n", r.there_and_back.tolerance,
                      r.spectrum.tolerance);
  text += fmt::format("Max error:    {:.3g}, of the spectrum {:.3g}\n", r.there_and_back.error,
                      r.spectrum.error);
  text += fmt::format("Result:       {}\n", r.right() ? "right" : "WRONG");
  return text + app::to_text(r.recoveries, "run") + app::to_text(r.corruptions);
}

nlohmann::json to_json(const Report& r, const Options& options) {
  auto times = nlohmann::json::array();
  for (const double time : r.times) times.push_back(1e3 * time);
  nlohmann::json report{{"app", "troupe-fft"},
                        {"engine", r.engine},
                        {"ranks", r.ranks},
                        {"kind", options.real ? "r2c" : "c2c"},
                        {"precision", options.single ? "float" : "double"},
                        {"points", options.points},
                        {"ingrid", r.grid},
                        {"outgrid", of_spectrum(r.grid)},
                        {"iterations", r.times.size()},
                        {"restarted_from", r.restarted_from},
                        {"seconds", r.seconds},
                        {"times_ms", times},
                        {"time_ms_median", 1e3 * app::median_of(r.times)},
                        {"seconds_per_transform", r.seconds_each()},
                        {"gflops", r.flops_per_second(options) / 1e9},
                        {"memory_bytes", r.memory_bytes},
                        {"right", r.right()},
                        {"max_error", r.there_and_back.error},
                        {"tolerance", r.there_and_back.tolerance},
                        {"spectrum_error", r.spectrum.error},
                        {"spectrum_tolerance", r.spectrum.tolerance},
                        {"recoveries", app::to_json(r.recoveries)},
                        {"corruptions", app::to_json(r.corruptions)},
                        {"devices", r.devices}};
  return report;
}

}  // namespace troupe::fft3
