#include "report.hpp"

#include <fmt/format.h>

#include <iterator>

#include "job_report.hpp"

namespace troupe::cg {

double Report::flops_per_iteration() const {
  // p'Ap, r'r and, with a preconditioner, r'z; x, r and p updates; with a preconditioner n for z.
  double vectors = 2 * 2 + 3 * 2;
  if (preconditioner != Preconditioner::none) vectors += 2;
  if (preconditioner == Preconditioner::jacobi) vectors += 1;
  double flops = 2.0 * static_cast<double>(nonzeros) + vectors * static_cast<double>(rows);
  for (std::size_t grid = 0; grid < grid_nonzeros.size(); ++grid) {
    const bool coarsest = grid + 1 == grid_nonzeros.size();
    flops += (coarsest ? 4.0 : 10.0) * static_cast<double>(grid_nonzeros[grid]);
  }
  return flops;
}

double Report::gflops() const {
  return solve_seconds > 0
             ? flops_per_iteration() * static_cast<double>(iterations_done()) / solve_seconds / 1e9
             : 0;
}

std::string to_text(const Report& r, const Options& options) {
  std::string text;
  auto out = std::back_inserter(text);
  const auto line = [&]<class... Args>(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(out, format, std::forward<Args>(args)...);
    text += '\n';
  };
  line("");
  line("troupe-cg: {}", r.problem);
  line("  rows {}, nonzeros {}, {} ranks, engine {}, {}, preconditioner {}", r.rows, r.nonzeros,
       r.ranks, r.engine, to_string(options.dtype), to_string(r.preconditioner));
  for (const auto& device : r.devices) line("  {}", device);
  line("Solution");
  line("  {} after {} iterations", r.converged ? "converged" : "NOT converged", r.iterations);
  if (r.restarted_from >= 0)
    line("  went on from the saved state of iteration {}", r.restarted_from);
  line("  relative residual        {:.3e}  (tolerance {:.1e})", r.relative_residual,
       options.tolerance);
  line("  true relative residual   {:.3e}  |b - A x| / |b|, from scratch",
       r.true_relative_residual);
  line("  relative error           {:.3e}  |x - x_true| / |x_true|", r.relative_error);
  if (!r.history.empty()) {
    line("Residual history");
    for (const auto& [iteration, residual] : r.history)
      line("  {:>8}  {:.6e}", iteration, residual);
  }
  line("Time");
  line("  set-up {:.3f} s, upload {:.3f} s, solve {:.3f} s, verification {:.3f} s", r.setup_seconds,
       r.upload_seconds, r.solve_seconds, r.verify_seconds);
  line("  {:.3f} ms per iteration, {:.2f} GFLOP/s (operations counted as in HPCG)",
       r.iterations_done() > 0 ? 1e3 * r.solve_seconds / static_cast<double>(r.iterations_done())
                               : 0.0,
       r.gflops());
  if (r.spmv_seconds > 0 && r.copy_seconds > 0) {
    const double spmv = r.spmv_bytes / r.spmv_seconds / 1e9,
                 copy = r.copy_bytes / r.copy_seconds / 1e9;
    line(
        "  rank 0's SpMV on its own, in {}: {:.1f} GB/s, {:.0f} % of the {:.1f} GB/s of a "
        "device-to-device copy",
        r.spmv_format, spmv, 100 * spmv / copy, copy);
    line(
        "  (bytes of an SpMV: each nonzero and row offset once, no padding, x once, y written "
        "once)");
  }
  if (!r.checkpoints.empty()) {
    line("States on disk: {}", r.checkpoints.size());
    line("  {:>9} {:>10} {:>9} {:>9} {:>9} {:>7}", "iteration", "MiB", "ms", "stall/ms", "GB/s",
         "by");
    for (const auto& c : r.checkpoints) {
      line("  {:>9} {:>10.1f} {:>9.1f} {:>9.3f} {:>9.3f} {:>7}", c.step,
           static_cast<double>(c.bytes) / (1 << 20), 1e3 * c.seconds, 1e3 * c.stall_seconds,
           c.write_rate() / 1e9, to_string(c.io));
    }
    line(
        "  (MiB: of all ranks; ms: from the commit until it was complete; stall: of the "
        "iterations; GB/s: of writing; by: see --checkpoint-io)");
  }
  if (r.final_ranks != r.ranks) line("Ranks at the end: {} of {}", r.final_ranks, r.ranks);
  line("Recoveries: {} (epoch {} at the end)", r.recoveries.size(), r.final_epoch);
  if (!r.recoveries.empty()) {
    auto head = fmt::format("  {:>4} {:<15} {:>9} {:>6}", "rank", "fault", "iteration", "epoch");
    for (const auto& time : kRecoveryTimes) head += fmt::format(" {:>8}", time.name);
    line("{} {:>9} {:>5} {:>9}", head, "total/ms", "lost", "repeated");
    for (const auto& f : r.recoveries) {
      auto row = fmt::format("  {:>4} {:<15} {:>9} {:>6}", f.rank, f.kind,
                             f.iteration < 0 ? "-" : std::to_string(f.iteration), f.epoch);
      for (const auto& time : kRecoveryTimes) row += fmt::format(" {:>8.1f}", f.*time.ms);
      line("{} {:>9.1f} {:>5} {:>9}", row, f.total_ms, f.lost_buffers, f.repeated_iterations);
    }
    line(
        "  (iteration: in which the program noticed it, ahead of its device; times in ms; lost: "
        "buffers whose contents went, over all ranks; repeated: iterations done again)");
  }
  if (!r.health.empty()) line("Health of GPUs");
  for (const auto& said : r.health) {
    line("  rank {} {}: {} ({})", said.rank, said.failing ? "is failing" : "says", said.text,
         to_string(said.kind));
  }
  return text + app::to_text(r.corruptions);
}

nlohmann::json to_json(const Report& r, const Options& options) {
  nlohmann::json health = nlohmann::json::array();
  for (const auto& said : r.health) {
    health.push_back({{"rank", said.rank},
                      {"kind", std::string(to_string(said.kind))},
                      {"text", said.text},
                      {"failing", said.failing}});
  }
  nlohmann::json checkpoints = nlohmann::json::array();
  for (const auto& c : r.checkpoints) {
    checkpoints.push_back({{"iteration", c.step},
                           {"bytes", c.bytes},
                           {"seconds", c.seconds},
                           {"stall_seconds", c.stall_seconds},
                           {"io", to_string(c.io)},
                           {"write_seconds", c.write_seconds},
                           {"bytes_per_second", c.write_rate()}});
  }
  nlohmann::json history = nlohmann::json::array();
  for (const auto& [iteration, residual] : r.history) history.push_back({iteration, residual});
  return {{"app", "troupe-cg"},
          {"engine", r.engine},
          {"problem", r.problem},
          {"ranks", r.ranks},
          {"final_ranks", r.final_ranks},
          {"devices", r.devices},
          {"dtype", std::string(to_string(options.dtype))},
          {"precond", to_string(r.preconditioner)},
          {"rows", r.rows},
          {"nonzeros", r.nonzeros},
          {"iterations", r.iterations},
          {"iterations_done", r.iterations_done()},
          {"converged", r.converged},
          {"tolerance", options.tolerance},
          {"relative_residual", r.relative_residual},
          {"true_relative_residual", r.true_relative_residual},
          {"relative_error", r.relative_error},
          {"seconds", r.solve_seconds},
          {"setup_seconds", r.setup_seconds},
          {"upload_seconds", r.upload_seconds},
          {"verify_seconds", r.verify_seconds},
          {"gflops", r.gflops()},
          {"spmv_format", r.spmv_format},
          {"spmv_gb_per_s", r.spmv_seconds > 0 ? r.spmv_bytes / r.spmv_seconds / 1e9 : 0.0},
          {"copy_gb_per_s", r.copy_seconds > 0 ? r.copy_bytes / r.copy_seconds / 1e9 : 0.0},
          {"epoch", r.final_epoch},
          {"history", history},
          {"recoveries", app::to_json(r.recoveries)},
          {"corruptions", app::to_json(r.corruptions)},
          {"health", health},
          {"restarted_from", r.restarted_from},
          {"checkpoints", checkpoints}};
}

}  // namespace troupe::cg
