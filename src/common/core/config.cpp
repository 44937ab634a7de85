#include <troupe/config.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/program_options.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <numeric>
#include <sstream>
#include <utility>

#include "common/core/config_value.hpp"

namespace troupe {
namespace {

namespace po = boost::program_options;
using Value = Config::Value;
using Layer = std::map<std::string, Value, std::less<>>;
using Options = std::span<const OptionSpec>;
using config_value::in_quotes;
using config_value::invalid;
using config_value::kMaxQuoted;

constexpr const char* kSiteFile = "/etc/troupe/troupe.conf";
constexpr const char* kCommandLine = "command line";
constexpr const char* kDefault = "default";
constexpr std::size_t kMaxFileBytes = std::size_t{1} << 20;
/// TROUPE_ variables that are no options.
constexpr std::array<std::string_view, 3> kReservedVariables = {
    "TROUPE_TEST_BACKEND", "TROUPE_SITE_CONFIG", "TROUPE_SHARED"};
/// What the variables of the job scripts (scripts/slurm) begin with: they are none of a program's.
constexpr std::string_view kJobVariables = "TROUPE_JOB_";
/// Requests to one run of a program, which no file or environment can make.
constexpr std::array<std::string_view, 3> kRequests = {"help", "version", "print-config"};

bool contains(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string variable_of(std::string_view name) {
  std::string variable = "TROUPE_";
  for (const char c : name) {
    variable += c == '-' ? '_' : (c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c);
  }
  return variable;
}

/// Levenshtein's distance: how many letters to insert, delete or replace.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    auto diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const auto replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

/// "unknown option --chek; did you mean --check?": `shown` says how a name is written in that
/// source.
template <class Shown>
Error unknown(Options options, std::string_view source, std::string_view what,
              std::string_view written, Shown shown) {
  std::string nearest;
  auto best = std::max<std::size_t>(2, std::min(written.size(), kMaxQuoted) / 4) + 1;
  for (const auto& option : options) {
    const auto candidate = shown(option.name);
    const bool abbreviated = written.size() > 4 && candidate.starts_with(written);
    const auto steps = abbreviated ? 1 : distance(written.substr(0, kMaxQuoted), candidate);
    if (steps < best) std::tie(best, nearest) = std::pair(steps, candidate);
  }
  auto error = invalid("{}: unknown {} {}", source, what, in_quotes(written));
  if (!nearest.empty()) error.message += "; did you mean " + nearest + "?";
  return error;
}

const OptionSpec* find(Options options, std::string_view name) {
  const auto at =
      std::find_if(options.begin(), options.end(), [&](const auto& o) { return o.name == name; });
  return at == options.end() ? nullptr : &*at;
}

/// Whether an option is another one that takes further words.
bool allows_more(const OptionSpec& option, const OptionSpec& than) {
  return option.type == than.type && option.choices.size() > than.choices.size() &&
         std::all_of(than.choices.begin(), than.choices.end(), [&](const std::string& word) {
           return std::find(option.choices.begin(), option.choices.end(), word) !=
                  option.choices.end();
         });
}

/// Adds one occurrence of an option to what its source has said so far.
Result<void> add(Layer& layer, const OptionSpec& spec, std::string_view text, std::string source) {
  const auto earlier = layer.find(spec.name);
  if (earlier == layer.end()) {
    auto value = config_value::parse(spec, text, std::move(source));
    if (!value) return value.error();
    layer.emplace(spec.name, std::move(value).value());
    return {};
  }
  if (spec.type != OptionType::list) return invalid("{}: {}: given twice", source, spec.name);
  auto more = config_value::parse(spec, text, std::move(source));
  if (!more) return more.error();
  auto& items = std::get<std::vector<std::string>>(earlier->second.parsed);
  for (auto& item : std::get<std::vector<std::string>>(more->parsed)) {
    items.push_back(std::move(item));
  }
  earlier->second.text = fmt::format("{}", fmt::join(items, ","));
  return {};
}

/// "minbytes,b", as Boost wants the names of an option.
std::string names_of(const OptionSpec& option) {
  return option.letter == '\0' ? option.name : option.name + ',' + option.letter;
}

Result<Layer> read_command_line(int argc, const char* const* argv, Options options) {
  po::options_description description;
  for (const auto& option : options) {
    auto* value = po::value<std::string>();
    if (option.type == OptionType::flag) value->implicit_value("on");
    description.add_options()(names_of(option).c_str(), value);
  }
  namespace style = po::command_line_style;
  po::parsed_options parsed(&description);
  try {
    parsed =
        po::command_line_parser(std::vector<std::string>(argv + std::min(argc, 1), argv + argc))
            .options(description)
            .style(style::unix_style & ~(style::allow_guessing | style::allow_sticky))
            .allow_unregistered()
            .run();
  } catch (const po::error_with_option_name& error) {
    return invalid("{}: {}: needs a value", kCommandLine, error.get_option_name());
  } catch (const po::error& error) {
    return invalid("{}: {}", kCommandLine, error.what());
  }
  // The parser leaves the value out where a flag stands alone.
  const auto text_of = [](const auto& o) { return o.value.empty() ? "on" : o.value.front(); };
  Layer layer;
  for (const auto& option : parsed.options) {
    // A request for help is answered, whatever else is wrong.
    if (option.string_key != "help" && option.string_key != "version") continue;
    auto added = add(layer, *find(options, option.string_key), text_of(option), kCommandLine);
    if (!added) return added.error();
    return layer;
  }
  for (const auto& option : parsed.options) {
    if (option.string_key.empty()) {
      return invalid("{}: unexpected argument {}", kCommandLine, in_quotes(option.value.front()));
    }
    const auto* spec = find(options, option.string_key);
    if (spec == nullptr) {
      const auto& written = option.original_tokens.front();
      return unknown(options, kCommandLine, "option", written.substr(0, written.find('=')),
                     [](const std::string& name) { return "--" + name; });
    }
    if (option.original_tokens.size() > 1 && option.original_tokens[1].starts_with("--")) {
      return invalid("{}: --{}: needs a value", kCommandLine, spec->name);
    }
    auto added = add(layer, *spec, text_of(option), kCommandLine);
    if (!added) return added.error();
  }
  return layer;
}

Result<Layer> read_environment(Options options) {
  const auto ours = [](const std::string& variable) {
    return variable.starts_with("TROUPE_") && !variable.starts_with(kJobVariables) &&
                   !contains(kReservedVariables, variable)
               ? variable
               : "";
  };
  Layer layer;
  for (const auto& option : po::parse_environment(po::options_description(), ours).options) {
    const std::string& variable = option.string_key;
    const auto spec = std::find_if(options.begin(), options.end(),
                                   [&](const auto& o) { return variable_of(o.name) == variable; });
    if (spec == options.end()) {
      return unknown(options, "environment", "variable", variable, variable_of);
    }
    const auto source = "environment " + variable;
    if (contains(kRequests, spec->name)) {
      return invalid("{}: {} belongs on the command line", source, spec->name);
    }
    if (auto added = add(layer, *spec, option.value.at(0), source); !added) return added.error();
  }
  return layer;
}

Result<std::string> read_text(const std::string& path, std::string_view kind) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text(kMaxFileBytes + 1, '\0');
  if (file) file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.is_open() || file.bad()) {
    const int why = errno;
    return Error{Errc::io, why,
                 fmt::format("{} {}: {}", kind, in_quotes(path), std::strerror(why))};
  }
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kMaxFileBytes) return invalid("{} {}: larger than 1MiB", kind, in_quotes(path));
  return text;
}

/// `kind` is "file" or "site file". Each line goes to the parser alone, so that errors know its
/// number.
Result<Layer> read_file(const std::string& path, std::string_view kind, Options options) {
  const auto text = read_text(path, kind);
  if (!text) return text.error();
  Layer layer;
  std::istringstream lines(*text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    const auto source = fmt::format("{} {}:{}", kind, path, number);
    const auto start = line.find_first_not_of(" \t\r");
    if (start == std::string::npos || line[start] == '#') continue;
    std::istringstream single(line);
    po::parsed_options parsed(nullptr);
    try {
      parsed = po::parse_config_file(single, po::options_description(), true);
    } catch (const po::error&) {
      parsed.options.clear();
    }
    if (parsed.options.empty()) {
      return invalid("{}: {} is not of the form key = value", source, in_quotes(line));
    }
    const auto& option = parsed.options.front();
    const auto* spec = find(options, option.string_key);
    if (spec == nullptr) {
      return unknown(options, source, "key", option.string_key,
                     [](const std::string& name) { return name; });
    }
    if (spec->name == "config" || contains(kRequests, spec->name)) {
      return invalid("{}: {} does not belong in a file", source, spec->name);
    }
    if (auto added = add(layer, *spec, option.value.at(0), source); !added) return added.error();
  }
  return layer;
}

/// The site file may be missing, unless it was named.
Result<Layer> read_site_file(Options options) {
  const char* named = std::getenv("TROUPE_SITE_CONFIG");
  const std::string path = named != nullptr ? named : kSiteFile;
  if (path.empty() || (named == nullptr && !std::ifstream(path))) return Layer{};
  return read_file(path, "site file", options);
}

}  // namespace

Result<Config> Config::parse(int argc, const char* const* argv,
                             std::span<const OptionSpec> application) {
  std::vector<OptionSpec> options(application.begin(), application.end());
  for (auto& option : runtime_options()) {
    const auto* own = find(application, option.name);
    if (own == nullptr || !allows_more(*own, option)) options.push_back(std::move(option));
  }
  Config config;
  for (std::size_t i = 0; i < options.size(); ++i) {
    const auto& option = options[i];
    if (find(options, option.name) != &option)
      return invalid("two options of the program have the name {}", option.name);
    auto value = config_value::parse(option, option.fallback, kDefault);
    if (!value) return value.error();
    config.entries_.push_back({option, i >= application.size(), std::move(value).value()});
  }
  const auto apply = [&config](Layer& layer) {
    for (auto& entry : config.entries_) {
      const auto found = layer.find(entry.spec.name);
      if (found != layer.end()) entry.value = std::move(found->second);
    }
  };

  auto command_line = read_command_line(argc, argv, options);
  if (!command_line) return command_line.error();
  if (command_line->contains("help") || command_line->contains("version")) {
    apply(*command_line);
    return config;
  }
  auto environment = read_environment(options);
  if (!environment) return environment.error();
  auto site = read_site_file(options);
  if (!site) return site.error();
  Layer file;
  const auto& naming = command_line->contains("config") ? *command_line : *environment;
  if (const auto named = naming.find("config");
      named != naming.end() && !named->second.text.empty()) {
    auto read = read_file(named->second.text, "file", options);
    if (!read) return read.error();
    file = std::move(read).value();
  }
  for (auto* layer : {&*site, &file, &*environment, &*command_line}) apply(*layer);
  return config;
}

const Config::Entry& Config::entry(std::string_view name) const {
  const auto at = std::find_if(entries_.begin(), entries_.end(),
                               [&](const auto& e) { return e.spec.name == name; });
  if (at == entries_.end()) throw Exception(invalid("the option {} is not declared", name));
  return *at;
}

template <class T>
const T& Config::get(std::string_view name) const {
  const auto* value = std::get_if<T>(&entry(name).value.parsed);
  if (value == nullptr)
    throw Exception(invalid("the option {} holds {}, which is of another type", name, text(name)));
  return *value;
}

bool Config::flag(std::string_view name) const {
  return get<bool>(name);
}
std::int64_t Config::integer(std::string_view name) const {
  return get<std::int64_t>(name);
}
double Config::real(std::string_view name) const {
  return get<double>(name);
}
std::uint64_t Config::bytes(std::string_view name) const {
  return get<std::uint64_t>(name);
}
std::chrono::nanoseconds Config::duration(std::string_view name) const {
  return get<std::chrono::nanoseconds>(name);
}
const std::vector<std::string>& Config::list(std::string_view name) const {
  return get<std::vector<std::string>>(name);
}
const std::string& Config::text(std::string_view name) const {
  return entry(name).value.text;
}
const std::string& Config::source(std::string_view name) const {
  return entry(name).value.source;
}
bool Config::given(std::string_view name) const {
  return source(name) != kDefault;
}

std::map<std::string, std::string> Config::shaping() const {
  std::map<std::string, std::string> values;
  for (const auto& e : entries_) {
    if (e.spec.shapes_result && e.spec.type != OptionType::file)
      values.emplace("--" + e.spec.name, e.value.text);
  }
  return values;
}

std::map<std::string, std::string> Config::shaping_files() const {
  std::map<std::string, std::string> paths;
  for (const auto& e : entries_) {
    if (e.spec.shapes_result && e.spec.type == OptionType::file && !e.value.text.empty())
      paths.emplace("--" + e.spec.name, e.value.text);
  }
  return paths;
}

std::string Config::help_text(std::string_view program, std::string_view synopsis) const {
  po::options_description application("Application options", 100, 60);
  po::options_description runtime("Runtime options", 100, 60);
  for (const auto& [spec, of_runtime, value] : entries_) {
    auto& group = of_runtime ? runtime : application;
    const auto name = names_of(spec);
    if (spec.placeholder.empty()) {
      group.add_options()(name.c_str(), spec.help.c_str());
      continue;
    }
    auto text = spec.help;
    if (!spec.fallback.empty()) text += fmt::format(" (default {})", spec.fallback);
    group.add_options()(name.c_str(), po::value<std::string>()->value_name(spec.placeholder),
                        text.c_str());
  }
  std::ostringstream out;
  out << "Usage: " << program << " [options]\n" << synopsis << "\n\n";
  if (!application.options().empty()) out << application << '\n';
  out << runtime
      << "\nEvery option NAME can also come from the environment variable TROUPE_NAME (capitals, _ "
         "for -)"
      << "\nor from a line 'NAME = value' of the --config file or of " << kSiteFile << ".\n";
  return out.str();
}

std::string Config::print() const {
  std::size_t name_width = 0, value_width = 0;
  const auto printed = [](const Entry& e) {
    return e.spec.name != "config" && !contains(kRequests, e.spec.name);
  };
  for (const auto& e : entries_) {
    if (!printed(e)) continue;
    name_width = std::max(name_width, e.spec.name.size());
    value_width = std::max(value_width, e.value.text.size());
  }
  std::string table;
  for (const auto& e : entries_) {
    if (!printed(e)) continue;
    table += fmt::format("{:<{}} = {:<{}}  # {}\n", e.spec.name, name_width, e.value.text,
                         value_width, e.value.source);
  }
  return table;
}

}  // namespace troupe
