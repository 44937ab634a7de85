#pragma once

#include <cstdint>
#include <optional>

#include <troupe/error.hpp>

#include "common/wire/host_options.hpp"
#include "device_host/engine/engine.hpp"
#include "device_host/rank_line.hpp"
#include "device_host/replies.hpp"

namespace troupe::host {

/// True for an error after which the engine is good for nothing but its end.
[[nodiscard]] inline bool ends_the_device(Errc code) noexcept {
  return code == Errc::device_lost || code == Errc::device_failed;
}

/// What a device host does at present, and how it ends. The reactor's thread only.
class Life {
 public:
  enum class Mode {
    standby,  ///< context and handles are ready; it owns nothing, and the ring is not its own yet
    active,   ///< it issues commands
    paused,   ///< halted or quiesced: nothing is issued, nothing answered
    lost      ///< the context is dead; it waits to be replaced
  };

  /// The three outlive this.
  Life(RankLine& rank, Engine& engine, Replies& replies)
      : rank_(&rank), engine_(&engine), replies_(&replies) {}

  [[nodiscard]] Mode mode() const noexcept { return mode_; }
  [[nodiscard]] bool lost() const noexcept { return mode_ == Mode::lost; }
  /// Whether commands are issued and answered. Pauses if the rank has halted this host.
  bool active() {
    if (mode_ == Mode::active && replies_->halted()) mode_ = Mode::paused;
    return mode_ == Mode::active;
  }

  /// `halts`: PortHeader::halts as the rank names it.
  void promote(std::uint32_t halts) {
    mode_ = Mode::active;
    replies_->resume(halts);
  }
  void resume(std::uint32_t halts) {
    replies_->resume(halts);
    if (mode_ == Mode::paused) mode_ = Mode::active;
  }
  void pause() {
    if (mode_ == Mode::active) mode_ = Mode::paused;
  }
  /// The context is dead. Tells the rank, once.
  void lose(const Error& error);
  /// Loses the context if that is what the error says, and returns whether it is.
  bool lose_if_dead(const Result<void>& outcome);
  /// A collective has found its peers gone: pauses, and tells the rank.
  void break_communicator(const Error& error);

  /// The reactor is to return this exit status.
  void end(int status) { exit_status_ = status; }
  /// Nothing: it is to go on.
  [[nodiscard]] std::optional<int> exit_status() const {
    if (!exit_status_ && rank_->gone()) return wire::kExitOk;
    return exit_status_;
  }

 private:
  RankLine* rank_;
  Engine* engine_;
  Replies* replies_;
  Mode mode_ = Mode::standby;
  std::optional<int> exit_status_;
};

}  // namespace troupe::host
