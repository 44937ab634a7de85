#include "comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
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

void print(const std::string& title, const std::vector<Comparison>& lines) {
  fmt::print("\n{}\n  {:<28} {:>6} {:>12} {:>12} {:>12}\n", title, "", "unit", "raw", "troupe",
             "troupe/raw");
  for (const auto& line : lines) {
    if (line.raw.empty()) {
      fmt::print("  {:<28} {:>6} {:>12} {:>12.3f} {:>12}\n", line.name, line.unit, "-",
                 median(line.ours), "-");
    } else {
      fmt::print("  {:<28} {:>6} {:>12.3f} {:>12.3f} {:>12.3f}\n", line.name, line.unit,
                 median(line.raw), median(line.ours), line.ratio());
    }
  }
  std::fflush(stdout);
}

Result<void> write_json(const std::string& path, const std::vector<Comparison>& lines) {
  std::vector<std::string> objects;
  for (const auto& line : lines) {
    const nlohmann::ordered_json object = {
        {"name", line.name},           {"unit", line.unit},     {"raw", median(line.raw)},
        {"troupe", median(line.ours)}, {"ratio", line.ratio()}, {"raw_values", line.raw},
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
