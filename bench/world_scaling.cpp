// How the control plane of a re-formation grows with the number of ranks: the real protocol
// (WorldSupervisor, WorldFollower, WorldRelay, their messages encoded and decoded) on a simulated
// network, up to 16,384 ranks.
//
//   world_scaling [--largest N] [--json FILE] [--latency-us N] …
//
// A world forms, raises its standby world, and loses the device host of one rank; measured is from
// the report of the fault until the last rank is active again. What is not simulated is how long
// the devices take: each phase's work takes the same time everywhere, as measured on real GPUs.
#include <fmt/format.h>

#include <boost/program_options.hpp>
#include <cstdio>
#include <iostream>
#include <set>

#include <nlohmann/json.hpp>

#include "comparison.hpp"
#include "report_file.hpp"
#include "simulation/reformation.hpp"

namespace troupe::bench {
namespace {

int scale(int argc, char** argv) {
  namespace po = boost::program_options;
  simulation::Parameters parameters;
  int largest = 16'384;
  std::string json;
  po::options_description options("Options");
  options.add_options()("help", "this text")("largest", po::value(&largest)->default_value(largest),
                                             "most ranks")("json", po::value(&json),
                                                           "write the results to this file")(
      "node-us", po::value(&parameters.node_us)->default_value(parameters.node_us),
      "latency within a node")(
      "network-us", po::value(&parameters.network_us)->default_value(parameters.network_us),
      "latency between nodes")("handling-us", po::value(&parameters.handling_us),
                               "of a message; default: measured");
  po::variables_map given;
  po::store(po::parse_command_line(argc, argv, options), given);
  po::notify(given);
  if (given.contains("help")) {
    std::cout << options;
    return 0;
  }
  if (const auto file = app::check_report_file(json); !file.ok()) {
    fmt::print(stderr, "world_scaling: {}\n", file.error().to_string());
    return 2;
  }
  if (!given.contains("handling-us"))
    parameters.handling_us = simulation::measure_handling_us(parameters);

  fmt::print("latency {} us in a node of {}, {} us between nodes; {:.2f} us to handle a message\n",
             parameters.node_us, parameters.ranks_per_node, parameters.network_us,
             parameters.handling_us);
  fmt::print("{:>7} {:>6} {:>6} {:>9} {:>11} {:>14} {:>11} {:>9}\n", "ranks", "radix", "depth",
             "messages", "bytes", "most at a rank", "control ms", "total ms");
  std::vector<std::string> lines;
  for (int ranks = 4; ranks <= largest; ranks *= 4) {
    for (const int radix : std::set<int>{2, 4, 8, ranks}) {
      if (radix > ranks) continue;  // as the last: everyone hangs on rank 0
      parameters.ranks = ranks;
      parameters.radix = radix;
      const auto o = simulation::lose_one(parameters);
      fmt::print("{:>7} {:>6} {:>6} {:>9} {:>11} {:>14} {:>11.3f} {:>9.1f}\n", ranks,
                 radix == ranks ? "flat" : std::to_string(radix), o.depth, o.messages, o.bytes,
                 o.most_at_one_rank, o.control_ms, o.total_ms);
      lines.push_back(nlohmann::json{{"ranks", ranks},
                                     {"radix", radix},
                                     {"depth", o.depth},
                                     {"messages", o.messages},
                                     {"bytes", o.bytes},
                                     {"most_messages_at_one_rank", o.most_at_one_rank},
                                     {"control_ms", o.control_ms},
                                     {"total_ms", o.total_ms},
                                     {"handling_us", parameters.handling_us},
                                     {"node_us", parameters.node_us},
                                     {"network_us", parameters.network_us}}
                          .dump());
    }
  }
  const auto written = write_json_lines(json, lines);
  if (!written.ok()) fmt::print(stderr, "world_scaling: {}\n", written.error().to_string());
  return written.ok() ? 0 : 1;
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  try {
    return troupe::bench::scale(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "world_scaling: %s\n", e.what());
    return 2;
  }
}
