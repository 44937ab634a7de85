#include "report.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "report_file.hpp"

namespace troupe::perf {
namespace {

using Json = nlohmann::ordered_json;

/// At most so many characters, with as many decimals as there is room for.
std::string fitted(double value, std::size_t width) {
  for (const int decimals : {2, 1, 0}) {
    auto text = fmt::format("{:.{}f}", value, decimals);
    if (text.size() <= width) return text;
  }
  return fmt::format("{:.{}e}", value, width >= 7 ? 1 : 0);
}

std::string columns(const Measured& one) {
  if (!one.done) return fmt::format("  {:>7}  {:>6}  {:>6}  {:>6}", "N/A", "N/A", "N/A", "N/A");
  return fmt::format("  {:>7}  {:>6}  {:>6}  {:>6}", fitted(one.microseconds, 7),
                     fitted(one.bandwidth.algorithm, 6), fitted(one.bandwidth.bus, 6),
                     one.wrong < 0 ? "N/A" : fmt::format("{:g}", static_cast<double>(one.wrong)));
}

std::string reduction_of(const Call& call) {
  return traits(call.operation).reduces ? std::string(name_of(call.reduction)) : "none";
}
int root_of(const Call& call) {
  return traits(call.operation).rooted ? call.root : -1;
}

Json to_json(const Measured& one) {
  if (!one.done) return nullptr;
  Json json = {{"time", one.microseconds},
               {"alg_bw", one.bandwidth.algorithm},
               {"bus_bw", one.bandwidth.bus},
               {"nwrong", nullptr}};
  if (one.wrong >= 0) json["nwrong"] = one.wrong;
  return json;
}

Json to_json(const Recovery& one) {
  Json json = {{"rank", one.rank}, {"kind", one.kind}, {"epoch", one.epoch}};
  for (const auto& time : kRecoveryTimes) json[fmt::format("{}_ms", time.name)] = one.*time.ms;
  json["total_ms"] = one.total_ms;
  return json;
}

Json to_json(const Row& row, const Options& options) {
  Json json = {{"operation", traits(row.call.operation).name},
               {"size", row.bytes},
               {"count", row.call.count},
               {"type", name_of(row.call.dtype)},
               {"redop", reduction_of(row.call)},
               {"root", std::to_string(root_of(row.call))},
               {"out_of_place", to_json(row.out_of_place)},
               {"in_place", to_json(row.in_place)}};
  if (!options.peer.empty()) {
    json["peer_out_of_place"] = to_json(row.peer_out_of_place);
    json["peer_in_place"] = to_json(row.peer_in_place);
  }
  json["actual_iterations"] = options.iterations;
  json["repeated"] = row.repeated;
  json["recoveries"] = Json::array();
  for (const auto& one : row.recoveries) json["recoveries"].push_back(to_json(one));
  return json;
}

/// Those of a row that were done.
template <class Each>
void for_each_measured(const Row& row, const Each& each) {
  for (const auto* one :
       {&row.out_of_place, &row.in_place, &row.peer_out_of_place, &row.peer_in_place})
    if (one->done) each(*one, one == &row.out_of_place || one == &row.in_place);
}

}  // namespace

std::int64_t Report::failures() const {
  std::int64_t count = 0;
  for (const auto& row : rows)
    for_each_measured(row, [&](const Measured& one, bool) { count += one.wrong > 0 ? 1 : 0; });
  return count;
}

double Report::average_bus() const {
  double sum = 0;
  std::int64_t count = 0;
  for (const auto& row : rows) {
    for_each_measured(row, [&](const Measured& one, bool ours) {
      if (ours) sum += one.bandwidth.bus, ++count;
    });
  }
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

std::string heading(const Setting& setting, const Options& options) {
  const bool factor = options.step_factor > 1;
  auto text = fmt::format(
      "# troupe-perf, engine {}: {}\n"
      "# nThread 1 nGpus 1 minBytes {} maxBytes {} step: {}({}) warmup iters: {} iters: {} agg "
      "iters: 1 validation: {} graph: {}\n",
      setting.engine, options.operation_names(), options.smallest, options.largest,
      factor ? options.step_factor : options.step_bytes, factor ? "factor" : "bytes",
      options.warm_up, options.iterations, options.checks, options.replays);
  if (setting.group != setting.ranks) {
    text += fmt::format("# {} groups of {} ranks, all at once; bandwidths are of one group\n",
                        setting.ranks / setting.group, setting.group);
  }
  text += "#\n# Using devices\n";
  for (const auto& device : setting.devices) text += "#  " + device + "\n";
  text += "#\n";
  const auto line = [&](const std::string& front, const std::string& half) {
    text += front + half + half + (options.peer.empty() ? "" : half + half) + "\n";
  };
  const auto front = [](const char* size, const char* count, const char* type, const char* redop,
                        const char* root) {
    return fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}", size, count, type, redop, root);
  };
  text += front("", "", "", "", "") +
          "           out-of-place                       in-place          ";
  if (!options.peer.empty()) {
    text += fmt::format("       {:>4}, out-of-place                   {:>4}, in-place",
                        options.peer, options.peer);
  }
  text += "\n";
  line(front("size", "count", "type", "redop", "root"), "     time   algbw   busbw  #wrong");
  line(front("(B)", "(elements)", "", "", ""), "     (us)  (GB/s)  (GB/s)        ");
  return text;
}

std::string to_text(const Row& row, const Options& options) {
  auto text = fmt::format("{:>12}  {:>12}  {:>8}  {:>6}  {:>6}", row.bytes, row.call.count,
                          name_of(row.call.dtype), reduction_of(row.call), root_of(row.call));
  text += columns(row.out_of_place) + columns(row.in_place);
  if (!options.peer.empty()) text += columns(row.peer_out_of_place) + columns(row.peer_in_place);
  text += "\n";
  for (const auto& one : row.recoveries) {
    text += fmt::format(
        "# fault in the row above: rank {}, {}, overcome in {:.1f} ms; measured again\n", one.rank,
        one.kind, one.total_ms);
  }
  return text;
}

std::string footing(const Report& report, const Options& options) {
  const auto failures = report.failures();
  std::size_t recoveries = 0;
  for (const auto& row : report.rows) recoveries += row.recoveries.size();
  auto text =
      fmt::format("# {:<20} : {} {}\n# {:<20} : {:g} \n", "Out of bounds values", failures,
                  failures == 0 ? "OK" : "FAILED", "Avg bus bandwidth", report.average_bus());
  if (!options.faults.empty())
    text += fmt::format("# {:<20} : {}\n", "Faults overcome", recoveries);
  return text + "#\n";
}

Result<void> write_json(const std::string& path, const Report& report, const Setting& setting,
                        const Options& options) {
  Json config = {{"nthreads", 1},
                 {"ngpus", 1},
                 {"minimum_bytes", options.smallest},
                 {"maximum_bytes", options.largest}};
  config[options.step_factor > 1 ? "step_factor" : "step_bytes"] =
      options.step_factor > 1 ? options.step_factor : options.step_bytes;
  config["warmup_iters"] = options.warm_up;
  config["iterations"] = options.iterations;
  config["validation"] = options.checks;
  config["graph"] = options.replays;
  config["blocking_collectives"] = options.blocking;
  config["devices"] = setting.devices;
  Json json = {{"app", "troupe-perf"},
               {"engine", setting.engine},
               {"operation", options.operation_names()},
               {"ranks", setting.ranks},
               {"group", setting.group},
               {"peer", options.peer.empty() ? Json(nullptr) : Json(options.peer)},
               {"config", config},
               {"results", Json::array()}};
  json["recoveries"] = Json::array();
  for (const auto& row : report.rows) {
    json["results"].push_back(to_json(row, options));
    for (const auto& one : row.recoveries) json["recoveries"].push_back(to_json(one));
  }
  json["seconds"] = report.seconds;
  json["out_of_bounds"] = {{"count", report.failures()}, {"okay", report.failures() == 0}};
  json["average_bus_bandwidth"] = {{"bandwidth", report.average_bus()}};
  return app::write_report_file(path, app::json_text(json, 1));
}

}  // namespace troupe::perf
