#include "report.hpp"

#include <fmt/format.h>

#include "job_report.hpp"

namespace troupe::heat {
namespace {

double ranks_of(const Domain& domain) {
  return static_cast<double>(domain.ranks[0] * domain.ranks[1] * domain.ranks[2]);
}

std::string times(const Triple& three) {
  return fmt::format("{} x {} x {}", three[0], three[1], three[2]);
}

}  // namespace

double Report::points_per_second() const {
  if (seconds <= 0) return 0;
  return static_cast<double>(domain.count()) * ranks_of(domain) * static_cast<double>(steps_done) /
         seconds;
}

double Report::bytes_per_second(const Options& options) const {
  return points_per_second() / ranks_of(domain) * 2 * static_cast<double>(size_of(options.dtype));
}

std::string to_text(const Report& r, const Options& options) {
  std::string text = fmt::format(
      "\ntroupe-heat: {} points on {} ranks ({}), {} of each\n  engine {}, {}, {}\n",
      times(r.domain.global()), ranks_of(r.domain), times(r.domain.ranks), times(r.domain.points),
      r.engine, options.dtype == DType::f32 ? "f32" : "f64",
      options.record ? fmt::format("{} steps recorded as one sequence", options.together)
                     : std::string("no sequence"));
  for (const auto& device : r.devices) text += "  " + device + "\n";
  if (r.restarted_from >= 0)
    text += fmt::format("  went on from the saved state of step {}\n", r.restarted_from);
  text += fmt::format("Time\n  {} steps in {:.3f} s, {:.4f} ms each\n", r.steps_done, r.seconds,
                      r.steps_done > 0 ? 1e3 * r.seconds / static_cast<double>(r.steps_done) : 0);
  text += fmt::format(
      "  {:.4g} points per second, {:.1f} GB/s of a rank (each point read once, written once)\n",
      r.points_per_second(), r.bytes_per_second(options) / 1e9);
  text += fmt::format("Solution after step {}: {}\n", r.steps, r.right() ? "right" : "WRONG");
  text += fmt::format("  largest error {:.3e} of the scheme's exact solution (tolerance {:.1e})\n",
                      r.largest_error, r.tolerance);
  return text + app::to_text(r.recoveries, "step") + app::to_text(r.corruptions);
}

nlohmann::json to_json(const Report& r, const Options& options) {
  nlohmann::json report{{"app", "troupe-heat"},
                        {"engine", r.engine},
                        {"ranks", static_cast<std::int64_t>(ranks_of(r.domain))},
                        {"ranks_by_axis", r.domain.ranks},
                        {"points_of_rank", r.domain.points},
                        {"points", r.domain.global()},
                        {"dtype", options.dtype == DType::f32 ? "f32" : "f64"},
                        {"courant", options.courant},
                        {"recorded", options.record},
                        {"iterations", r.steps_done},
                        {"restarted_from", r.restarted_from},
                        {"seconds", r.seconds},
                        {"points_per_second", r.points_per_second()},
                        {"bytes_per_second", r.bytes_per_second(options)},
                        {"right", r.right()},
                        {"largest_error", r.largest_error},
                        {"tolerance", r.tolerance},
                        {"recoveries", app::to_json(r.recoveries)},
                        {"corruptions", app::to_json(r.corruptions)},
                        {"devices", r.devices}};
  return report;
}

}  // namespace troupe::heat
