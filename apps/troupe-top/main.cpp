#include <sys/ioctl.h>
#include <unistd.h>

#include <boost/program_options.hpp>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include <troupe/lib/operations.hpp>
#include <troupe/running.hpp>
#include <troupe/runtime.hpp>

#include "view.hpp"

// troupe-top: shows the running troupe jobs of this user on this node, again and again. The ranks
// are not asked. No MPI program: it runs beside them.

namespace {

namespace po = boost::program_options;
using troupe::RunningRank;

constexpr double kShortest = 0.01, kLongest = 3600;

int complain(const std::string& what) {
  std::fprintf(stderr, "troupe-top: %s\n", what.c_str());
  return troupe::kExitUsage;
}

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "this node";
}

unsigned terminal_columns() {
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col != 0 ? size.ws_col : 80;
}

struct Wishes {
  std::chrono::duration<double> interval{1};
  std::string job;
  bool once = false, json = false;
};

std::vector<RunningRank> look(troupe::RunningRanks& running, const std::string& job) {
  auto ranks = running.look();
  if (!job.empty()) std::erase_if(ranks, [&](const RunningRank& rank) { return rank.job != job; });
  return ranks;
}

/// Until it is interrupted, or standard output is closed, or the job that is asked for has ended.
int show(const Wishes& wishes) {
  const bool terminal = !wishes.json && !wishes.once && ::isatty(STDOUT_FILENO) == 1;
  const auto host = host_name();
  troupe::RunningRanks running;
  bool seen = !look(running, wishes.job).empty();
  if (terminal) std::fputs("\033[2J", stdout);
  for (;;) {
    // Rates are differences: between the first look and the second they are known.
    std::this_thread::sleep_for(wishes.interval);
    const auto ranks = look(running, wishes.job);
    auto text = wishes.json ? troupe::top::to_json(ranks, host)
                            : troupe::top::to_text(ranks, host, wishes.job);
    if (terminal) text = troupe::top::on_terminal(text, terminal_columns());
    if (!terminal && !wishes.once && !wishes.json) text += '\n';
    if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0)
      return troupe::kExitFailure;
    if (wishes.once || (seen && ranks.empty() && !wishes.job.empty())) return troupe::kExitSuccess;
    seen |= !ranks.empty();
  }
}

}  // namespace

int main(int argc, char** argv) {
  po::options_description options("options");
  options.add_options()("help", "print this text, then exit")(
      "interval", po::value<double>()->default_value(1), "seconds from one look to the next")(
      "once", po::bool_switch(), "look for one interval, print, then exit")(
      "json", po::bool_switch(), "print a line of JSON for each look instead of text")(
      "job", po::value<std::string>(), "show this job alone, and exit when it has ended here");
  po::variables_map given;
  try {
    po::store(po::command_line_parser(argc, argv)
                  .options(options)
                  .positional(po::positional_options_description())
                  .run(),
              given);
    po::notify(given);
  } catch (const po::error& e) {
    return complain(e.what());
  }
  if (given.contains("help")) {
    std::cout
        << "usage: troupe-top [options]\n"
           "Shows the running troupe jobs of this user on this node: for each rank its device, "
           "epoch,\ncommands per second, how busy its queues are, memory, recoveries, and what "
           "its device host does.\n\n"
        << options;
    return troupe::kExitSuccess;
  }
  Wishes wishes;
  const double interval = given["interval"].as<double>();
  if (!(interval >= kShortest && interval <= kLongest))
    return complain("--interval wants seconds, from 0.01 to 3600");
  wishes.interval = std::chrono::duration<double>(interval);
  if (given.contains("job")) wishes.job = given["job"].as<std::string>();
  if (given.contains("job") && (wishes.job.empty() || wishes.job.front() == '-'))
    return complain("--job wants the name of a job, as troupe-top shows it");
  wishes.once = given["once"].as<bool>();
  wishes.json = given["json"].as<bool>();
  return show(wishes);
}
