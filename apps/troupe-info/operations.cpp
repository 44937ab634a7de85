#include "operations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include <troupe/lib/operations.hpp>

namespace troupe::info {
namespace {

constexpr std::string_view kEngines[] = {"cpu", "cuda"};

nlohmann::json names_of(DTypes dtypes) {
  auto names = nlohmann::json::array();
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (dtypes.has(dtype)) names.push_back(std::string(to_string(dtype)));
  }
  return names;
}

std::string cell_of(const nlohmann::json& dtypes) {
  if (dtypes.empty()) return "unsupported";
  if (dtypes.size() == kDTypeCount) return "any";
  std::string list;
  for (const auto& dtype : dtypes) list += (list.empty() ? "" : " ") + dtype.get<std::string>();
  return list;
}

}  // namespace

nlohmann::json operations() {
  auto list = nlohmann::json::object();
  for (const auto* info : all_operations()) {
    auto& engines = list[std::string(info->name)];
    for (const auto engine : kEngines)
      engines[std::string(engine)] = names_of(info->dtypes_on(engine));
  }
  return list;
}

std::string operations_text(const nlohmann::json& operations, const std::string& engine,
                            const std::set<std::string>& missing) {
  std::vector<std::array<std::string, 3>> rows = {
      {"operation", std::string(kEngines[0]), std::string(kEngines[1])}};
  for (const auto& [name, engines] : operations.items()) {
    auto& row = rows.emplace_back(std::array{name, std::string(), std::string()});
    for (std::size_t i = 0; i < std::size(kEngines); ++i) {
      const bool here = kEngines[i] != engine || !missing.contains(name.substr(0, name.find('.')));
      row[i + 1] = here ? cell_of(engines[std::string(kEngines[i])]) : "not installed";
    }
  }
  std::array<std::size_t, 2> widths{};
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows)
    text += fmt::format("{:<{}}  {:<{}}  {}\n", row[0], widths[0], row[1], widths[1], row[2]);
  return text;
}

}  // namespace troupe::info
