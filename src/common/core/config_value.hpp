#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include <troupe/config.hpp>

/// What the text of a setting means, wherever it was written.
namespace troupe::config_value {

/// `text` as the value of `spec`, which came from `source`. Errc::invalid, with a message that
/// names the source and the option: malformed, out of range, or with a character that no source may
/// hold.
Result<Config::Value> parse(const OptionSpec& spec, std::string_view text, std::string source);

/// As many bytes of foreign text as a message shows.
inline constexpr std::size_t kMaxQuoted = 80;
/// Foreign text in a message: it must not break the line or flood it.
std::string in_quotes(std::string_view text);

template <class... Args>
Error invalid(fmt::format_string<Args...> format, Args&&... args) {
  return {Errc::invalid, 0, fmt::format(format, std::forward<Args>(args)...)};
}

}  // namespace troupe::config_value
