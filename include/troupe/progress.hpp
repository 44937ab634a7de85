#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include <troupe/clock.hpp>

namespace troupe {

/// What a person at a terminal reads of something that takes long: how far it is, its rate and the
/// time left. Pure: time is passed in.
class ProgressLine {
 public:
  /// `what`: "saving step 12"; `total`: of units, 0 if that is unknown; `unit`: "MiB".
  ProgressLine(std::string what, std::uint64_t total, std::string unit, TimePoint begin)
      : what_(std::move(what)),
        total_(total),
        unit_(std::move(unit)),
        begin_(begin),
        last_(begin) {}

  /// The line, if one is due: the first after two seconds, then one a second.
  [[nodiscard]] std::optional<std::string> at(TimePoint now, std::uint64_t done);
  /// Whether there was a line.
  [[nodiscard]] bool shown() const noexcept { return shown_; }

 private:
  std::string what_;
  std::uint64_t total_;
  std::string unit_;
  TimePoint begin_, last_;
  bool shown_ = false;
};

/// Shows it on standard error while it lives, over and over in one line; nothing where that is no
/// terminal, or what it is about does not take long. Any thread.
class Progress {
 public:
  Progress(std::string what, std::uint64_t total, std::string unit);
  /// Clears the line.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// So much is done by now.
  void reach(std::uint64_t done);

 private:
  const bool terminal_;
  std::mutex mutex_;
  ProgressLine line_;
};

}  // namespace troupe
