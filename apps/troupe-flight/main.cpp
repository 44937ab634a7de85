#include <boost/program_options.hpp>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include <troupe/runtime.hpp>

#include "report.hpp"

// troupe-flight FILES...: reads what the flight recorders of a job's ranks have dumped, and names
// the rank and the operation that the others waited for. No MPI program: it runs anywhere.

namespace {

namespace po = boost::program_options;

int complain(const std::string& what) {
  std::fprintf(stderr, "troupe-flight: %s\n", what.c_str());
  return troupe::kExitUsage;
}

}  // namespace

int main(int argc, char** argv) {
  po::options_description options("options");
  options.add_options()("help", "print this text, then exit")("json", po::bool_switch(),
                                                              "print JSON instead of text")(
      "rows", po::value<unsigned>()->default_value(8), "operations shown of each rank");
  po::options_description all = options;
  all.add_options()("files", po::value<std::vector<std::string>>());
  po::positional_options_description positional;
  positional.add("files", -1);
  po::variables_map given;
  try {
    po::store(po::command_line_parser(argc, argv).options(all).positional(positional).run(), given);
    po::notify(given);
  } catch (const po::error& e) {
    return complain(e.what());
  }
  if (given.contains("help")) {
    std::cout << "usage: troupe-flight [options] FILES...\n"
                 "Reads the dumps of a job's flight recorders (troupe-flight.JOB.RANK.json) and "
                 "names the rank\nand the operation that the others waited for.\n\n"
              << options;
    return troupe::kExitSuccess;
  }
  if (!given.contains("files")) return complain("no dump is named (see --help)");
  const auto dumps = troupe::flight::read_dumps(given["files"].as<std::vector<std::string>>());
  if (!dumps.ok()) return complain(dumps.error().message);
  const auto analysis = troupe::flight::analyse(*dumps);
  const auto rows = std::size_t{given["rows"].as<unsigned>()};
  const auto text =
      given["json"].as<bool>() ? to_json(*dumps, analysis, rows) : to_text(*dumps, analysis, rows);
  std::fputs(text.c_str(), stdout);
  return troupe::kExitSuccess;
}
