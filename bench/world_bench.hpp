#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include <troupe/runtime.hpp>

#include "comparison.hpp"
#include "report_file.hpp"

/// What benchmarks of several ranks have in common.
namespace troupe::bench {

/// Seconds on the slowest rank, from a barrier on. All ranks call it.
inline double seconds_of(World& world, const std::function<void()>& work) {
  using Clock = std::chrono::steady_clock;
  world.barrier();
  const auto start = Clock::now();
  work();
  const double mine = std::chrono::duration<double>(Clock::now() - start).count();
  const auto all = world.gather_values(mine);
  return *std::max_element(all.begin(), all.end());
}

/// Throws Exception on all ranks, which call it before the work, if rank 0 cannot write to the file
/// that --json names.
inline void require_report_file(Runtime& runtime) {
  auto& world = runtime.world();
  world.agree(world.rank() == 0 ? app::check_report_file(runtime.config().text("json"))
                                : Result<void>());
}

/// Measures both sides in turn, the one and the other first, after one round that does not count.
/// `theirs` may be empty. `value` does the work and gives the figure.
inline void measure(Comparison& line, std::int64_t repetitions, const std::function<void()>& ours,
                    const std::function<void()>& theirs,
                    const std::function<double(const std::function<void()>&)>& value) {
  ours();
  if (theirs) theirs();
  for (std::int64_t i = 0; i < repetitions; ++i) {
    const bool raw_first = i % 2 == 0;
    if (theirs && raw_first) line.raw.push_back(value(theirs));
    line.ours.push_back(value(ours));
    if (theirs && !raw_first) line.raw.push_back(value(theirs));
  }
}

/// Rank 0 prints the lines and writes them where --json says. All ranks call it; throws Exception
/// on all of them if the file cannot be written.
inline void report(Runtime& runtime, const std::string& title,
                   const std::vector<Comparison>& lines) {
  auto& world = runtime.world();
  Result<void> written;
  if (world.rank() == 0) {
    print(title, lines);
    written = write_json(runtime.config().text("json"), lines);
  }
  world.agree(written);
}

}  // namespace troupe::bench
