#include "common/core/config_value.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace troupe::config_value {
namespace {

using Value = Config::Value;

/// The whole of `text` as a number, or nothing.
template <class T>
std::optional<T> number(std::string_view text) {
  T value{};
  const auto* end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data(), end, value);
  if (status != std::errc{} || stop != end) return std::nullopt;
  return value;
}

/// Splits "64MiB" into the digits and the unit's factor; a missing unit is `bare`.
template <class Factor, std::size_t N>
std::optional<std::pair<std::string_view, Factor>> split_unit(
    std::string_view text, const std::array<std::pair<std::string_view, Factor>, N>& units,
    std::optional<Factor> bare) {
  const auto digits = std::min(text.find_first_not_of("0123456789."), text.size());
  const auto unit = text.substr(digits);
  if (digits == 0) return std::nullopt;
  if (unit.empty() && bare) return std::pair{text, *bare};
  for (const auto& [name, factor] : units) {
    if (unit == name) return std::pair{text.substr(0, digits), factor};
  }
  return std::nullopt;
}

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, std::uint64_t>, 5> kUnits = {
      {{"B", 1},
       {"KiB", 1ULL << 10},
       {"MiB", 1ULL << 20},
       {"GiB", 1ULL << 30},
       {"TiB", 1ULL << 40}}};
  const auto parts = split_unit<std::uint64_t>(text, kUnits, 1);
  if (!parts) return std::nullopt;
  const auto count = number<std::uint64_t>(parts->first);
  if (!count || *count > std::numeric_limits<std::uint64_t>::max() / parts->second) {
    return std::nullopt;
  }
  return *count * parts->second;
}

std::optional<std::chrono::nanoseconds> parse_duration(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, double>, 6> kUnits = {
      {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"min", 60e9}, {"h", 3600e9}}};
  const auto zero = text == "0" ? std::optional(1.0) : std::nullopt;
  const auto parts = split_unit<double>(text, kUnits, zero);
  if (!parts) return std::nullopt;
  const auto count = number<double>(parts->first);
  if (!count) return std::nullopt;
  const double nanoseconds = std::round(*count * parts->second);
  if (nanoseconds >= 9.2e18) return std::nullopt;
  return std::chrono::nanoseconds(static_cast<std::int64_t>(nanoseconds));
}

std::optional<bool> parse_flag(std::string_view text) {
  static constexpr std::array<std::string_view, 4> kOn = {"on", "true", "yes", "1"};
  static constexpr std::array<std::string_view, 4> kOff = {"off", "false", "no", "0"};
  if (std::find(kOn.begin(), kOn.end(), text) != kOn.end()) return true;
  if (std::find(kOff.begin(), kOff.end(), text) != kOff.end()) return false;
  return std::nullopt;
}

/// The typed value, range checked; the message of an error lacks the source and the key.
template <class T>
Result<T> in_range(const OptionSpec& spec, std::string_view text,
                   std::optional<T> (*parse)(std::string_view), std::string_view kind) {
  const auto value = parse(text);
  if (!value && spec.choices.empty()) return invalid("{} is not {}", in_quotes(text), kind);
  if (!value) {
    return invalid("{} is not {} or {}", in_quotes(text), kind, fmt::join(spec.choices, ", "));
  }
  if (!spec.minimum.empty() && *value < parse(spec.minimum).value()) {
    return invalid("{} is below the minimum {}", in_quotes(text), spec.minimum);
  }
  if (!spec.maximum.empty() && *value > parse(spec.maximum).value()) {
    return invalid("{} is above the maximum {}", in_quotes(text), spec.maximum);
  }
  return *value;
}

std::optional<double> parse_real(std::string_view text) {
  const auto value = number<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

Result<std::vector<std::string>> parse_list(const OptionSpec& spec, std::string_view text) {
  std::vector<std::string> items;
  while (!text.empty()) {
    const auto comma = std::min(text.find(','), text.size());
    auto item = text.substr(0, comma);
    if (comma + 1 == text.size()) return invalid("{} ends in a comma", in_quotes(text));
    text.remove_prefix(std::min(comma + 1, text.size()));
    item.remove_prefix(std::min(item.find_first_not_of(" \t"), item.size()));
    item = item.substr(0, item.find_last_not_of(" \t") + 1);
    if (item.empty()) return invalid("an empty value between commas");
    if (!spec.choices.empty() &&
        std::find(spec.choices.begin(), spec.choices.end(), item) == spec.choices.end()) {
      return invalid("{} is not one of {}", in_quotes(item), fmt::join(spec.choices, ", "));
    }
    items.emplace_back(item);
  }
  return items;
}

/// Moves the outcome of a typed parser into `value`, or returns its error.
template <class T>
Result<void> assign(Value& value, Result<T> parsed) {
  if (!parsed) return parsed.error();
  value.parsed = std::move(parsed).value();
  return {};
}

Result<void> parse_typed(const OptionSpec& spec, Value& value) {
  const std::string& text = value.text;
  const bool chosen =
      std::find(spec.choices.begin(), spec.choices.end(), text) != spec.choices.end();
  const bool may_be_empty = spec.type == OptionType::list || spec.type == OptionType::file ||
                            (spec.type == OptionType::text && spec.choices.empty());
  if (text.empty() && !may_be_empty && !chosen) return invalid("needs a value");
  if (chosen && spec.type != OptionType::list) {
    value.parsed = text;
    return {};
  }
  switch (spec.type) {
    case OptionType::flag: {
      const auto on = in_range<bool>(spec, text, parse_flag, "on or off");
      if (on) value.text = *on ? "on" : "off";
      return assign(value, on);
    }
    case OptionType::integer:
      return assign(
          value, in_range<std::int64_t>(spec, text, number<std::int64_t>, "an integer (64 bit)"));
    case OptionType::real:
      return assign(value, in_range<double>(spec, text, parse_real, "a number"));
    case OptionType::bytes:
      return assign(value,
                    in_range<std::uint64_t>(spec, text, parse_bytes, "a size such as 64MiB"));
    case OptionType::duration:
      return assign(value, in_range<std::chrono::nanoseconds>(spec, text, parse_duration,
                                                              "a duration such as 500ms or 1.5s"));
    case OptionType::list: return assign(value, parse_list(spec, text));
    case OptionType::text:
    case OptionType::file: break;
  }
  if (!spec.choices.empty()) {
    return invalid("{} is not one of {}", in_quotes(text), fmt::join(spec.choices, ", "));
  }
  value.parsed = text;
  return {};
}

}  // namespace

std::string in_quotes(std::string_view text) {
  std::string shown{text.substr(0, kMaxQuoted)};
  for (char& c : shown) {
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = '?';
  }
  return "'" + shown + (text.size() > kMaxQuoted ? "...'" : "'");
}

Result<Value> parse(const OptionSpec& spec, std::string_view text, std::string source) {
  const auto first = std::min(text.find_first_not_of(" \t"), text.size());
  Value value{std::string(text.substr(first, text.find_last_not_of(" \t") + 1 - first)),
              {},
              std::move(source)};
  const auto unprintable = [](unsigned char c) { return c < ' ' || c == '\x7f'; };
  auto outcome = Result<void>();
  if (value.text.find('#') != std::string::npos) {
    outcome = invalid("{} contains '#', which starts a comment", in_quotes(text));
  } else if (std::any_of(value.text.begin(), value.text.end(), unprintable)) {
    outcome = invalid("{} contains a control character", in_quotes(text));
  } else {
    outcome = parse_typed(spec, value);
  }
  if (!outcome) return invalid("{}: {}: {}", value.source, spec.name, outcome.error().message);
  return value;
}

}  // namespace troupe::config_value
