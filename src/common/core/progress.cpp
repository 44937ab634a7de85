#include <troupe/progress.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace troupe {

std::optional<std::string> ProgressLine::at(TimePoint now, std::uint64_t done) {
  constexpr auto kPatience = std::chrono::seconds(2), kPeriod = std::chrono::seconds(1);
  if (now - last_ < (shown_ ? kPeriod : kPatience)) return std::nullopt;
  last_ = now;
  shown_ = true;
  const auto seconds = std::chrono::duration<double>(now - begin_).count();
  const auto rate = static_cast<double>(done) / seconds;
  if (total_ == 0 || done > total_)
    return fmt::format("{}: {} {}, {:.4g} {}/s", what_, done, unit_, rate, unit_);
  const auto left = rate > 0
                        ? fmt::format("{:.0f} s left", static_cast<double>(total_ - done) / rate)
                        : std::string("time left unknown");
  return fmt::format("{}: {} of {} {}, {:.4g} {}/s, {}", what_, done, total_, unit_, rate, unit_,
                     left);
}

Progress::Progress(std::string what, std::uint64_t total, std::string unit)
    : terminal_(::isatty(STDERR_FILENO) == 1),
      line_(std::move(what), total, std::move(unit), SteadyClock::time()) {}

Progress::~Progress() {
  if (line_.shown()) std::fputs("\r\033[K", stderr);
}

void Progress::reach(std::uint64_t done) {
  if (!terminal_) return;
  const std::lock_guard lock(mutex_);
  if (const auto line = line_.at(SteadyClock::time(), done))
    std::fprintf(stderr, "\r\033[K%s", line->c_str());
}

}  // namespace troupe
