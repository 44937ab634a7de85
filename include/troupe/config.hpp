#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <troupe/error.hpp>

namespace troupe {

/// How the text of an option is read.
enum class OptionType : std::uint8_t {
  flag,      ///< on|off (also true|false, yes|no, 1|0); `--name` alone means on
             ///< on
  integer,   ///< plain decimal, 64 bit
  real,      ///< finite decimal
  text,      ///< anything, or one of `choices`
  file,      ///< the path of a file that the program reads
  list,      ///< texts: the option may be repeated, and a comma separates values
  bytes,     ///< a size: 4096, 64MiB, 2GiB (B, KiB, MiB, GiB, TiB)
  duration,  ///< a time that is not negative: 500ms, 1.5s (ns, us, ms, s, min, h), or 0
};

/// One declared option. `minimum` and `maximum` are written in the option's own notation.
struct OptionSpec {
  std::string name;  ///< lower-case words joined by '-': "check-every"; or by '_'
  OptionType type;
  std::string fallback;  ///< the default; must itself be a valid value
  std::string
      placeholder;   ///< stands for the value in the help text: "N"; empty: shown without one
  std::string help;  ///< one sentence fragment
  /// The only texts allowed; for numeric types: words allowed beside numbers ("auto").
  std::vector<std::string> choices = {};
  std::string minimum = {};  ///< empty: none
  std::string maximum = {};  ///< empty: none
  /// A saved state of a run with another value is another problem's, and is not taken up. False for
  /// options that say how long to go on, how to do it, or what to print.
  bool shapes_result = true;
  /// `-b 8` or `-b8` on the command line in place of `--minbytes 8`; '\0': there is no short form.
  char letter = '\0';
};

/// The options that every troupe program has.
std::vector<OptionSpec> runtime_options();

/// The settings of a program, merged from five sources. Immutable once parsed: any thread may read
/// it.
///
/// Precedence: command line, environment (TROUPE_CHECK_EVERY for check-every), the file named by
/// --config, the site file (/etc/troupe/troupe.conf, or what TROUPE_SITE_CONFIG names; empty:
/// none), defaults. Files hold `key = value` lines; # starts a comment anywhere in a line, so no
/// value may contain one. A source that sets a list replaces the list of a lower one.
class Config {
 public:
  /// Reads all sources. `application` comes on top of runtime_options(); one of the same name
  /// takes the place of theirs if it allows their words and more. Every value of every source is
  /// checked, also one that a higher source overrides. With --help or --version on the command line
  /// nothing else is looked at. Call before threads that change the environment start. Errors, each
  /// one line that names source and key: Errc::invalid (unknown key or TROUPE_ variable, bad or
  /// missing value, stray argument, an option given twice), Errc::io (a file that cannot be read).
  static Result<Config> parse(int argc, const char* const* argv,
                              std::span<const OptionSpec> application = {});

  /// The values. Asking for a name that is not declared, or as another type, throws Exception
  /// (invalid).
  [[nodiscard]] bool flag(std::string_view name) const;
  [[nodiscard]] std::int64_t integer(std::string_view name) const;
  [[nodiscard]] double real(std::string_view name) const;
  [[nodiscard]] const std::vector<std::string>& list(std::string_view name) const;
  [[nodiscard]] std::uint64_t bytes(std::string_view name) const;
  [[nodiscard]] std::chrono::nanoseconds duration(std::string_view name) const;
  /// The value as it was written, for an option of any type; ask this first where a word ("auto")
  /// may stand in place of a number.
  [[nodiscard]] const std::string& text(std::string_view name) const;

  /// True if anything but the default set it.
  [[nodiscard]] bool given(std::string_view name) const;
  /// "command line", "environment TROUPE_X", "file PATH:LINE", "site file PATH:LINE" or "default".
  [[nodiscard]] const std::string& source(std::string_view name) const;

  [[nodiscard]] bool wants_help() const { return flag("help"); }
  [[nodiscard]] bool wants_version() const { return flag("version"); }
  [[nodiscard]] bool wants_print() const { return flag("print-config"); }
  /// The options that shape the result, as they are set: "--precond" and so on. Not those whose
  /// type is file.
  [[nodiscard]] std::map<std::string, std::string> shaping() const;
  /// The paths in settings whose type is file, unless they are empty.
  [[nodiscard]] std::map<std::string, std::string> shaping_files() const;

  /// What --help prints; `synopsis` is one sentence on what the program does.
  [[nodiscard]] std::string help_text(std::string_view program, std::string_view synopsis) const;
  /// What --print-config prints: "key = value  # source" lines that are a valid --config file.
  [[nodiscard]] std::string print() const;

  /// The value of one option, and where it came from.
  struct Value {
    std::string text;
    /// Holds a string where a word stands in place of a number.
    std::variant<std::string, bool, std::int64_t, double, std::uint64_t, std::chrono::nanoseconds,
                 std::vector<std::string>>
        parsed;
    std::string source;
  };

 private:
  struct Entry {
    OptionSpec spec;
    bool runtime = false;
    Value value;
  };

  [[nodiscard]] const Entry& entry(std::string_view name) const;
  template <class T>
  [[nodiscard]] const T& get(std::string_view name) const;

  std::vector<Entry> entries_;
};

}  // namespace troupe
