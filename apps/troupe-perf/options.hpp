#pragma once

#include <string>
#include <vector>

#include <troupe/config.hpp>
#include <troupe/ordered_fault.hpp>

#include "operations.hpp"

namespace troupe::perf {

struct Options {
  std::int64_t smallest = 0, largest = 0;  ///< bytes
  std::int64_t step_bytes = 0;             ///< added from size to size, or,
  std::int64_t step_factor = 1;            ///< if larger than 1, what the size is multiplied by
  std::int64_t iterations = 20, warm_up = 1, checks = 1;
  std::vector<DType> dtypes;
  std::vector<Reduction> reductions;
  int root = 0;  ///< -1: each rank in turn
  int blocking = 0;
  std::int64_t replays = 0;  ///< of the recorded iterations; 0: nothing is recorded
  int average = 1;           ///< of ranks' times: rank 0's, their mean, the least, the largest
  std::vector<Operation> operations;
  int group = 0;     ///< ranks of each group; 0: the world
  std::string peer;  ///< empty: none
  std::vector<OrderedFault> faults;
  std::vector<std::string> json;  ///< files

  /// All sizes, in their order.
  [[nodiscard]] std::vector<std::int64_t> sizes() const;
  [[nodiscard]] bool measures(Operation operation) const;
  [[nodiscard]] std::string operation_names() const;  ///< joined by commas
};

std::vector<OptionSpec> option_specs();

/// The command line with the one name of nccl-tests' that troupe has for something else: a number
/// behind --check is that of -c. The texts are those of `argv`, or live as long as the program.
std::vector<char*> rewritten(int argc, char** argv);

/// "8", "1.5M", "128m", "4KiB": bytes, where K, M and G are powers of 1024. Errors: invalid.
Result<std::int64_t> parse_size(const std::string& text);

/// Errors: invalid, one line.
Result<Options> parse_options(const Config& config);
/// Whether they fit a world of so many ranks with that engine. Errors: invalid.
Result<void> check_against_world(const Options& options, int ranks, const std::string& engine);

}  // namespace troupe::perf
