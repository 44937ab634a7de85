#include "report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "job_report.hpp"

namespace troupe::train {
namespace {

/// Some ten steps, the first and the last among them.
std::vector<std::size_t> steps_to_show(std::size_t count) {
  std::vector<std::size_t> steps;
  const auto apart = std::max<std::size_t>(1, (count + 9) / 10);
  for (std::size_t step = 0; step < count; step += apart) steps.push_back(step);
  if (steps.back() + 1 != count) steps.push_back(count - 1);
  return steps;
}

std::string of_check(const GradientCheck& check) {
  return fmt::format(
      "Gradients: {}\n  off by {:.1e} in {}, the loss by {:.1e} (tolerance {:.1e})\n"
      "  the host program's are off its differences by {:.2g} of what these may be off\n"
      "  an update by AdamW is off by {:.2g} of what it may be off\n",
      check.right() ? "right" : "WRONG", check.gradient_error, check.worst, check.loss_error,
      check.tolerance, check.difference_ratio, check.update_ratio);
}

}  // namespace

bool Report::finite() const {
  return std::all_of(losses.begin(), losses.end(), [](float loss) { return std::isfinite(loss); });
}

bool Report::same_parameters() const {
  return std::all_of(parameters.begin(), parameters.end(),
                     [&](auto hash) { return hash == parameters.front(); });
}

bool Report::right() const {
  return finite() && same_parameters() && (losses.size() == 1 || learnt()) &&
         (!check || check->right());
}

double Report::seconds_of_step() const {
  return later_steps > 0 ? later_seconds / static_cast<double>(later_steps)
                         : seconds / static_cast<double>(std::max<std::int64_t>(steps_done, 1));
}

double Report::tokens_per_second(const Options& options) const {
  const double step = seconds_of_step();
  if (step <= 0) return 0;
  return static_cast<double>(options.tokens_of_rank()) * static_cast<double>(devices.size()) / step;
}

std::string to_text(const Report& r, const Options& options) {
  const auto& shape = options.shape;
  const auto ranks = std::ssize(r.devices);
  std::string text = fmt::format(
      "\ntroupe-train: {} layers, {} heads, {} channels, {} positions, {} tokens; {:.4g} million "
      "parameters\n"
      "  {} ranks, each with {} sequences: {} tokens a step, of {} bytes of text\n"
      "  engine {}, {}, {}\n",
      shape.layers, shape.heads, shape.channels, shape.sequence, shape.vocabulary,
      static_cast<double>(Parameters(shape).count) / 1e6, ranks, options.batch,
      ranks * options.tokens_of_rank(), r.text_bytes, r.engine,
      options.dtype == DType::f32 ? "f32" : "bf16",
      options.record ? "recorded sequences" : "no sequences");
  for (const auto& device : r.devices) text += "  " + device + "\n";
  if (r.final_ranks != ranks)
    text += fmt::format("  {} of {} ranks at the end, with the sequences of all\n", r.final_ranks,
                        ranks);
  if (r.restarted_from >= 0)
    text += fmt::format("  went on from the saved state of step {}\n", r.restarted_from);
  text += fmt::format("{:>10} {:>10} {:>14}\n", "step", "loss", "gradient norm");
  for (const auto step : steps_to_show(r.losses.size()))
    text +=
        fmt::format("{:>10} {:>10.4f} {:>14.4g}\n", step, r.losses[step], r.gradient_norms[step]);
  const double rate = r.tokens_per_second(options), flops = rate * shape.flops_of_token();
  text += fmt::format("Time\n  {} steps in {:.3f} s\n", r.steps_done, r.seconds);
  text += fmt::format(
      "  {:.4g} tokens per second{}, {:.4g} model TFLOP/s{} (6 N D, and attention)\n", rate,
      r.later_steps > 0 ? fmt::format(" in the last {} steps", r.later_steps) : std::string(),
      flops / 1e12,
      r.final_ranks == ranks
          ? fmt::format(", {:.4g} of a rank", flops / 1e12 / static_cast<double>(ranks))
          : std::string());
  if (r.check) text += of_check(*r.check);
  text += fmt::format(
      "Training: {}\n  losses {}, from {:.4f} to {:.4f}; parameters of all ranks {}\n",
      r.right() ? "right" : "WRONG", r.finite() ? "finite" : "NOT FINITE", r.losses.front(),
      r.losses.back(), r.same_parameters() ? "the same" : "NOT THE SAME");
  return text + app::to_text(r.recoveries, "step") + app::to_text(r.corruptions);
}

nlohmann::json to_json(const Report& r, const Options& options) {
  const auto& shape = options.shape;
  const double rate = r.tokens_per_second(options);
  nlohmann::json report{{"app", "troupe-train"},
                        {"engine", r.engine},
                        {"ranks", r.devices.size()},
                        {"final_ranks", r.final_ranks},
                        {"model", options.model},
                        {"layers", shape.layers},
                        {"heads", shape.heads},
                        {"channels", shape.channels},
                        {"sequence", shape.sequence},
                        {"vocabulary", shape.vocabulary},
                        {"parameters", Parameters(shape).count},
                        {"batch_of_rank", options.batch},
                        {"dtype", options.dtype == DType::f32 ? "f32" : "bf16"},
                        {"recorded", options.record},
                        {"iterations", r.steps_done},
                        {"restarted_from", r.restarted_from},
                        {"seconds", r.seconds},
                        {"step_ms", 1e3 * r.seconds_of_step()},
                        {"tokens_per_second", rate},
                        {"model_flops_per_second", rate * shape.flops_of_token()},
                        {"right", r.right()},
                        {"first_loss", r.losses.front()},
                        {"final_loss", r.losses.back()},
                        {"losses", r.losses},
                        {"gradient_norms", r.gradient_norms},
                        {"parameters_hash", fmt::format("{:016x}", r.parameters.front())},
                        {"same_parameters", r.same_parameters()},
                        {"recoveries", app::to_json(r.recoveries)},
                        {"corruptions", app::to_json(r.corruptions)},
                        {"devices", r.devices}};
  if (r.check)
    report["gradients"] = {{"right", r.check->right()},
                           {"largest_error", r.check->gradient_error},
                           {"worst", r.check->worst},
                           {"loss_error", r.check->loss_error},
                           {"tolerance", r.check->tolerance},
                           {"difference_ratio", r.check->difference_ratio},
                           {"update_ratio", r.check->update_ratio}};
  return report;
}

}  // namespace troupe::train
