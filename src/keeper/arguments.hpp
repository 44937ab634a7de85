#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace troupe::keeper {

/// The command line of a keeper; see main.cpp.
struct Arguments {
  int spares = 0;                        ///< the last processes of the job, which wait
  std::chrono::nanoseconds silence{};    ///< after which a rank, or a keeper, is taken for lost
  std::chrono::nanoseconds wait{};       ///< for a keeper whose connection is broken
  int budget = 0;                        ///< how often the rank is started again …
  std::chrono::nanoseconds window{};     ///< … in this time
  std::string program{};                 ///< of the rank
  std::vector<std::string> arguments{};  ///< its argv
};

/// nullopt: it is none.
std::optional<Arguments> parse(int argc, char** argv);

}  // namespace troupe::keeper
