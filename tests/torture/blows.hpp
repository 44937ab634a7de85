#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <troupe/troupe.hpp>

#include "program.hpp"

namespace troupe::torture {

/// Deals this rank's blows, each once, however often its step is repeated. Any thread.
class Blows {
 public:
  explicit Blows(Runtime& runtime) : world_(runtime.world()), device_(runtime.device()) {}

  /// Those of the next program have other ids.
  void begin() { dealt_.clear(); }
  /// What was submitted for it; empty: nothing, or it has been dealt.
  Future<void> strike(const Operation& op);
  /// Lets the next call of a library fail. False: not now, it would be given up.
  bool fail_library(std::string_view library);
  /// The same for the library of the operation.
  void fail_library_of(const Operation& op);
  /// Whether it was.
  [[nodiscard]] bool has_failed_library_of(const Operation& op);
  /// Waits until whoever stands still goes on.
  void end();

 private:
  Future<void> deal(const Operation& op);

  World& world_;
  Device& device_;
  std::mutex mutex_;
  std::set<std::uint32_t> dealt_;  ///< under mutex_
  std::map<std::string, std::vector<std::chrono::steady_clock::time_point>, std::less<>>
      failures_;                       ///< when, by library; under mutex_
  std::vector<std::jthread> helpers_;  ///< that end a freeze; under mutex_
  std::vector<std::jthread> wakers_;   ///< that wake hosts which nobody has missed; under mutex_
};

/// This rank's device hosts, oldest first: the active one, the standby.
std::vector<pid_t> device_hosts();

}  // namespace troupe::torture
