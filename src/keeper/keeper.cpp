#include "keeper/keeper.hpp"

#include <mpi.h>

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>

#include "common/ipc/system_error.hpp"
#include "keeper/meeting.hpp"
#include "keeper/place.hpp"
#include "keeper/program.hpp"

namespace troupe::keeper {
namespace {

/// Signals that a launcher sends, and that are for the rank.
constexpr int kPassedOn[] = {SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT, SIGTSTP};

/// Set by scripts/troupe-run: it wants to hear the job's status, which launchers that let a job
/// outlive its nodes do not tell.
constexpr const char* kTellStatus = "LIBTROUPE_TELL_STATUS";

// Tags of messages between keepers.
constexpr std::uint32_t kCouncil = 0, kAskForLog = 1, kLog = 2;

constexpr auto kLastWords = std::chrono::seconds(1);  ///< to be taken by other keepers
/// With MPI_Finalize, at a place whose rank has not said how long.
constexpr auto kPatience = std::chrono::seconds(60);

void say(const std::string& line) {
  std::fprintf(stderr, "troupe-keeper: %s\n", line.c_str());
  std::fflush(stderr);
}

/// Some versions of MPI wait in MPI_Finalize for ever, rarely (Open MPI's issue 10117).
void finalise(std::chrono::nanoseconds patience, int status) {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  std::thread clock;
  if (patience.count() > 0) {
    clock = std::thread([&] {
      std::unique_lock lock(mutex);
      if (changed.wait_for(lock, patience, [&] { return done; })) return;
      say("MPI_Finalize has not returned for " +
          std::to_string(std::chrono::duration_cast<std::chrono::seconds>(patience).count()) +
          " s after the end of all ranks: this process ends without it");
      std::_Exit(status);
    });
  }
  MPI_Finalize();
  {
    const std::lock_guard lock(mutex);
    done = true;
  }
  changed.notify_one();
  if (clock.joinable()) clock.join();
}

/// Ends as the rank has: by the same signal, without a core of its own.
[[noreturn]] void die_of(int signal) {
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  ::signal(signal, SIG_DFL);
  sigset_t all;
  sigemptyset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  ::kill(::getpid(), signal);
  std::_Exit(128 + signal);
}

/// There was such a process, and it has ended.
bool has_ended(const ipc::ChildProcess& child) {
  pollfd end{child.pidfd(), POLLIN, 0};
  return child.pid() > 0 && ::poll(&end, 1, 0) > 0;
}

UniqueFd block_signals() {
  sigset_t passed;
  sigemptyset(&passed);
  for (const int signal : kPassedOn) sigaddset(&passed, signal);
  ::sigprocmask(SIG_BLOCK, &passed, nullptr);
  UniqueFd made(::signalfd(-1, &passed, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!made) end_before_start(ipc::system_error("signalfd"));
  return made;
}

}  // namespace

int Keeper::run() {
  auto arrived = arrive(arguments_);
  places_ = std::move(arrived.places);
  listener_ = std::move(arrived.here.rank);
  refuge_ = std::move(arrived.refuge);
  signals_ = block_signals();
  start_.reset(::memfd_create("troupe-start", MFD_CLOEXEC));
  if (!start_) end_before_start(ipc::system_error("memfd_create"));

  const int refuges = arguments_.refuges != 0 ? places_.size() / 2 : 0;
  const int place = places_.rank, ranks = places_.size() - refuges - arguments_.spares;
  auto keepers = places_;
  for (auto& card : keepers.cards) card.port = card.keeper_port;
  hub_.emplace(std::move(keepers), std::move(arrived.here.keeper));
  links_.emplace(*hub_, net::LinkChannel::world);
  council_.emplace(Council::Options{.place = place,
                                    .places = places_.size(),
                                    .ranks = ranks,
                                    .refuges = refuges,
                                    .silence = arguments_.silence,
                                    .wait = arguments_.wait},
                   static_cast<CouncilActions&>(*this));
  job_ = places_;
  job_.own = places_.card();
  job_.cards.resize(static_cast<std::size_t>(ranks));
  seats_ = council_->roster().seats;
  if (place >= ranks) job_.rank = Job::kSpare;
  looked_ = SteadyClock::time();
  council_->begin(looked_);
  if (arguments_.beside == 0) start();
  set_state(has_rank() ? RankState::starting : RankState::none);
  for (;;) {
    const auto now = SteadyClock::time();
    if (now - looked_ >= council_->tick_every()) {
      watch_rank(now);
      council_->tick(now);
      looked_ = now;
    }
    if (ending_) end_now();
    if (all_ended_) return finish();
    pollfd fds[] = {{line_.fd(), POLLIN, 0},
                    {signals_.get(), POLLIN, 0},
                    {rank_.pidfd(), POLLIN, 0},
                    {standby_.child.pidfd(), POLLIN, 0},
                    {links_->fd(), POLLIN, 0}};
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(
        std::max(looked_ + council_->tick_every() - now, std::chrono::nanoseconds(0)));
    if (::poll(fds, std::size(fds), static_cast<int>(wait.count())) < 0) continue;
    if (fds[0].revents != 0) listen_to_rank();
    if (fds[1].revents != 0) pass_signals_on();
    if (fds[2].revents != 0) conclude();
    if (fds[3].revents != 0) lose_standby();
    hear_keepers();
  }
}

// The rank

void Keeper::start() {
  if (has_ended(standby_.child)) lose_standby();
  const bool waited = standby_.child.pid() > 0;
  job_.slabs = estate_.slabs();
  auto next = waited ? std::exchange(standby_, {})
                     : launch(arguments_, job_, {listener_.get(), start_.get(), estate_.file()});
  rank_ = std::move(next.child);
  line_ = std::move(next.line);
  answers_ = false;
  pinged_.reset();
  if (waited) return seat_rank();
  estate_.give(line_);
}

void Keeper::seat_rank() {
  job_.slabs = estate_.slabs();
  const auto job = write_job(job_);
  if (!job.ok()) return end(kExitUsage, job.error().to_string(), CouncilActions::Ending::job);
  tell_rank({.kind = ToRank::Kind::seat}, job->get());
  estate_.give(line_);
}

void Keeper::raise_standby() {
  if (arguments_.standby == 0 || arguments_.beside != 0 || standby_.child.pid() > 0) return;
  auto waiting = job_;
  waiting.rank = Job::kSpare;
  waiting.slabs = 0;
  standby_ = launch(arguments_, waiting, {listener_.get(), start_.get(), estate_.file()});
}

void Keeper::end_standby() {
  if (standby_.child.pid() > 0) {
    standby_.child.kill();
    (void)standby_.child.reap();
  }
  standby_ = {};
}

void Keeper::lose_standby() {
  say("the process that waits for the end of rank " + std::to_string(job_.rank) + " has ended (" +
      standby_.child.reap() + "): the rank is started without it if it has to be");
  standby_ = {};
}

void Keeper::set_state(RankState state, int status) {
  council_->set_state(state, status, SteadyClock::time());
}

void Keeper::listen_to_rank() {
  auto packet = line_.receive();
  if (!packet.ok()) return line_.close();  // its end is told by the pidfd
  if (!*packet || (*packet)->bytes.size() != sizeof(FromRank)) return;
  FromRank said;
  std::memcpy(&said, (*packet)->bytes.data(), sizeof said);
  answers_ = true;
  heard_ = SteadyClock::time();
  pinged_.reset();
  hear(said, std::move((*packet)->fd));
}

void Keeper::hear(const FromRank& said, UniqueFd fd) {
  switch (said.kind) {
    case FromRank::Kind::goodbye: goodbye_ = said; break;
    case FromRank::Kind::abort: council_->abort(said.status, "", heard_); break;
    case FromRank::Kind::respawn:
      is_replaceable_ = true;
      job_.cores = said.cores;
      set_state(RankState::replaceable);
      raise_standby();
      break;
    case FromRank::Kind::leave:
      is_replaceable_ = false;
      end_standby();
      set_state(RankState::irreplaceable);
      break;
    case FromRank::Kind::alive: break;
    case FromRank::Kind::release: council_->release(heard_); break;
    case FromRank::Kind::slab: estate_.keep(job_.incarnation, said, std::move(fd)); break;
    case FromRank::Kind::drop: estate_.drop(job_.incarnation, said.region); break;
    case FromRank::Kind::taken: estate_.drop_before(job_.incarnation); break;
  }
}

void Keeper::tell_rank(const ToRank& message, int fd) {
  if (line_.fd() >= 0) (void)line_.send(std::as_bytes(std::span(&message, 1)), fd);
}

/// A rank that is stopped, or has no thread left that runs, would be waited for for ever.
void Keeper::watch_rank(TimePoint now) {
  if (asked_for_log_ && now - *asked_for_log_ > arguments_.wait) ask_for_log(now);
  if (!is_replaceable_ || !answers_ || goodbye_) return;
  if (now - looked_ > arguments_.silence / 2) {  // it is this process that was stopped
    heard_ = now;
    pinged_.reset();
  }
  if (!pinged_ && now - heard_ >= arguments_.silence / 4) {
    pinged_ = now;
    tell_rank({.kind = ToRank::Kind::ping});
  }
  if (now - heard_ < arguments_.silence) return;
  say("rank " + std::to_string(job_.rank) + " has not answered for " +
      std::to_string(std::chrono::duration<double>(now - heard_).count()) +
      " s: its process is ended (--rank-silence)");
  rank_.kill();
  answers_ = false;
}

void Keeper::pass_signals_on() {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
    passed_on_ = static_cast<int>(info.ssi_signo);
    if (rank_.pid() > 0) ::kill(rank_.pid(), passed_on_);
  }
}

bool Keeper::may_start_again(int signal) {
  if (!is_replaceable_ || signal == passed_on_) return false;
  const auto now = SteadyClock::time();
  std::erase_if(deaths_, [&](TimePoint death) { return now - death > arguments_.window; });
  deaths_.push_back(now);
  const auto starts = job_.incarnation % kMostStarts + 1;
  if (deaths_.size() <= static_cast<std::size_t>(arguments_.budget) && starts < kMostStarts)
    return true;
  council_->abort(Council::kExitRequeue,
                  "rank " + std::to_string(job_.rank) + " has died of signal " +
                      std::to_string(signal) + " (" + ::strsignal(signal) +
                      "), more often than restart-budget = " + std::to_string(arguments_.budget) +
                      " allows: the job ends",
                  now);
  return false;
}

void Keeper::conclude() {
  while (line_.fd() >= 0 && !goodbye_) {
    pollfd more{line_.fd(), POLLIN, 0};
    if (::poll(&more, 1, 0) <= 0) break;
    listen_to_rank();
  }
  siginfo_t end{};
  ::waitid(P_PID, static_cast<id_t>(rank_.pid()), &end, WEXITED | WNOWAIT);
  (void)rank_.reap();
  rank_ = ipc::ChildProcess();
  line_.close();
  if (!has_rank()) return;  // it has waited for one: another will be started when there is one
  const int status = end.si_status;
  if (end.si_code != CLD_EXITED) {
    if (may_start_again(status)) {
      ++job_.incarnation;
      ++job_.deaths;
      council_->note_death();
      return start();
    }
    if (ending_) return;
    council_->abort(128 + status, "", SteadyClock::time());
    ending_ = Ending{.status = 128 + status, .signal = status};
    return;
  }
  if (goodbye_) {
    goodbye_->status = status;
    return set_state(RankState::ended, status);
  }
  // As a program that ends without MPI_Finalize.
  council_->abort(status, "", SteadyClock::time());
  ending_ = Ending{.status = status};
}

void Keeper::end_rank() {
  end_standby();
  if (rank_.pid() > 0) {
    rank_.kill();
    (void)rank_.reap();
  }
  rank_ = ipc::ChildProcess();
  line_.close();
  estate_.clear();
  is_replaceable_ = false;
  goodbye_.reset();
}

// Places

void Keeper::seat(const Roster& roster) {
  const int mine = roster.rank_at(places_.rank);
  for (std::size_t rank = 0; rank < seats_.size(); ++rank) {
    const auto& seat = roster.seats[rank];
    if (seats_[rank] == seat) continue;
    seats_[rank] = seat;
    job_.cards[rank] = places_.cards[static_cast<std::size_t>(seat.place)];
    job_.cards[rank].moves = seat.moves;
    if (static_cast<int>(rank) == mine || !has_rank()) continue;
    tell_rank({.kind = ToRank::Kind::move,
               .rank = static_cast<std::int32_t>(rank),
               .card = job_.cards[rank]});
  }
  if (has_rank() && mine != job_.rank) {
    end_rank();
    job_.rank = Job::kSpare;
    set_state(RankState::none);
  } else if (!has_rank() && mine >= 0) {
    take(mine);
  }
}

void Keeper::take(int rank) {
  const auto& seat = seats_[static_cast<std::size_t>(rank)];
  job_.rank = rank;
  job_.incarnation = incarnation_of(seat.moves, 0);
  job_.deaths = seat.deaths;
  is_replaceable_ = true;
  say("rank " + std::to_string(rank) + " goes on here, on " +
      places_.cards[static_cast<std::size_t>(places_.rank)].host.data());
  set_state(RankState::replaceable);
  ask_for_log(SteadyClock::time());
}

void Keeper::ask_for_log(TimePoint now) {
  const int ranks = static_cast<int>(seats_.size());
  asked_for_log_.reset();
  if (ranks == 1) return hear_log({});  // there is nobody who could have heard anything
  do {
    log_source_ = (log_source_ + 1) % ranks;
  } while (log_source_ == job_.rank);
  asked_for_log_ = now;
  links_->send(seats_[static_cast<std::size_t>(log_source_)].place, {.tag = kAskForLog},
               std::vector<std::byte>());
}

void Keeper::answer_log(int place) {
  if (!has_rank() || asked_for_log_) return;
  struct stat about {};
  if (::fstat(start_.get(), &about) != 0) return;
  std::vector<std::byte> log(static_cast<std::size_t>(about.st_size));
  if (::pread(start_.get(), log.data(), log.size(), 0) != about.st_size) return;
  links_->send(place, {.tag = kLog}, std::move(log));
}

void Keeper::hear_log(std::span<const std::byte> log) {
  asked_for_log_.reset();
  if (::pwrite(start_.get(), log.data(), log.size(), 0) != static_cast<ssize_t>(log.size()))
    return end(kExitUsage, ipc::system_error("pwrite").to_string(), CouncilActions::Ending::job);
  if (rank_.pid() <= 0) return start();
  seat_rank();
}

void Keeper::keep_rank() {
  tell_rank({.kind = ToRank::Kind::keep});
}

// Other keepers

void Keeper::send(int place, const CouncilMessage& message) {
  links_->send(place, {.tag = kCouncil}, encode(message));
}

void Keeper::hear_keepers() {
  const auto hear = [this](int place, const net::Links::Head& head, std::vector<std::byte> bytes,
                           std::byte*) {
    if (head.tag == kAskForLog) return answer_log(place);
    if (head.tag == kLog) {
      if (asked_for_log_) hear_log(bytes);
      return;
    }
    const auto message = decode_council_message(bytes, places_.size(), job_.size());
    if (!message.ok()) return say(message.error().message);
    council_->receive(place, *message, SteadyClock::time());
  };
  const auto gone = [this](int place) {
    links_->forget(place);
    council_->closed(place, SteadyClock::time());
  };
  while (links_->look({.arrived = hear, .gone = gone}) && !ending_) {
  }
}

void Keeper::all_have_ended(int status) {
  all_ended_ = status;
}

void Keeper::end(int status, const std::string& why, CouncilActions::Ending ending) {
  if (!why.empty()) {
    const auto here = places_.cards[static_cast<std::size_t>(places_.rank)].host.data();
    say(std::string(here) + ": " + why);
  }
  ending_ = Ending{.status = status, .whole_job = ending == CouncilActions::Ending::job};
}

void Keeper::let_them_hear(std::chrono::nanoseconds limit) {
  const auto until = SteadyClock::time() + limit;
  while (!links_->delivered() && SteadyClock::time() < until) {
    if (!links_->look({.arrived = [](int, const net::Links::Head&, const std::vector<std::byte>&,
                                     std::byte*) {}}))
      links_->wait(std::chrono::milliseconds(1));
  }
}

void Keeper::tell_status(int status) {
  if (std::getenv(kTellStatus) != nullptr) say("job status " + std::to_string(status));
}

int Keeper::finish() {
  const bool leads = council_->leads();
  let_them_hear(kLastWords);
  const auto last =
      goodbye_.value_or(FromRank{.time_ns = std::chrono::nanoseconds(kPatience).count()});
  end_rank();
  if (leads) tell_status(*all_ended_);
  if (arguments_.beside != 0) return last.status;
  refuge_ = {};  // its rank has ended
  // MPI would wait for those that are lost.
  if (!council_->roster().lost.empty()) std::_Exit(last.status);
  finalise(std::chrono::nanoseconds(last.time_ns), last.status);
  return last.status;
}

void Keeper::end_now() {
  end_rank();
  let_them_hear(kLastWords);
  const auto& [status, whole_job, signal] = *ending_;
  if (whole_job || signal != 0) tell_status(status);
  if (arguments_.beside != 0) std::_Exit(status);  // the keeper beside it hears of it as all do
  if (signal != 0) die_of(signal);
  if (whole_job) MPI_Abort(MPI_COMM_WORLD, status);
  std::_Exit(status);
}

}  // namespace troupe::keeper
