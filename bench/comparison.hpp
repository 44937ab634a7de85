#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include <troupe/error.hpp>

namespace troupe::bench {

/// The middle value; of an even number of values the mean of the two in the middle. 0 for none.
double median(std::vector<double> values);

/// One line of a table: the same work done by plain library calls and by troupe.
struct Comparison {
  std::string name;
  std::string unit;          ///< "us" or "GB/s"
  std::vector<double> raw;   ///< one value per repetition; empty: not measured here
  std::vector<double> ours;  ///< likewise, troupe's

  /// Median of troupe's values over the median of the raw ones; 0 where there are none.
  [[nodiscard]] double ratio() const;
  /// Where the median of the ratios of pairs lies with a probability of 95 % or more, whatever
  /// their distribution (by order statistics; Conover, Practical Nonparametric Statistics, 3rd ed.,
  /// section 3.2). Both 0 if there are fewer than 6 pairs.
  [[nodiscard]] std::array<double, 2> interval() const;
  /// Median of the differences of pairs, troupe's value less the raw one; 0 where there are none.
  [[nodiscard]] double difference() const;
  /// Where it lies, as interval() says it of ratios.
  [[nodiscard]] std::array<double, 2> difference_interval() const;
};

/// Prints the lines as a table on standard output.
void print(const std::string& title, const std::vector<Comparison>& lines);

/// Writes an array with one object per line: name, unit, raw, troupe, ratio (medians), difference
/// and all values. Does nothing if `path` is empty. Errors: io.
Result<void> write_json(const std::string& path, const std::vector<Comparison>& lines);

/// Writes `objects` (JSON texts) as an array with one per line. Errors: io.
Result<void> write_json_lines(const std::string& path, const std::vector<std::string>& objects);

}  // namespace troupe::bench
