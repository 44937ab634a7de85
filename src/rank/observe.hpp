#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "common/core/settings.hpp"
#include "rank/device/device_core.hpp"
#include "rank/device/flight/flight_collector.hpp"
#include "rank/net/session.hpp"

namespace troupe::rank_process {

class WorldCore;

/// Makes a running job visible, as its settings want: a trace of all ranks, a file of metrics for
/// each rank, and at the end a line about the rank that the others waited for.
class Observer {
 public:
  /// What the flight recorder must hold for it. `engine`: of the device host.
  static void prepare(const Settings& settings, const std::string& engine,
                      FlightRecorder::Options& flight);

  /// All ranks call it, with the flight recorder's options. Errors: io, a file cannot be written.
  static Result<std::unique_ptr<Observer>> open(const Settings& settings, Session& mpi,
                                                DeviceCore& device,
                                                const FlightRecorder::Options& flight);
  /// The part of a trace of which no world was formed goes.
  ~Observer();

  /// What is told of the world; nullptr: nobody wants to know of it.
  [[nodiscard]] FlightCollector* collector() const noexcept { return collector_.get(); }
  /// The world is formed: its metrics count from now on, until forget_world().
  void watch(const WorldCore& world);
  void forget_world();

  /// The device has ended, and all ranks have come here: makes the trace of the ranks' parts, says
  /// who was slowest, and what GPUs have said of their health.
  void finish(const std::vector<HealthEvent>& health);

 private:
  Observer(const Settings& settings, Session& mpi, DeviceCore& device);
  void serve();
  void write_metrics();
  /// On rank 0.
  static void name_unhealthy(const std::vector<HealthEvent>& health);
  /// On rank 0.
  void name_slowest(const trace::Clock& last);
  void merge();
  /// The parts of all ranks on rank 0; empty elsewhere. Those that it does not see are sent to it.
  /// Errors: io.
  [[nodiscard]] Result<std::vector<std::string>> gather_parts();
  /// Sends this rank's part to rank 0 if `missing`, in pieces. On rank 0: writes what comes.
  Result<void> send_missing(const std::string& missing, const std::vector<std::uint64_t>& bytes);

  Session* mpi_;
  DeviceCore* device_;
  std::string trace_file_, metrics_file_;
  std::string job_;
  trace::Clock first_clock_;
  std::unique_ptr<FlightCollector> collector_;
  std::mutex mutex_;  ///< of what follows
  const WorldCore* world_ = nullptr;
  bool formed_ = false;
  bool warned_ = false;
  bool ending_ = false;
  std::condition_variable ending_changed_;
  std::thread metrics_thread_;
};

}  // namespace troupe::rank_process
