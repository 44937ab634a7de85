#include "comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>

#include <nlohmann/json.hpp>

namespace troupe::bench {

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const auto middle = values.size() / 2;
  return values.size() % 2 != 0 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double Comparison::ratio() const {
  const double base = median(raw);
  return base > 0 ? median(ours) / base : 0;
}

namespace {

/// `of` the raw value and troupe's, for the pairs of a line.
template <class Of>
std::vector<double> of_pairs(const Comparison& line, Of of) {
  std::vector<double> values(std::min(line.raw.size(), line.ours.size()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = of(line.raw[i], line.ours[i]);
  return values;
}

/// The interval of the median, see Comparison::interval().
std::array<double, 2> interval_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto pairs = values.size();
  // The median lies below the k-th smallest with the probability that fewer than k of the pairs lie
  // below it, each of them with one half.
  double term = std::pow(0.5, static_cast<double>(pairs)), below = term;
  std::size_t k = 0;
  while (below <= 0.025 && k < pairs / 2) {
    ++k;
    term *= static_cast<double>(pairs - k + 1) / static_cast<double>(k);
    below += term;
  }
  if (k == 0) return {0, 0};
  return {values[k - 1], values[pairs - k]};
}

}  // namespace

std::array<double, 2> Comparison::interval() const {
  return interval_of(of_pairs(*this, [](double theirs, double mine) { return mine / theirs; }));
}

double Comparison::difference() const {
  return median(of_pairs(*this, [](double theirs, double mine) { return mine - theirs; }));
}

std::array<double, 2> Comparison::difference_interval() const {
  return interval_of(of_pairs(*this, [](double theirs, double mine) { return mine - theirs; }));
}

void print(const std::string& title, const std::vector<Comparison>& lines) {
  fmt::print("\n{}\n  {:<28} {:>6} {:>12} {:>12} {:>12}  {}\n", title, "", "unit", "raw", "troupe",
             "troupe/raw", "95 %");
  for (const auto& line : lines) {
    if (line.raw.empty()) {
      fmt::print("  {:<28} {:>6} {:>12} {:>12.3f} {:>12}\n", line.name, line.unit, "-",
                 median(line.ours), "-");
    } else {
      const auto [low, high] = line.interval();
      fmt::print("  {:<28} {:>6} {:>12.3f} {:>12.3f} {:>12.3f}  {}\n", line.name, line.unit,
                 median(line.raw), median(line.ours), line.ratio(),
                 high > 0 ? fmt::format("{:.3f} to {:.3f}", low, high) : "-");
    }
  }
  std::fflush(stdout);
}

Result<void> write_json(const std::string& path, const std::vector<Comparison>& lines) {
  std::vector<std::string> objects;
  for (const auto& line : lines) {
    const nlohmann::ordered_json object = {{"name", line.name},
                                           {"unit", line.unit},
                                           {"raw", median(line.raw)},
                                           {"troupe", median(line.ours)},
                                           {"ratio", line.ratio()},
                                           {"ratio_interval", line.interval()},
                                           {"difference", line.difference()},
                                           {"difference_interval", line.difference_interval()},
                                           {"raw_values", line.raw},
                                           {"troupe_values", line.ours}};
    objects.push_back(object.dump());
  }
  return write_json_lines(path, objects);
}

Result<void> write_json_lines(const std::string& path, const std::vector<std::string>& objects) {
  if (path.empty()) return {};
  std::ofstream file(path);
  file << "[";
  for (std::size_t i = 0; i < objects.size(); ++i) file << (i == 0 ? "\n" : ",\n") << objects[i];
  file << "\n]\n";
  file.close();
  if (!file) return Error{Errc::io, errno, path + ": " + std::strerror(errno)};
  return {};
}

}  // namespace troupe::bench
