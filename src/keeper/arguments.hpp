#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::keeper {

/// The command line of a keeper; see main.cpp.
struct Arguments {
  int spares = 0;                        ///< the last processes of the job, which wait
  std::chrono::nanoseconds silence{};    ///< after which a rank, or a keeper, is taken for lost
  std::chrono::nanoseconds wait{};       ///< for a keeper whose connection is broken
  int budget = 0;                        ///< how often the rank is started again …
  std::chrono::nanoseconds window{};     ///< … in this time
  int standby = 0;                       ///< 1: a process of the program waits for the rank's end
  int refuges = 0;                       ///< 1: there is a refuge beside each place
  int beside = 0;                        ///< in a refuge: the process that has started this one
  std::string program{};                 ///< of the rank
  std::vector<std::string> arguments{};  ///< its argv
};

/// Ahead of the numbers, in the command line of a refuge, and followed by Arguments::beside.
inline constexpr std::string_view kInRefuge = "--refuge";
/// The numbers of a command line but for `beside`, as text.
std::vector<std::string> numbers_of(const Arguments& given);
/// nullopt: it is none.
std::optional<Arguments> parse(int argc, char** argv);

}  // namespace troupe::keeper
