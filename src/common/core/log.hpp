#pragma once

#include <fmt/core.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include <troupe/error.hpp>
#include <troupe/ids.hpp>

/// Logging, from any thread. One line each, "12:34:56.789 I [2] world: text": warnings and errors
/// of every rank go to stderr, all else to stdout and from rank 0 alone. Before init(): warnings
/// and errors, "[-]".
namespace troupe::log {

enum class Level : std::uint8_t { trace, debug, info, warn, error, off };

/// The parts of troupe whose level can be set on its own.
inline constexpr std::array<std::string_view, 12> kComponents = {
    "app",    "runtime",    "world", "net", "device", "lib",
    "memory", "checkpoint", "actor", "ipc", "host",   "engine"};

/// A name out of kComponents; any other does not compile.
class Component {
 public:
  consteval Component(const char* name) : index_(find(name)) {}
  [[nodiscard]] constexpr std::size_t index() const noexcept { return index_; }
  [[nodiscard]] constexpr std::string_view name() const noexcept { return kComponents[index_]; }

 private:
  static consteval std::size_t find(std::string_view name) {
    std::size_t i = 0;
    while (kComponents.at(i) != name) ++i;
    return i;
  }
  std::size_t index_;
};

/// Sets this process's rank and the levels, "info" or "info,world=debug,device=trace"; a component
/// that is not named has the level that stands alone (info if none does). May be called again.
/// Errors: Errc::invalid for an unknown level or component; then nothing has changed.
Result<void> init(Rank rank, std::string_view levels);

namespace detail {
/// The lowest level that is written, per component.
extern std::array<std::atomic<Level>, kComponents.size()> thresholds;
void write(Component component, Level level, std::string_view text);
}  // namespace detail

/// True if a line of this level is written: for callers whose arguments are costly to make.
inline bool enabled(Component component, Level level) noexcept {
  return level >= detail::thresholds[component.index()].load(std::memory_order_relaxed);
}

/// Formats and writes a line if the component's level admits it; otherwise costs one load.
template <class... Args>
void trace(Component component, fmt::format_string<Args...> format, Args&&... args) {
  if (!enabled(component, Level::trace)) return;
  detail::write(component, Level::trace, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void debug(Component component, fmt::format_string<Args...> format, Args&&... args) {
  if (!enabled(component, Level::debug)) return;
  detail::write(component, Level::debug, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void info(Component component, fmt::format_string<Args...> format, Args&&... args) {
  if (!enabled(component, Level::info)) return;
  detail::write(component, Level::info, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void warn(Component component, fmt::format_string<Args...> format, Args&&... args) {
  if (!enabled(component, Level::warn)) return;
  detail::write(component, Level::warn, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void error(Component component, fmt::format_string<Args...> format, Args&&... args) {
  if (!enabled(component, Level::error)) return;
  detail::write(component, Level::error, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace troupe::log
