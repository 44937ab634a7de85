#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/ipc/process.hpp"
#include "common/ipc/socket.hpp"
#include "common/keeper/job.hpp"
#include "common/links/links.hpp"
#include "keeper/arguments.hpp"
#include "keeper/council.hpp"
#include "keeper/estate.hpp"
#include "keeper/program.hpp"

namespace troupe::keeper {

inline constexpr int kExitUsage = 2;

/// A place of the job: starts its rank, or waits for one, and sits in the council of all keepers.
/// One thread.
class Keeper final : CouncilActions {
 public:
  explicit Keeper(Arguments arguments) : arguments_(std::move(arguments)) {}
  /// The exit status.
  int run();

 private:
  /// How this process ends.
  struct Ending {
    int status = 0;
    bool whole_job = false;  ///< the launcher is told to end all
    int signal = 0;          ///< this process dies of it, as its rank has
  };

  // CouncilActions
  void send(int place, const CouncilMessage& message) override;
  void seat(const Roster& roster) override;
  void keep_rank() override;
  void all_have_ended(int status) override;
  void end(int status, const std::string& why, CouncilActions::Ending ending) override;

  // The rank

  /// Starts the rank, or what waits for one at a spare place.
  void start();
  /// The process of the rank has waited for this.
  void seat_rank();
  /// Starts a process that waits for the end of the rank's.
  void raise_standby();
  void end_standby();
  /// It has ended before the rank has.
  void lose_standby();
  void listen_to_rank();
  void hear(const FromRank& said, UniqueFd fd);
  void tell_rank(const ToRank& message, int fd = -1);
  void watch_rank(TimePoint now);
  void pass_signals_on();
  /// The process of the rank has ended.
  void conclude();
  [[nodiscard]] bool may_start_again(int signal);
  void end_rank();

  // A rank for a spare place

  void take(int rank);
  /// Asks another place for what ranks have heard while they started.
  void ask_for_log(TimePoint now);
  void answer_log(int place);
  void hear_log(std::span<const std::byte> log);

  // Other keepers

  void hear_keepers();
  void let_them_hear(std::chrono::nanoseconds limit);
  /// Says what the job's status is to whoever has started the launcher, if that is asked for.
  static void tell_status(int status);
  int finish();
  [[noreturn]] void end_now();

  [[nodiscard]] bool has_rank() const noexcept { return job_.rank != Job::kSpare; }
  void set_state(RankState state, int status = 0);

  Arguments arguments_;
  UniqueFd listener_, signals_, start_;
  Job places_;  ///< as if every place were a rank
  Job job_;     ///< of the rank here
  std::optional<net::LinkHub> hub_;
  std::optional<net::Links> links_;
  std::optional<Council> council_;
  std::vector<Seat> seats_;  ///< by rank, as the rank here has been told

  ipc::ChildProcess rank_;
  ipc::Socket line_;
  ipc::ChildProcess refuge_;  ///< the keeper of the refuge beside this place
  Process standby_;           ///< takes the place of the rank's process when that ends
  bool is_replaceable_ = false;
  bool answers_ = false;  ///< the process of the rank has said something
  TimePoint heard_{};
  std::optional<TimePoint> pinged_;
  std::optional<FromRank> goodbye_;
  Estate estate_;  ///< of the rank here
  std::vector<TimePoint> deaths_;
  int passed_on_ = 0;  ///< the newest signal of the launcher's
  std::optional<TimePoint> asked_for_log_;
  int log_source_ = -1;  ///< the rank whose place has been asked

  TimePoint looked_{};
  std::optional<int> all_ended_;  ///< the job's status
  std::optional<Ending> ending_;
};

}  // namespace troupe::keeper
