#pragma once

#include <algorithm>
#include <cstdint>

namespace troupe::train {

/// The sequences of a step that a rank computes: those with the numbers `first` to `first + count`
/// among all of the step. It takes them in passes, and adds up their gradients.
struct Portion {
  std::int64_t first = 0, count = 0;
  /// The same on all ranks. The last pass of a rank may have fewer sequences than the others.
  std::int64_t passes = 1, sequences_of_pass = 0;

  [[nodiscard]] std::int64_t first_of(std::int64_t pass) const {
    return first + pass * sequences_of_pass;
  }
  [[nodiscard]] std::int64_t count_of(std::int64_t pass) const {
    return std::clamp<std::int64_t>(count - pass * sequences_of_pass, 0, sequences_of_pass);
  }
};

/// Shares out the `sequences` of a step as evenly as possible. A pass has at most `most` of them:
/// memory for the activations of so many is enough, however few ranks there are.
constexpr Portion portion_of(int rank, int ranks, std::int64_t sequences, std::int64_t most) {
  const auto until = [&](std::int64_t r) { return sequences * r / ranks; };
  const auto quotient = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
  Portion portion{.first = until(rank), .count = until(rank + 1) - until(rank)};
  const auto largest = quotient(sequences, ranks);
  portion.passes = quotient(largest, most);
  portion.sequences_of_pass = quotient(largest, portion.passes);
  return portion;
}

}  // namespace troupe::train
