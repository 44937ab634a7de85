#pragma once

#include <cstdint>
#include <optional>

#include <troupe/ids.hpp>

#include "rank/device/commands/port_shared.hpp"

namespace troupe::rank_process {

/// Whether submissions of the program pass at all. Any thread, but for what says that it needs the
/// lock of the submissions.
class Gate {
 public:
  explicit Gate(PortShared& shared) : shared_(&shared) {}

  /// Submissions fail with this error until the gate is opened. The thread for which `Passage` is
  /// in force still passes.
  void close(const Error& error);
  void open();
  /// No submission of the program passes: the gate is closed, or no host will ever serve.
  [[nodiscard]] bool closed() const;
  /// Collectives of other epochs, and what was asked for in them from elsewhere, fail with
  /// world_reformed; 0: all do.
  void set_epoch(Epoch epoch);

  /// While it lives, this thread's submissions pass a closed gate: verification and rollback. Where
  /// there is no room for one of them, it gets the next.
  class Passage {
   public:
    Passage() { ++depth_; }
    ~Passage() { --depth_; }
    Passage(const Passage&) = delete;
    Passage& operator=(const Passage&) = delete;
    static bool open() { return depth_ > 0; }

   private:
    static thread_local int depth_;
  };

  // With the lock of the submissions.

  /// Why nothing will ever be served; nothing: it will.
  [[nodiscard]] const std::optional<Error>& ended() const noexcept { return ended_; }
  /// The first error counts.
  void end(const Error& error) {
    if (!ended_) ended_ = error;
  }
  void begin_again() { ended_.reset(); }
  /// Why the program's submissions do not pass.
  [[nodiscard]] const std::optional<Error>& shut() const noexcept { return shut_; }
  /// Whether the calling thread may take room, of which a passing one may be in want.
  [[nodiscard]] bool is_its_turn() const { return Passage::open() || !passage_waits_; }
  /// The calling thread has found no room, or needs none any more.
  void note_wait(bool waits) {
    if (Passage::open()) passage_waits_ = waits;
  }

 private:
  PortShared* shared_;
  std::optional<Error> shut_;
  std::optional<Error> ended_;
  bool passage_waits_ = false;  ///< for room, see Passage
};

}  // namespace troupe::rank_process
