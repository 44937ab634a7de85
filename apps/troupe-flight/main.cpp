#include <boost/program_options.hpp>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include <troupe/runtime.hpp>
#include <troupe/trace.hpp>

#include "report.hpp"

// troupe-flight FILES...: reads what the flight recorders of a job's ranks have dumped, and names
// the rank and the operation that the others waited for. With --trace FILE, the parts of a trace
// that a job has left, of which it makes one. No MPI program: it runs anywhere.

namespace {

namespace po = boost::program_options;

int complain(const std::string& what) {
  std::fprintf(stderr, "troupe-flight: %s\n", what.c_str());
  return troupe::kExitUsage;
}

int merge(const std::vector<std::string>& parts, const std::string& file) {
  const auto merged = troupe::merge_trace(parts, file);
  if (!merged.ok()) return complain(merged.error().message);
  std::printf("%s: %llu commands of %d ranks, %llu recoveries\n", file.c_str(),
              static_cast<unsigned long long>(merged->commands), merged->ranks,
              static_cast<unsigned long long>(merged->recoveries));
  if (merged->lost != 0)
    std::printf("%llu commands or GPU activities are missing: they passed too fast\n",
                static_cast<unsigned long long>(merged->lost));
  return troupe::kExitSuccess;
}

}  // namespace

int main(int argc, char** argv) {
  po::options_description options("options");
  options.add_options()("help", "print this text, then exit")("json", po::bool_switch(),
                                                              "print JSON instead of text")(
      "rows", po::value<unsigned>()->default_value(8), "operations shown of each rank")(
      "trace", po::value<std::string>(),
      "make this trace of the parts that a job with --trace has left");
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
                 "names the rank\nand the operation that the others waited for; or, with\n--trace, "
                 "parts of a trace (FILE.part.RANK), of which "
                 "it makes one.\n\n"
              << options;
    return troupe::kExitSuccess;
  }
  if (!given.contains("files")) return complain("no file is named (see --help)");
  if (given.contains("trace"))
    return merge(given["files"].as<std::vector<std::string>>(), given["trace"].as<std::string>());
  const auto dumps = troupe::flight::read_dumps(given["files"].as<std::vector<std::string>>());
  if (!dumps.ok()) return complain(dumps.error().message);
  const auto analysis = troupe::flight::analyse(*dumps);
  const auto rows = std::size_t{given["rows"].as<unsigned>()};
  const auto text =
      given["json"].as<bool>() ? to_json(*dumps, analysis, rows) : to_text(*dumps, analysis, rows);
  std::fputs(text.c_str(), stdout);
  if (std::fflush(stdout) != 0) return complain("standard output cannot be written");
  return troupe::kExitSuccess;
}
