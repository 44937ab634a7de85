#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "comparison.hpp"

/// Two sides that are measured by one program, in turn.
namespace troupe::bench {

/// One side of a comparison: `run` does all of the work and waits for it, `wake` a little of it.
struct Side {
  std::function<void()> run, wake;
};

inline double seconds_of(const Side& side) {
  side.wake();
  const auto start = std::chrono::steady_clock::now();
  side.run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Measures both sides `repetitions` times in turn, after one round that does not count;
/// `to_value` makes the figure out of seconds.
inline Comparison compare(std::string name, std::string unit, std::int64_t repetitions,
                          const Side& raw, const Side& ours,
                          const std::function<double(double)>& to_value) {
  Comparison line{std::move(name), std::move(unit), {}, {}};
  raw.run();
  ours.run();
  for (std::int64_t i = 0; i < repetitions; ++i) {
    const bool raw_first = i % 2 == 0;
    if (raw_first) line.raw.push_back(to_value(seconds_of(raw)));
    line.ours.push_back(to_value(seconds_of(ours)));
    if (!raw_first) line.raw.push_back(to_value(seconds_of(raw)));
  }
  return line;
}

}  // namespace troupe::bench
