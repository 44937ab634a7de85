#include <fmt/format.h>

#include "hpcg_result.hpp"
#include "job_report.hpp"
#include "options.hpp"
#include "report.hpp"
#include "stencil.hpp"

namespace troupe::cg {
namespace {

using Json = nlohmann::ordered_json;

constexpr auto kNot = "does not apply: ";

const char* verdict(bool passed) {
  return passed ? "PASSED" : "FAILED";
}

/// A heading, which HPCG writes as a key without a value.
void head(Json& doc, const char* title) {
  doc[fmt::format("########## {} ##########", title)] = "";
}

double per_second(double count, double seconds) {
  return seconds > 0 ? count / seconds / 1e9 : 0;
}

void add_problem(Json& doc, const HpcgResult& r) {
  const auto grid = ProcessGrid::of(r.ranks);
  doc["Machine Summary"] = {
      {"Distributed Processes", r.ranks},
      {"Threads per processes", std::string(kNot) + "each process has a device that computes"},
      {"Engine", r.engine},
      {"Devices", r.devices}};
  doc["Global Problem Dimensions"] = {{"Global nx", r.points[0] * grid.px},
                                      {"Global ny", r.points[1] * grid.py},
                                      {"Global nz", r.points[2] * grid.pz}};
  doc["Processor Dimensions"] = {{"npx", grid.px}, {"npy", grid.py}, {"npz", grid.pz}};
  doc["Local Domain Dimensions"] = {{"nx", r.points[0]},
                                    {"ny", r.points[1]},
                                    {"Lower ipz", 0},
                                    {"Upper ipz", grid.pz - 1},
                                    {"nz", r.points[2]}};
  head(doc, "Problem Summary ");
  doc["Setup Information"] = {{"Setup Time", r.setup_seconds}};
  doc["Linear System Information"] = {{"Number of Equations", r.grid_rows[0]},
                                      {"Number of Nonzero Terms", r.grid_nonzeros[0]}};
  auto grids = Json::array();
  for (std::size_t level = 1; level < r.grid_rows.size(); ++level) {
    grids.push_back({{"Grid Level", level},
                     {"Number of Equations", r.grid_rows[level]},
                     {"Number of Nonzero Terms", r.grid_nonzeros[level]},
                     {"Number of Presmoother Steps", 1},
                     {"Number of Postsmoother Steps", 1}});
  }
  doc["Multigrid Information"] = {{"Number of coarse grid levels", r.grid_rows.size() - 1},
                                  {"Coarse Grids", grids}};
  head(doc, "Memory Use Summary ");
  doc["Memory Use Information"] = {
      {"Total memory used for data (Gbytes)", r.held_bytes / 1e9},
      {"Memory used for OptimizeProblem data (Gbytes)",
       std::string(kNot) + "the reference's data are freed first"},
      {"Bytes per equation (Total memory / Number of Equations)",
       r.held_bytes / static_cast<double>(r.grid_rows[0])},
      {"What is counted",
       "buffers in device memory, those of the commits among them; not what "
       "libraries take"}};
}

void add_tests(Json& doc, const HpcgResult& r) {
  head(doc, "V&V Testing Summary ");
  doc["Spectral Convergence Tests"] = {
      {"Result", verdict(r.spectral_test_passed())},
      {"Unpreconditioned",
       {{"Maximum iteration count", r.plain_iterations}, {"Expected iteration count", 12}}},
      {"Preconditioned",
       {{"Maximum iteration count", r.preconditioned_iterations},
        {"Expected iteration count", 2}}}};
  doc["Departure from Symmetry |x'Ay-y'Ax|/(2*||x||*||A||*||y||)/epsilon"] = {
      {"Result", verdict(r.symmetry_test_passed())},
      {"Departure for SpMV", r.spmv_departure},
      {"Departure for MG", r.multigrid_departure}};
  head(doc, "Iterations Summary ");
  const auto sets = std::ssize(r.sets);
  doc["Iteration Count Information"] = {
      {"Result", verdict(r.reached)},
      {"Reference CG iterations per set", kReferenceIterations},
      {"Optimized CG iterations per set", r.set_iterations},
      {"Total number of reference iterations", kReferenceIterations * sets},
      {"Total number of optimized iterations", r.iterations()},
      {"Scaled residual of the reference", r.reference_residual}};
  head(doc, "Reproducibility Summary ");
  const auto [mean, variance] = r.residual_moments();
  doc["Reproducibility Information"] = {{"Result", verdict(r.reproducible())},
                                        {"Scaled residual mean", mean},
                                        {"Scaled residual variance", variance},
                                        {"Relative error |x-1|/|1|", r.relative_error}};
}

void add_performance(Json& doc, const HpcgResult& r) {
  head(doc, "Performance Summary (times in sec)");
  const auto sets = static_cast<double>(r.sets.size());
  const auto part = [&](Part which) { return r.parts[static_cast<std::size_t>(which)]; };
  const double dot = part(Part::dot) + part(Part::all_reduce);
  doc["Benchmark Time Summary"] = {
      {"Optimization phase", r.optimisation_seconds},
      {"DDOT", dot},
      {"WAXPBY", part(Part::waxpby)},
      {"SpMV", part(Part::spmv)},
      {"MG", part(Part::multigrid)},
      {"Total", r.seconds},
      {"Number of CG sets", r.sets.size()},
      {"What DDOT to MG are",
       "of one set more, in which each part is waited for; in the timed "
       "sets, which Total is of, they overlap"}};
  const auto flops = operations(r), read = bytes_read(r), written = bytes_written(r);
  const double share =
      static_cast<double>(kReferenceIterations) / static_cast<double>(r.set_iterations);
  doc["Floating Point Operations Summary"] = {
      {"Raw DDOT", flops.dot},  {"Raw WAXPBY", flops.waxpby},
      {"Raw SpMV", flops.spmv}, {"Raw MG", flops.multigrid},
      {"Total", flops.total()}, {"Total with convergence overhead", flops.total() * share}};
  const double overhead = sets * (r.optimisation_seconds + r.setup_seconds) / 10;
  const double bytes = read.total() + written.total();
  doc["GB/s Summary"] = {{"Raw Read B/W", per_second(read.total(), r.seconds)},
                         {"Raw Write B/W", per_second(written.total(), r.seconds)},
                         {"Raw Total B/W", per_second(bytes, r.seconds)},
                         {"Total with convergence and optimization phase overhead",
                          per_second(bytes * share, r.seconds + overhead)}};
  doc["GFLOP/s Summary"] = {
      {"Raw DDOT", per_second(flops.dot / sets, dot)},
      {"Raw WAXPBY", per_second(flops.waxpby / sets, part(Part::waxpby))},
      {"Raw SpMV", per_second(flops.spmv / sets, part(Part::spmv))},
      {"Raw MG", per_second(flops.multigrid / sets, part(Part::multigrid))},
      {"Raw Total", per_second(flops.total(), r.seconds)},
      {"Total with convergence overhead", per_second(flops.total() * share, r.seconds)},
      {"Total with convergence and optimization phase overhead", r.gflops()}};
  doc["User Optimization Overheads"] = {
      {"Optimization phase time (sec)", r.optimisation_seconds},
      {"Optimization phase time vs reference SpMV+MG time",
       r.reference_kernels_seconds > 0 ? r.optimisation_seconds / r.reference_kernels_seconds : 0}};
  doc["DDOT Timing Variations"] = {{"Min DDOT MPI_Allreduce time", r.all_reduce[0]},
                                   {"Max DDOT MPI_Allreduce time", r.all_reduce[1]},
                                   {"Avg DDOT MPI_Allreduce time", r.all_reduce[2]}};
}

/// What HPCG's report does not have.
void add_recoveries(Json& doc, const HpcgResult& r) {
  head(doc, "Recovery Summary ");
  double milliseconds = 0;
  std::int64_t again = 0;
  for (const auto& one : r.recoveries) {
    milliseconds += one.total_ms;
    again += one.repeated_iterations;
  }
  const auto cost = recovery_cost(r);
  Json slower = cost.seconds;
  if (cost.struck_sets == 0) {
    slower = std::string(kNot) + "no set had a recovery";
  } else if (cost.struck_sets == std::ssize(r.sets)) {
    slower = std::string(kNot) + "every set had a recovery";
  }
  doc["Recovery Information"] = {
      {"Recoveries", r.recoveries.size()},
      {"Time of recoveries (sec)", milliseconds / 1e3},
      {"Iterations done again", again},
      {"Sets with a recovery", cost.struck_sets},
      {"By how much these were slower than the median of the others (sec)", slower},
      {"Iterations between commits", r.commit_every},
      {"What the rating has of it", "all: Total has commits and recoveries in it"}};
}

void add_end(Json& doc, const HpcgResult& r) {
  doc["Rules"] = {{"Problem, phases, models", "as in HPCG 3.1"},
                  {"Smoother",
                   "symmetric Gauss-Seidel, in the timed sets in the order of eight colours, as an "
                   "optimization; the reference has HPCG's order"},
                  {"Reference",
                   "on the devices, by calls of libraries; the timed sets have kernels of the "
                   "program's own"},
                  {"HPCG's list", std::string(kNot) + "this is not HPCG's own code"}};
  auto& end = doc["Final Summary"];
  if (!r.valid()) {
    end["HPCG result is"] = "INVALID.";
    return;
  }
  end["HPCG result is VALID with a GFLOP/s rating of"] = r.gflops();
  if (r.seconds >= kOfficialSeconds) {
    end["Execution time (sec) is that of an official result"] = r.seconds;
  } else {
    end["Results are valid but execution time (sec) is"] = r.seconds;
    end["Official results execution time (sec) must be at least"] = kOfficialSeconds;
  }
}

std::string in_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_number_float() ? fmt::format("{:.6g}", value.get<double>()) : value.dump();
}

void add_lines(const std::string& key, const Json& value, std::string& text) {
  if (!value.is_structured()) {
    text += fmt::format("{}={}\n", key, in_text(value));
    return;
  }
  if (value.is_object() || value.front().is_object()) text += key + "=\n";
  for (const auto& [name, inner] : value.items()) {
    // The elements of a list have the key of the list.
    if (value.is_object()) {
      add_lines(key + "::" + name, inner, text);
    } else if (inner.is_object()) {
      for (const auto& [of_element, part] : inner.items())
        add_lines(key + "::" + of_element, part, text);
    } else {
      add_lines(key, inner, text);
    }
  }
}

}  // namespace

Json hpcg_document(const HpcgResult& result) {
  auto doc = Json::object();
  add_problem(doc, result);
  add_tests(doc, result);
  add_performance(doc, result);
  add_recoveries(doc, result);
  add_end(doc, result);
  return doc;
}

std::string to_text(const HpcgResult& result) {
  std::string text = "\ntroupe-cg: a rating by the rules of HPCG 3.1\n";
  const auto doc = hpcg_document(result);
  for (const auto& [key, value] : doc.items()) add_lines(key, value, text);
  return text;
}

nlohmann::json to_json(const HpcgResult& r) {
  const auto all = hpcg_document(r);
  auto sections = Json::object();
  for (const auto& [key, value] : all.items()) {
    if (!key.starts_with('#')) sections[key] = value;
  }
  auto sets = Json::array();
  for (const auto& set : r.sets) {
    sets.push_back(
        {{"seconds", set.seconds}, {"scaled_residual", set.scaled_residual}, {"epoch", set.epoch}});
  }
  return {{"app", "troupe-cg"},
          {"engine", r.engine},
          {"ranks", r.ranks},
          {"devices", r.devices},
          {"dtype", "f64"},
          {"precond", "mg"},
          {"rows", r.grid_rows[0]},
          {"nonzeros", r.grid_nonzeros[0]},
          {"iterations", r.iterations()},
          {"seconds", r.seconds},
          {"gflops", r.gflops()},
          {"valid", r.valid()},
          {"official_time", r.seconds >= kOfficialSeconds},
          {"relative_error", r.relative_error},
          {"reference_history", r.reference_history},
          {"sets", sets},
          {"recoveries", app::to_json(r.recoveries)},
          {"hpcg", sections}};
}

}  // namespace troupe::cg
