#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "common/wire/control.hpp"
#include "device_host/core.hpp"
#include "device_host/libraries/lane_actor.hpp"
#include "device_host/requests.hpp"

namespace troupe::host {

/// The actors of the lanes: they open libraries, restart those that fail, and carry out what blocks
/// on threads of their own. The reactor's thread only.
class Libraries {
 public:
  struct Handlers {
    /// The lane has been opened; false: it could not be.
    std::function<void(Lane lane, bool open)> opened;
    /// The library has made plans that another process can use.
    std::function<void(Lane lane, const std::vector<std::vector<std::byte>>& plans)> plans_made;
  };

  Libraries(Core& core, Requests& requests, Handlers handlers);

  /// Loads those of the rank's libraries that come with its program, and notes which lane of the
  /// rank each library has, or why it is unknown. `folders`: where they may lie, separated by ':'.
  void know(const char* folders);
  /// Opens the lanes that every program needs, and all libraries where that cannot wait.
  void open_first();

  [[nodiscard]] LaneActor& operator[](Lane lane) { return actors_[lane]; }
  /// Whether a command can be queued on the lane now. If its library is not open, begins to open
  /// it. Errors: why it cannot be opened, or was given up.
  Result<bool> ready(Lane lane);
  /// The same for several: this lane, and these.
  Result<bool> all_ready(Lane lane, const std::vector<Lane>& others);
  /// Where commands wait on the device for other ranks: whether a library is being opened. Its
  /// kernels stop what is queued behind them until the running ones end, and a command that begins
  /// now might wait for just that.
  [[nodiscard]] bool opening_goes_first() const;
  /// A call of the lane's library has failed, and the context is sound.
  void failed(Lane lane, const Error& error);
  /// Tells the rank whether commands of the library wait for it; see PortHeader::held_up.
  void hold_up(Lane lane, bool held_up);

  /// Has a thread of the lane's library carry out `call`, which may block; then `ended` is called
  /// with its outcome, on the reactor's thread. False: too much is under way.
  [[nodiscard]] bool carry_out(Lane lane, std::function<Result<void>()> call,
                               std::function<void(const Result<void>&)> ended);
  /// The lane's actor works from now on, or no longer.
  void begin_work(Lane lane);
  void end_work(Lane lane);
  [[nodiscard]] bool at_work() const noexcept { return working_ != 0; }

  /// Tells the engine's halves what is about to be written, or remembers it for one at work.
  void note_overwritten(std::span<const OperandUse> operands);

  void on(std::uint64_t request, const wire::to_host::OpenLibrary& open);
  void on(std::uint64_t request, const wire::to_host::TellLibraries&) {
    requests_->answer(request, {});
  }

 private:
  void open(Lane lane);
  void opened(Lane lane, const Result<void>& opened, const Result<void>& detour);

  Core* core_;
  Requests* requests_;
  Handlers handlers_;
  LaneActors actors_;
  std::size_t working_ = 0;                                ///< actors that are
  std::array<std::uint32_t, kLaneCount> lanes_of_rank_{};  ///< by lane; 0: the rank has none
};

}  // namespace troupe::host
