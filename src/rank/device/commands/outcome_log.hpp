#pragma once

#include <atomic>
#include <compare>
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <troupe/error.hpp>
#include <troupe/future.hpp>

namespace troupe::rank_process {

/// A point in a rank's program: behind the command with this ticket, and behind so many fences.
struct ProgramPlace {
  std::uint64_t ticket = 0;
  std::uint64_t fences = 0;
  friend auto operator<=>(const ProgramPlace&, const ProgramPlace&) = default;
};

/// Which commands of a rank's program have failed, and where in it they stood; and the fences of
/// the program: points for which somebody waits until everything before them has ended.
///
/// Answers come in any order. What counts is the order of the program: a fence holds if nothing
/// before it has failed, whenever the failure becomes known.
///
/// Three kinds of things fail: commands, at the place of their ticket; submissions that are
/// refused; and requests to other ranks, which have no ticket here, at the place where they were
/// made. A failure is an *error*, of which the program must hear, or a *loss* by a fault, which
/// recovery deals with: a loss only breaks the fences behind it. What a loss has spoilt (stale,
/// peer_lost) is an error too, until the program says that it knows of the loss.
///
/// Any thread. Resolves nothing itself: what has become ready is handed out, to be resolved without
/// locks.
class OutcomeLog {
 public:
  using State = detail::StatePtr<detail::State<void>>;
  using Ready = std::vector<std::pair<State, Result<void>>>;
  struct Request {
    ProgramPlace place;
    std::uint64_t serial;
    friend auto operator<=>(const Request&, const Request&) = default;
  };

  /// The command with this ticket has failed, or was lost by a fault. False if the program has gone
  /// back to before it, and need not hear of it.
  bool command_failed(std::uint64_t ticket, const Error& error) {
    return note({ticket, 0}, error, is_loss(error.code));
  }
  void command_lost(std::uint64_t ticket, const Error& error) {
    (void)note({ticket, 0}, error, true);
  }
  /// Something was refused, behind the command with this ticket. Its place.
  ProgramPlace refused(std::uint64_t submitted, const Error& error);
  /// What recovery deals with.
  [[nodiscard]] static bool is_loss(Errc code) noexcept;
  /// What fails because of a loss elsewhere.
  [[nodiscard]] static bool is_spoilt(Errc code) noexcept {
    return code == Errc::stale || code == Errc::peer_lost;
  }

  /// A request behind the command with this ticket; fences wait for its end.
  Request begin_request(std::uint64_t submitted);
  /// False as of command_failed().
  bool end_request(const Request& request, const Result<void>& outcome);

  /// Everything up to now, the newest command being `submitted`. `state` is handed out by ready()
  /// once all of it has ended.
  ProgramPlace add_fence(std::uint64_t submitted, State state);
  /// The fences before which everything has ended; all commands up to `retired` have.
  Ready ready(std::uint64_t retired);

  /// The program has gone back to `place`, by way of commands up to `submitted`: what failed or
  /// will fail in between is done again, and no loss matters any more.
  void forget_since(ProgramPlace place, std::uint64_t submitted);

  /// The program knows of the losses so far and of what they have spoilt, and deals with it.
  void forgive_losses();

  /// The error that is first in the program among those since the last call. Fences behind it that
  /// are waiting fail with it all the same.
  std::optional<Error> take_error();

 private:
  struct Failure {
    ProgramPlace place;
    Error error;
  };
  struct Fence {
    ProgramPlace place;
    State state;
    std::optional<Error> failed{};  ///< by an error that was taken since
  };
  bool note(ProgramPlace place, const Error& error, bool loss);
  [[nodiscard]] bool forgotten(ProgramPlace place) const {
    return place > forgotten_from_ && place <= forgotten_to_;
  }
  [[nodiscard]] Result<void> before(ProgramPlace place) const;

  std::mutex mutex_;
  std::uint64_t fences_added_ = 0;
  std::uint64_t next_request_ = 0;
  std::optional<Failure> error_, spoilt_, loss_;  ///< the first in the program
  std::set<Request> requests_;                    ///< under way
  std::vector<Fence> fences_;                     ///< in the order of the program
  std::atomic<bool> any_fence_{false};            ///< there are some, or are about to be
  ProgramPlace forgotten_from_, forgotten_to_;
};

}  // namespace troupe::rank_process
