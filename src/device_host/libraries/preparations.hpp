#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "common/wire/control.hpp"
#include "device_host/core.hpp"
#include "device_host/libraries/libraries.hpp"
#include "device_host/libraries/preparation.hpp"
#include "device_host/requests.hpp"

namespace troupe::host {

/// What is made ready ahead of the commands that need it. The reactor's thread only.
class Preparations {
 public:
  Preparations(Core& core, Requests& requests, Libraries& libraries)
      : core_(&core), requests_(&requests), libraries_(&libraries) {}

  /// Tells the rank of a kind of command that has come before. `record`: the command's.
  void note_kind(const wire::Command& command, std::span<const std::byte> record);
  /// A library has made plans: tells the rank, and keeps the results of measurements.
  void tell_plans(Lane lane, const std::vector<std::vector<std::byte>>& plans);
  /// The library is open: results of measurements are for it, ahead of its commands.
  void library_opened(Lane lane);

  void on(std::uint64_t request, const wire::to_host::Prepare& prepare);
  void on(std::uint64_t request, wire::to_host::AdoptPlans& adopt);
  /// The command with this ticket asks for it, and is answered once it is done.
  void prepare_for(std::uint64_t ticket, std::shared_ptr<Preparation> one);

  /// Carries on what is to be prepared. True if anything changed.
  bool advance();
  /// Whether something has been queued that is looked for.
  [[nodiscard]] bool is_queued() const;
  /// What has not begun is forgotten: the rank's own, or what commands asked for.
  void drop(Preparation::For whom);

 private:
  using One = std::shared_ptr<Preparation>;

  /// Keeps a plan that is the result of a measurement; false: it is none.
  bool keep_measured(Lane lane, const std::vector<std::byte>& plan);
  /// True if anything changed.
  bool advance(const One& one);
  void begin(const One& one);
  /// On the thread of the library.
  void run(Preparation& one);
  void ended(const One& one, const Result<void>& outcome);

  Core* core_;
  Requests* requests_;
  Libraries* libraries_;
  KindTable kinds_;
  TimePoint kind_told_{};  ///< when the rank was told of one
  std::vector<One> all_;
  /// Results of measurements, for each time that their library is opened; they do not open it.
  std::deque<std::pair<Lane, std::vector<std::byte>>> measured_;
};

}  // namespace troupe::host
