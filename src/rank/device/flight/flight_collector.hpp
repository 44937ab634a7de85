#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "common/trace/part.hpp"
#include "rank/device/flight/flight_recorder.hpp"

namespace troupe::rank_process {

/// Takes the commands of a flight recorder once they are answered, before others take their slots:
/// for the rank's part of a trace, and for totals. What passes faster than it is collected is
/// counted.
class FlightCollector {
 public:
  struct Options {
    FlightRecorder* flight = nullptr;                   ///< outlives the collector
    std::function<std::uint64_t()> submitted;           ///< the newest ticket; any thread
    std::function<bool(std::uint64_t ticket)> pending;  ///< it is unanswered; any thread
    std::unique_ptr<trace::PartWriter> part;            ///< empty: nothing is traced
    std::chrono::milliseconds every{20};                ///< 0: whenever collect() is called
  };
  /// Slots of a flight recorder that is collected: what a rank submits in a hundred milliseconds,
  /// and more than can be unanswered.
  static constexpr std::uint64_t kSlots = 1u << 16;
  static constexpr std::uint64_t kActivities = 1u << 15;

  explicit FlightCollector(Options options);
  ~FlightCollector();
  FlightCollector(const FlightCollector&) = delete;
  FlightCollector& operator=(const FlightCollector&) = delete;

  /// Takes what has been answered. Any thread.
  void collect();
  /// The rank submits nothing any more: takes all there is. With `clock` the part says so, and is
  /// complete. Nothing is collected afterwards.
  void finish(const trace::Clock& clock);

  /// Something of the world's for the trace. Any thread.
  void span(trace::SpanKind kind, TimePoint begin, TimePoint end, std::string_view text);
  [[nodiscard]] bool traces() const noexcept { return options_.part != nullptr; }
  [[nodiscard]] const std::string& part_file() const noexcept { return options_.part->path(); }

  /// What was collected so far. Any thread.
  struct Totals {
    struct Library {
      std::uint64_t operations = 0, bytes = 0;
    };
    std::map<std::string, Library, std::less<>> libraries;
    std::map<std::string, std::uint64_t, std::less<>> errors;  ///< by their class
    std::uint64_t lost = 0;
  };
  [[nodiscard]] Totals totals() const;

 private:
  void serve();
  void collect_locked(bool all);
  void take(std::uint64_t ticket, const TickScale::Reading& reading);
  void take_activities();
  void take_health();
  void note_counts();

  Options options_;
  mutable std::mutex mutex_;
  std::uint64_t walked_ = 0;         ///< the newest ticket that was looked at
  std::vector<std::uint64_t> open_;  ///< that were unanswered then
  std::uint64_t taken_ = 0;
  std::size_t health_taken_ = 0;
  bool finished_ = false;
  bool warned_ = false;
  struct Known {
    std::uint32_t name = 0;
    Totals::Library* library = nullptr;
  };
  std::unordered_map<std::uint32_t, Known> known_;  ///< by opcode
  Totals totals_;
  trace::Counts counts_;
  std::condition_variable ending_changed_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace troupe::rank_process
