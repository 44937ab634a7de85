#include "common/core/settings.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>

namespace troupe {
namespace {

/// "restart_budget" -> "restart-budget".
std::string option_name(std::string member) {
  std::replace(member.begin(), member.end(), '_', '-');
  return member;
}

using Words = std::vector<std::string>;

/// How a setting of this type is written.
template <class T>
constexpr OptionType kWritten = OptionType::text;
template <>
constexpr OptionType kWritten<bool> = OptionType::flag;
template <>
constexpr OptionType kWritten<std::int64_t> = OptionType::integer;
template <>
constexpr OptionType kWritten<RestartFrom> = OptionType::integer;
template <>
constexpr OptionType kWritten<double> = OptionType::real;
template <>
constexpr OptionType kWritten<Texts> = OptionType::list;
template <>
constexpr OptionType kWritten<std::uint64_t> = OptionType::bytes;
template <>
constexpr OptionType kWritten<std::chrono::nanoseconds> = OptionType::duration;
template <>
constexpr OptionType kWritten<TimeOrAuto> = OptionType::duration;

struct Reader {
  const Config& config;
  const std::string name;
  const Words words;

  void read(bool& value) const { value = config.flag(name); }
  void read(std::int64_t& value) const { value = config.integer(name); }
  void read(double& value) const { value = config.real(name); }
  void read(std::uint64_t& value) const { value = config.bytes(name); }
  void read(std::chrono::nanoseconds& value) const { value = config.duration(name); }
  void read(std::string& value) const { value = config.text(name); }
  void read(Texts& value) const { value = config.list(name); }
  void read(TimeOrAuto& value) const {
    if (config.text(name) != "auto") value = config.duration(name);
  }
  void read(RestartFrom& value) const {
    const auto& text = config.text(name);
    if (text == "auto") return;
    const bool step = text != "never";
    value = {step ? RestartFrom::State::step : RestartFrom::State::none,
             step ? config.integer(name) : 0};
  }
  /// Its "on" is an older word for its "world".
  void read(StandbyMode& value) const {
    value = static_cast<StandbyMode>(std::min(word(), static_cast<int>(StandbyMode::world)));
  }
  template <class Enum>
  requires std::is_enum_v<Enum>
  void read(Enum& value) const { value = static_cast<Enum>(word()); }

  [[nodiscard]] int word() const {
    const auto& text = config.text(name);
    const auto found = std::find(words.begin(), words.end(), text);
    if (found == words.end())
      throw Exception({Errc::invalid, 0, name + " = " + text + ": the runtime has no such word"});
    return static_cast<int>(found - words.begin());
  }
};

}  // namespace

#define WORDS(...) \
  Words {          \
    __VA_ARGS__    \
  }

std::vector<OptionSpec> runtime_options() {
  using enum OptionType;
  std::vector<OptionSpec> options = {
#define SETTING(type, member, fallback, placeholder, help, words, least, most, reader) \
  {option_name(#member), kWritten<type>, fallback, placeholder, help, words, least, most},
#include "common/core/settings.def"
#undef SETTING
      {"config", text, "", "FILE", "read settings from FILE"},
      {"print-config", flag, "off", "", "print every setting and its source, then exit"},
      {"version", flag, "off", "", "print the version, then exit"},
      {"help", flag, "off", "", "print this text, then exit", {}, {}, {}, true, 'h'},
  };
  // The others say where and how to compute, not what.
  for (auto& option : options) option.shapes_result = option.name == "seed";
  return options;
}

Settings Settings::of(const Config& config) {
  Settings settings;
#define SETTING(type, member, fallback, placeholder, help, words, ...) \
  Reader{config, option_name(#member), words}.read(settings.member);
#include "common/core/settings.def"
#undef SETTING
  return settings;
}

bool Settings::checks(std::string_view what) const {
  return std::find(check.begin(), check.end(), what) != check.end();
}

}  // namespace troupe
