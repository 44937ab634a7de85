#include <troupe/config.hpp>

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "runtime_variables.hpp"

namespace troupe {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

const std::vector<OptionSpec>& options() {
  using enum OptionType;
  static const std::vector<OptionSpec> list_of_all = {
      {"steps", integer, "10", "N", "steps to take", {}, "1", "1000"},
      {"check-every", integer, "5", "N", "steps between checks"},
      {"tolerance", real, "1e-6", "X", "largest error", {}, "0"},
      {"verbose", flag, "off", "", "say more"},
      {"overlap", flag, "on", "on|off", "overlap transfers"},
      {"title", text, "", "TEXT", "printed above the report"},
      {"fault", list, "", "FAULT", "inject a fault", {}},
      {"phase", list, "", "PHASE", "phases to trace", {"form", "verify"}},
      {"chunk", bytes, "1MiB", "SIZE", "bytes per message", {}, "4KiB", "1GiB", true, 'c'},
      {"pause", duration, "10ms", "TIME", "between steps", {}, "", "1h"},
  };
  return list_of_all;
}

/// Every test starts with no TROUPE_ variable but an empty site file, and leaves a folder of its
/// own.
class ConfigTest : public ::testing::Test {
 protected:
  void SetUp() override {
    test::forget_runtime_variables();
    std::string pattern =
        (std::filesystem::temp_directory_path() / "troupe_config_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    set("TROUPE_SITE_CONFIG", "");
  }
  void TearDown() override {
    for (const auto& name : variables_) unsetenv(name.c_str());
    std::filesystem::remove_all(folder_);
  }

  void set(const std::string& name, const std::string& value) {
    ASSERT_EQ(setenv(name.c_str(), value.c_str(), 1), 0);
    variables_.push_back(name);
  }
  std::string file(const std::string& name, const std::string& content) {
    const auto path = (folder_ / name).string();
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }
  static Result<Config> parse(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "program");
    return Config::parse(static_cast<int>(arguments.size()), arguments.data(), options());
  }
  static Config good(const std::vector<const char*>& arguments) { return parse(arguments).take(); }
  /// The error's text; also checks that it is one line and of the expected class.
  static std::string bad(const std::vector<const char*>& arguments, Errc code = Errc::invalid) {
    const auto outcome = parse(arguments);
    if (outcome.ok()) return "no error";
    EXPECT_EQ(outcome.code(), code);
    EXPECT_EQ(outcome.error().message.find('\n'), std::string::npos);
    return outcome.error().message;
  }

  std::filesystem::path folder_;
  std::vector<std::string> variables_;
};

TEST_F(ConfigTest, DefaultsOfEveryType) {
  const auto config = good({});
  EXPECT_EQ(config.integer("steps"), 10);
  EXPECT_EQ(config.real("tolerance"), 1e-6);
  EXPECT_FALSE(config.flag("verbose"));
  EXPECT_TRUE(config.flag("overlap"));
  EXPECT_EQ(config.text("title"), "");
  EXPECT_TRUE(config.list("fault").empty());
  EXPECT_EQ(config.bytes("chunk"), 1U << 20);
  EXPECT_EQ(config.duration("pause"), milliseconds(10));
  EXPECT_FALSE(config.given("steps"));
  EXPECT_EQ(config.source("steps"), "default");
}

TEST_F(ConfigTest, RuntimeOptionsAreThere) {
  const auto config = good({});
  EXPECT_EQ(config.text("engine"), "auto");
  EXPECT_EQ(config.text("isolation"), "process");
  EXPECT_EQ(config.text("standby"), "world");
  EXPECT_EQ(config.bytes("slab-size"), 64U << 20);
  EXPECT_EQ(config.bytes("ring-size"), 4U << 20);
  EXPECT_EQ(config.bytes("memory-limit"), 0U);
  EXPECT_EQ(config.text("spin"), "auto");
  EXPECT_EQ(config.duration("op-timeout"), std::chrono::minutes(10));
  EXPECT_EQ(config.duration("restart-window"), std::chrono::minutes(1));
  EXPECT_EQ(config.integer("restart-budget"), 3);
  EXPECT_EQ(good({"--spin", "20us"}).duration("spin"), std::chrono::microseconds(20));
  EXPECT_EQ(good({"--standby", "off"}).text("standby"), "off");
}

TEST_F(ConfigTest, PrecedenceOfTheFiveSources) {
  const auto site = file("site.conf", "steps = 1\ncheck-every = 1\ntolerance = 1\nchunk = 4KiB\n");
  const auto own =
      file("own.conf", "# a comment\n\nsteps = 2   # trailing\ncheck-every = 2\ntolerance = 2\n");
  set("TROUPE_SITE_CONFIG", site);
  set("TROUPE_STEPS", "3");
  set("TROUPE_CHECK_EVERY", "3");
  const auto config = good({"--config", own.c_str(), "--steps=4"});
  EXPECT_EQ(config.integer("steps"), 4);
  EXPECT_EQ(config.source("steps"), "command line");
  EXPECT_EQ(config.integer("check-every"), 3);
  EXPECT_EQ(config.source("check-every"), "environment TROUPE_CHECK_EVERY");
  EXPECT_EQ(config.real("tolerance"), 2.0);
  EXPECT_EQ(config.source("tolerance"), "file " + own + ":5");
  EXPECT_EQ(config.bytes("chunk"), 4096U);
  EXPECT_EQ(config.source("chunk"), "site file " + site + ":4");
  EXPECT_EQ(config.duration("pause"), milliseconds(10));
  EXPECT_EQ(config.source("pause"), "default");
  EXPECT_TRUE(config.given("chunk"));
  EXPECT_FALSE(config.given("pause"));
}

TEST_F(ConfigTest, AProgramMayAllowMoreValuesOfAnOptionThatAllHave) {
  const OptionSpec more[] = {
      {"standby", OptionType::text, "off", "TEXT", "two", {"off", "two", "world", "local", "on"}}};
  const char* const arguments[] = {"program", "--standby", "two"};
  EXPECT_EQ(Config::parse(3, arguments, more).take().text("standby"), "two");
  EXPECT_EQ(Config::parse(1, arguments, more).take().text("standby"), "off");
  EXPECT_EQ(bad({"--standby", "two"}).find("command line: standby: 'two' is not one of"), 0U);
}

TEST_F(ConfigTest, TheEnvironmentCanNameTheFile) {
  const auto by_environment = file("a.conf", "steps = 2\n");
  const auto by_command_line = file("b.conf", "steps = 3\n");
  set("TROUPE_CONFIG", by_environment);
  EXPECT_EQ(good({}).integer("steps"), 2);
  EXPECT_EQ(good({"--config", by_command_line.c_str()}).integer("steps"), 3);
}

TEST_F(ConfigTest, PrintedConfigurationIsAFileThatMeansTheSame) {
  set("TROUPE_PAUSE", "1.5s");
  const auto first = good({"--steps", "7", "--title", "two words = one title", "--fault", "a@1",
                           "--fault", "b@2", "--verbose", "--overlap", "off", "--print-config"});
  EXPECT_TRUE(first.wants_print());
  EXPECT_NE(first.print().find("# command line\n"), std::string::npos);
  EXPECT_NE(first.print().find("# environment TROUPE_PAUSE\n"), std::string::npos);
  EXPECT_NE(first.print().find("# default\n"), std::string::npos);

  const auto path = file("printed.conf", first.print());
  unsetenv("TROUPE_PAUSE");
  const auto second = good({"--config", path.c_str()});
  for (const auto& option : options()) {
    EXPECT_EQ(second.text(option.name), first.text(option.name)) << option.name;
    EXPECT_EQ(second.source(option.name).find("file " + path + ":"), 0U) << option.name;
  }
  EXPECT_EQ(second.text("title"), "two words = one title");
  EXPECT_EQ(second.list("fault"), (std::vector<std::string>{"a@1", "b@2"}));
  EXPECT_EQ(second.duration("pause"), milliseconds(1500));
  EXPECT_FALSE(second.wants_print());
}

TEST_F(ConfigTest, RepeatedOptions) {
  EXPECT_EQ(good({"--fault", "a", "--steps", "2", "--fault=b"}).list("fault"),
            (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(good({"--fault", "a,b", "--fault", "c"}).list("fault"),
            (std::vector<std::string>{"a", "b", "c"}));
  const auto path = file("list.conf", "fault = a, b\nfault = c\n");
  EXPECT_EQ(good({"--config", path.c_str()}).list("fault"),
            (std::vector<std::string>{"a", "b", "c"}));
  set("TROUPE_FAULT", "x,y");
  EXPECT_EQ(good({"--config", path.c_str()}).list("fault"), (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(good({"--fault", "z"}).list("fault"), std::vector<std::string>{"z"});
  EXPECT_EQ(good({"--phase", "form,verify"}).list("phase").size(), 2U);
  EXPECT_EQ(bad({"--phase", "form,from"}),
            "command line: phase: 'from' is not one of form, verify");
  EXPECT_EQ(bad({"--fault", "a,,b"}), "command line: fault: an empty value between commas");
  EXPECT_EQ(bad({"--fault", "a,"}), "command line: fault: 'a,' ends in a comma");
}

TEST_F(ConfigTest, Flags) {
  EXPECT_TRUE(good({"--verbose"}).flag("verbose"));
  EXPECT_FALSE(good({"--verbose=no"}).flag("verbose"));
  EXPECT_EQ(good({"--verbose=true"}).text("verbose"), "on");
  EXPECT_EQ(good({"--verbose", "--steps", "2"}).integer("steps"), 2);
  set("TROUPE_VERBOSE", "1");
  EXPECT_TRUE(good({}).flag("verbose"));
  EXPECT_FALSE(good({"--verbose=off"}).flag("verbose"));
  EXPECT_EQ(bad({"--verbose=maybe"}), "command line: verbose: 'maybe' is not on or off");
  EXPECT_FALSE(good({"--verbose", "off"}).flag("verbose"));
  EXPECT_FALSE(good({"--overlap", "off"}).flag("overlap"));
  EXPECT_EQ(bad({"--verbose", "input.dat"}), "command line: verbose: 'input.dat' is not on or off");
}

TEST_F(ConfigTest, AnOptionMayHaveALetter) {
  EXPECT_EQ(good({"-c", "8KiB"}).bytes("chunk"), 8192U);
  EXPECT_EQ(good({"-c8KiB"}).source("chunk"), "command line");
  EXPECT_NE(good({"--help"}).help_text("program", "Does it.").find("-c [ --chunk ] SIZE"),
            std::string::npos);
  EXPECT_EQ(bad({"-c"}), "command line: --chunk: needs a value");
  EXPECT_EQ(bad({"-c", "lots"}), "command line: chunk: 'lots' is not a size such as 64MiB");
  EXPECT_EQ(bad({"-c", "4KiB", "--chunk", "4KiB"}), "command line: chunk: given twice");
  EXPECT_EQ(bad({"-c", "--verbose"}), "command line: --chunk: needs a value");
}
TEST_F(ConfigTest, UnknownKeys) {
  EXPECT_EQ(bad({"--chek-every", "3"}),
            "command line: unknown option '--chek-every'; did you mean --check-every?");
  EXPECT_EQ(bad({"--chek-every=3"}),
            "command line: unknown option '--chek-every'; did you mean --check-every?");
  EXPECT_EQ(bad({"--zzzzzzzzzzzz"}), "command line: unknown option '--zzzzzzzzzzzz'");
  EXPECT_EQ(bad({"--Steps", "3"}), "command line: unknown option '--Steps'; did you mean --steps?");
  EXPECT_EQ(bad({"-x"}).find("command line: unknown option '-x'"), 0U);
  const auto path = file("typo.conf", "steps = 3\n\ntolerence = 1\n");
  EXPECT_EQ(bad({"--config", path.c_str()}),
            "file " + path + ":3: unknown key 'tolerence'; did you mean tolerance?");
  set("TROUPE_SITE_CONFIG", path);
  EXPECT_EQ(bad({}), "site file " + path + ":3: unknown key 'tolerence'; did you mean tolerance?");
}

TEST_F(ConfigTest, LongOptionsAreNeverGuessed) {
  EXPECT_EQ(bad({"--check-ever", "3"}),
            "command line: unknown option '--check-ever'; did you mean --check-every?");
  EXPECT_EQ(bad({"--step", "3"}), "command line: unknown option '--step'; did you mean --steps?");
}

TEST_F(ConfigTest, UnknownVariables) {
  set("TROUPE_TEST_BACKEND", "cpu");
  set("TROUPE_SHARED", "/somewhere");
  set("TROUPE_JOB_MAX_RESTARTS", "3");
  set("TROUPELESS", "1");
  EXPECT_TRUE(parse({}).ok());
  set("TROUPE_STEP", "3");
  EXPECT_EQ(bad({}), "environment: unknown variable 'TROUPE_STEP'; did you mean TROUPE_STEPS?");
  unsetenv("TROUPE_STEP");
  set("TROUPE_steps", "3");
  EXPECT_EQ(bad({}).find("environment: unknown variable 'TROUPE_steps'"), 0U);
  unsetenv("TROUPE_steps");
  set("TROUPE_HELP", "on");
  EXPECT_EQ(bad({}), "environment TROUPE_HELP: help belongs on the command line");
}

TEST_F(ConfigTest, BadNumbers) {
  EXPECT_EQ(bad({"--steps", "many"}), "command line: steps: 'many' is not an integer (64 bit)");
  for (const char* text : {"12x", "0x10", "1.5", "+3", "1 2", "99999999999999999999"}) {
    EXPECT_EQ(bad({"--check-every", text}),
              std::string("command line: check-every: '") + text + "' is not an integer (64 bit)");
  }
  EXPECT_EQ(bad({"--steps", "0"}), "command line: steps: '0' is below the minimum 1");
  EXPECT_EQ(bad({"--steps", "1001"}), "command line: steps: '1001' is above the maximum 1000");
  for (const char* text : {"nan", "inf", "1e-6x", "1,5", "--"}) {
    EXPECT_NE(bad({"--tolerance", text}), "no error") << text;
  }
  EXPECT_EQ(bad({"--tolerance", "-1"}), "command line: tolerance: '-1' is below the minimum 0");
  EXPECT_EQ(good({"--check-every", "-3"}).integer("check-every"), -3);
  EXPECT_EQ(good({"--check-every=-9223372036854775808"}).integer("check-every"),
            std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(good({"--steps", "007"}).integer("steps"), 7);
}

TEST_F(ConfigTest, ErrorsNameEnvironmentAndFileLine) {
  const auto path = file("bad.conf", "steps = 3\nchunk = big\n");
  EXPECT_EQ(bad({"--config", path.c_str()}),
            "file " + path + ":2: chunk: 'big' is not a size such as 64MiB");
  EXPECT_EQ(bad({"--config", path.c_str(), "--chunk", "8KiB"}),  // overridden, but still wrong
            "file " + path + ":2: chunk: 'big' is not a size such as 64MiB");
  set("TROUPE_STEPS", "");
  EXPECT_EQ(bad({}), "environment TROUPE_STEPS: steps: needs a value");
}

TEST_F(ConfigTest, Choices) {
  EXPECT_EQ(good({"--engine", "cpu"}).text("engine"), "cpu");
  EXPECT_EQ(bad({"--engine", "gpu"}), "command line: engine: 'gpu' is not one of auto, cpu, cuda");
  EXPECT_EQ(bad({"--spin", "never"}),
            "command line: spin: 'never' is not a duration such as 500ms or 1.5s or auto");
}

TEST_F(ConfigTest, StrayAndMissingArguments) {
  EXPECT_EQ(bad({"input.dat"}), "command line: unexpected argument 'input.dat'");
  EXPECT_EQ(bad({"--", "--steps"}), "command line: unexpected argument '--steps'");
  EXPECT_EQ(bad({""}), "command line: unexpected argument ''");
  EXPECT_EQ(bad({"--steps"}), "command line: --steps: needs a value");
  EXPECT_EQ(bad({"--steps", "--verbose"}), "command line: --steps: needs a value");
  EXPECT_EQ(bad({"--title", "--verbose"}), "command line: --title: needs a value");
  EXPECT_EQ(good({"--title=--verbose"}).text("title"), "--verbose");
  EXPECT_EQ(bad({"--steps="}), "command line: --steps: needs a value");
  EXPECT_EQ(bad({"--steps", "2", "--steps", "3"}), "command line: steps: given twice");
  const auto path = file("twice.conf", "steps = 3\nsteps = 4\n");
  EXPECT_EQ(bad({"--config", path.c_str()}), "file " + path + ":2: steps: given twice");
}

TEST_F(ConfigTest, ValuesThatNoFileCouldHoldAreRefused) {
  EXPECT_EQ(bad({"--title", "a # b"}),
            "command line: title: 'a # b' contains '#', which starts a comment");
  EXPECT_EQ(bad({"--title", "a\nb"}), "command line: title: 'a?b' contains a control character");
  EXPECT_EQ(good({"--title", "  a b "}).text("title"), "a b");
  set("TROUPE_TITLE", "from above");
  EXPECT_EQ(good({"--title", ""}).text("title"), "");
}

TEST_F(ConfigTest, BadFiles) {
  const auto missing = (folder_ / "missing.conf").string();
  EXPECT_EQ(bad({"--config", missing.c_str()}, Errc::io),
            "file '" + missing + "': No such file or directory");
  EXPECT_EQ(bad({"--config", folder_.c_str()}, Errc::io),
            "file '" + folder_.string() + "': Is a directory");
  EXPECT_EQ(bad({"--config", "/dev/zero"}), "file '/dev/zero': larger than 1MiB");
  const auto junk = file("junk.conf", "\nsteps 3\n");
  EXPECT_EQ(bad({"--config", junk.c_str()}),
            "file " + junk + ":2: 'steps 3' is not of the form key = value");
  const auto section = file("section.conf", "[world]\nsteps = 3\n");
  EXPECT_EQ(bad({"--config", section.c_str()}),
            "file " + section + ":1: '[world]' is not of the form key = value");
  const auto nested = file("nested.conf", "config = other.conf\n");
  EXPECT_EQ(bad({"--config", nested.c_str()}),
            "file " + nested + ":1: config does not belong in a file");
  const auto windows = file("windows.conf", "steps = 3\r\n\r\ntitle = x\r\n");
  EXPECT_EQ(good({"--config", windows.c_str()}).text("title"), "x");
  set("TROUPE_SITE_CONFIG", missing);
  EXPECT_EQ(bad({}, Errc::io), "site file '" + missing + "': No such file or directory");
}

TEST_F(ConfigTest, Sizes) {
  const auto limit = [](const char* text) {
    return good({"--memory-limit", text}).bytes("memory-limit");
  };
  EXPECT_EQ(limit("4096"), 4096U);
  EXPECT_EQ(limit("7B"), 7U);
  EXPECT_EQ(limit("3KiB"), 3072U);
  EXPECT_EQ(limit("64MiB"), 64ULL << 20);
  EXPECT_EQ(limit("2GiB"), 2ULL << 30);
  EXPECT_EQ(limit("1TiB"), 1ULL << 40);
  EXPECT_EQ(limit("18446744073709551615"), std::numeric_limits<std::uint64_t>::max());
  for (const char* text :
       {"64MB", "64mib", "1.5GiB", "-1", "MiB", "64 MiB", "64MiBx", "16777216TiB", "0x10"}) {
    EXPECT_EQ(bad({"--memory-limit", text}), std::string("command line: memory-limit: '") + text +
                                                 "' is not a size such as 64MiB");
  }
  EXPECT_EQ(bad({"--chunk", "2KiB"}), "command line: chunk: '2KiB' is below the minimum 4KiB");
  EXPECT_EQ(bad({"--chunk", "2GiB"}), "command line: chunk: '2GiB' is above the maximum 1GiB");
}

TEST_F(ConfigTest, Durations) {
  const auto timeout = [](const char* text) {
    return good({"--op-timeout", text}).duration("op-timeout");
  };
  EXPECT_EQ(timeout("0"), nanoseconds(0));
  EXPECT_EQ(timeout("7ns"), nanoseconds(7));
  EXPECT_EQ(timeout("20us"), nanoseconds(20'000));
  EXPECT_EQ(timeout("500ms"), nanoseconds(500'000'000));
  EXPECT_EQ(timeout("2s"), nanoseconds(2'000'000'000));
  EXPECT_EQ(timeout("1.5s"), nanoseconds(1'500'000'000));
  EXPECT_EQ(timeout("0.1s"), nanoseconds(100'000'000));
  EXPECT_EQ(timeout("3min"), nanoseconds(180'000'000'000));
  EXPECT_EQ(timeout("1h"), nanoseconds(3'600'000'000'000));
  for (const char* text :
       {"5", "-1s", "1e3s", "1.2.3s", "s", ".s", "2 s", "2sec", "9999999h", "inf"}) {
    EXPECT_EQ(bad({"--op-timeout", text}), std::string("command line: op-timeout: '") + text +
                                               "' is not a duration such as 500ms or 1.5s");
  }
  EXPECT_EQ(bad({"--pause", "61min"}), "command line: pause: '61min' is above the maximum 1h");
}

TEST_F(ConfigTest, HelpWinsOverEverything) {
  set("TROUPE_NONSENSE", "1");
  for (const char* option : {"--help", "-h"}) {
    const auto config = good({"--bogus", option});
    EXPECT_TRUE(config.wants_help());
    const auto text = config.help_text("stencil", "Solves a stencil.");
    EXPECT_EQ(text.find("Usage: stencil [options]\nSolves a stencil.\n"), 0U);
    EXPECT_LT(text.find("--check-every N"), text.find("Runtime options"));
    EXPECT_LT(text.find("Runtime options"), text.find("--heartbeat-timeout TIME"));
    EXPECT_NE(text.find("steps to take (default 10)"), std::string::npos);
    EXPECT_NE(text.find("-h [ --help ]"), std::string::npos);
  }
  EXPECT_TRUE(good({"--version"}).wants_version());
  EXPECT_FALSE(good({"--version"}).wants_help());
}

TEST_F(ConfigTest, ForeignTextCannotBreakOrFloodAMessage) {
  const std::string longest(10'000, 'x');
  EXPECT_LT(bad({longest.c_str()}).size(), 200U);
  EXPECT_LT(bad({("--" + longest).c_str()}).size(), 200U);
  EXPECT_EQ(bad({"a\nb"}), "command line: unexpected argument 'a?b'");
  EXPECT_EQ(bad({"--a\nb"}).find("command line: unknown option '--a?b'"), 0U);
}

TEST_F(ConfigTest, MistakesOfAProgramAreErrors) {
  const auto config = good({});
  const auto refused = [](const auto& ask) -> std::string {
    try {
      ask();
    } catch (const Exception& e) {
      return e.code() == Errc::invalid ? e.error().message : e.what();
    }
    return "nothing";
  };
  EXPECT_EQ(refused([&] { (void)config.integer("stepz"); }), "the option stepz is not declared");
  EXPECT_EQ(refused([&] { (void)config.integer("chunk"); }),
            "the option chunk holds 1MiB, which is of another type");
  EXPECT_EQ(refused([&] { (void)config.duration("spin"); }),
            "the option spin holds auto, which is of another type");
  const std::vector<OptionSpec> clash = {{"seed", OptionType::integer, "1", "N", ""}};
  const auto same_name = Config::parse(0, nullptr, clash);
  ASSERT_EQ(same_name.code(), Errc::invalid);
  EXPECT_EQ(same_name.error().message, "two options of the program have the name seed");
  const std::vector<OptionSpec> broken = {{"size", OptionType::bytes, "64", "N", "", {}, "1KiB"}};
  const auto bad_default = Config::parse(0, nullptr, broken);
  ASSERT_EQ(bad_default.code(), Errc::invalid);
  EXPECT_TRUE(bad_default.error().message.starts_with("default: size: "))
      << bad_default.error().message;
}

}  // namespace
}  // namespace troupe
