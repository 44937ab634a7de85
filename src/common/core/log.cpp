#include "common/core/log.hpp"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace troupe::log {
namespace {

constexpr std::array<std::string_view, 6> kLevelNames = {"trace", "debug", "info",
                                                         "warn",  "error", "off"};

using Levels = std::array<std::optional<Level>, kComponents.size()>;

/// The two outputs, under one lock so that a new rank tag never meets a half-written line.
struct Outputs {
  std::mutex mutex;
  spdlog::logger out{"troupe", std::make_shared<spdlog::sinks::stdout_sink_st>()};
  spdlog::logger err{"troupe", std::make_shared<spdlog::sinks::stderr_sink_st>()};

  Outputs() {
    for (auto* logger : {&out, &err}) {
      logger->set_level(spdlog::level::trace);  // the thresholds have decided already
      logger->flush_on(
          spdlog::level::trace);  // the last lines before a crash are the ones that matter
    }
    tag("-");
  }
  void tag(const std::string& rank) {
    for (auto* logger : {&out, &err}) logger->set_pattern("%H:%M:%S.%e %L [" + rank + "] %v");
  }
};

/// Never destroyed: threads may log while the process ends.
Outputs& outputs() {
  static auto* instance = new Outputs;
  return *instance;
}

std::optional<Level> level_named(std::string_view name) {
  const auto at = std::find(kLevelNames.begin(), kLevelNames.end(), name);
  if (at == kLevelNames.end()) return std::nullopt;
  return static_cast<Level>(at - kLevelNames.begin());
}

Error invalid(std::string_view entry, std::string_view problem) {
  return {Errc::invalid, 0, fmt::format("log-level: '{}': {}", entry, problem)};
}

/// Reads one entry, "debug" into `base` or "world=debug" into `levels`.
Result<void> parse_entry(std::string_view entry, std::optional<Level>& base, Levels& levels) {
  const auto equals = entry.find('=');
  const bool alone = equals == std::string_view::npos;
  const auto level = level_named(alone ? entry : entry.substr(equals + 1));
  if (!level) return invalid(entry, "no such level (trace, debug, info, warn, error, off)");
  auto* target = &base;
  if (!alone) {
    const auto at = std::find(kComponents.begin(), kComponents.end(), entry.substr(0, equals));
    if (at == kComponents.end()) {
      std::string names;
      for (const auto name : kComponents) names.append(names.empty() ? "" : ", ").append(name);
      return invalid(entry, "no such component (" + names + ")");
    }
    target = &levels[static_cast<std::size_t>(at - kComponents.begin())];
  }
  if (target->has_value()) return invalid(entry, "the level is set twice");
  *target = level;
  return {};
}

}  // namespace

namespace detail {

static_assert(kComponents.size() == 12, "one threshold each");
constinit std::array<std::atomic<Level>, kComponents.size()> thresholds = {
    Level::warn, Level::warn, Level::warn, Level::warn, Level::warn, Level::warn,
    Level::warn, Level::warn, Level::warn, Level::warn, Level::warn, Level::warn};

void write(Component component, Level level, std::string_view text) {
  auto& all = outputs();
  const std::lock_guard lock(all.mutex);
  auto& logger = level >= Level::warn ? all.err : all.out;
  logger.log(static_cast<spdlog::level::level_enum>(level), "{}: {}", component.name(), text);
}

}  // namespace detail

Result<void> init(Rank rank, std::string_view levels) {
  std::optional<Level> base;
  Levels own;
  for (;;) {
    const auto comma = levels.find(',');
    if (auto parsed = parse_entry(levels.substr(0, comma), base, own); !parsed) return parsed;
    if (comma == std::string_view::npos) break;
    levels.remove_prefix(comma + 1);
  }
  // What is below a warning would go to stdout, which belongs to rank 0.
  const auto floor = rank.value == 0 ? Level::trace : Level::warn;
  auto& all = outputs();
  const std::lock_guard lock(all.mutex);
  all.tag(std::to_string(rank.value));
  for (std::size_t i = 0; i < kComponents.size(); ++i) {
    detail::thresholds[i] = std::max(own[i].value_or(base.value_or(Level::info)), floor);
  }
  return {};
}

}  // namespace troupe::log
