// troupe-keeper PROGRAM NAME [ARGUMENT...]: starts PROGRAM, with NAME for its argv[0], as a rank of
// a job, and lives as long as it does. Launchers (mpirun, srun) start keepers; users do not: a
// program replaces itself by one with --on-rank-loss respawn.
//
// A launcher ends the job when a process dies that it has started itself. So that is this one: it
// speaks MPI, and hardly ever. Keepers tell one another where they are; their ranks speak TCP. A
// keeper passes on what the launcher sends (signals) and what becomes of its rank (the exit
// status).
//
// A rank that a signal ends is started again, once it has asked for that, with the same number.
//
// Exit status: the rank's; 2 if it cannot be started; 75 if it has died more often than it may.
#include <mpi.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/ipc/descriptors.hpp"
#include "common/ipc/process.hpp"
#include "common/ipc/socket.hpp"
#include "common/ipc/system_error.hpp"
#include "keeper/place.hpp"

namespace {

using namespace troupe;
using namespace troupe::keeper;

constexpr int kExitUsage = 2, kExitRequeue = 75;

/// Signals that a launcher sends, and that are for the rank.
constexpr int kPassedOn[] = {SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT, SIGTSTP};

/// The rank must not take itself for a process of the launcher's; it may read its number.
const std::vector<std::string> kLaunchersOwn = {"PMI_",
                                                "PMIX_",
                                                "PRTE_",
                                                "OMPI_MCA_ess",
                                                "OMPI_MCA_orte",
                                                "OMPI_MCA_pmix",
                                                "OMPI_FILE_LOCATION",
                                                "HYDI_"};

[[noreturn]] void end_without_rank(const Error& error) {
  std::fprintf(stderr, "troupe-keeper: %s\n", error.to_string().c_str());
  MPI_Abort(MPI_COMM_WORLD, kExitUsage);
  std::_Exit(kExitUsage);
}

template <class T>
T need(Result<T> result) {
  if (!result.ok()) end_without_rank(result.error());
  return std::move(*result);
}

/// All places, by rank. All keepers call it.
Job meet(int listener) {
  Job job;
  int size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  auto card = need(describe_place(listener));
  MPI_Comm node = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_rank(node, &card.local_rank);
  MPI_Comm_size(node, &card.local_size);
  card.node = job.rank;
  MPI_Bcast(&card.node, 1, MPI_INT, 0, node);
  MPI_Comm_free(&node);
  job.cards.resize(static_cast<std::size_t>(size));
  MPI_Allgather(&card, sizeof card, MPI_BYTE, job.cards.data(), sizeof card, MPI_BYTE,
                MPI_COMM_WORLD);
  if (::getrandom(job.cookie.data(), sizeof job.cookie, 0) != sizeof job.cookie)
    end_without_rank(ipc::system_error("getrandom"));
  MPI_Bcast(job.cookie.data(), static_cast<int>(job.cookie.size()), MPI_UINT64_T, 0,
            MPI_COMM_WORLD);
  return job;
}

/// Some versions of MPI wait in MPI_Finalize for ever, rarely (Open MPI's issue 10117).
void finalise(const FromRank& last) {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  std::thread clock;
  const std::chrono::nanoseconds patience(last.time_ns);
  if (patience.count() > 0) {
    clock = std::thread([&] {
      std::unique_lock lock(mutex);
      if (changed.wait_for(lock, patience, [&] { return done; })) return;
      std::fprintf(stderr,
                   "troupe-keeper: MPI_Finalize has not returned for %lld s after the end of all "
                   "ranks: this process ends without it\n",
                   static_cast<long long>(
                       std::chrono::duration_cast<std::chrono::seconds>(patience).count()));
      std::fflush(nullptr);
      std::_Exit(last.status);
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

class Keeper {
 public:
  Keeper(std::string program, std::vector<std::string> arguments)
      : program_(std::move(program)), arguments_(std::move(arguments)) {}

  int run() {
    listener_ = need(listen_anywhere());
    job_ = meet(listener_.get());
    block_signals();
    start_.reset(::memfd_create("troupe-start", MFD_CLOEXEC));
    if (!start_) end_without_rank(ipc::system_error("memfd_create"));
    start();
    for (;;) {
      pollfd fds[] = {
          {line_.fd(), POLLIN, 0}, {signals_.get(), POLLIN, 0}, {rank_.pidfd(), POLLIN, 0}};
      if (::poll(fds, std::size(fds), -1) < 0) continue;
      if (fds[0].revents != 0) listen_to_rank();
      if (fds[1].revents != 0) pass_signals_on();
      if (fds[2].revents == 0) continue;
      if (const auto status = conclude()) return *status;
    }
  }

 private:
  void block_signals() {
    sigset_t passed;
    sigemptyset(&passed);
    for (const int signal : kPassedOn) sigaddset(&passed, signal);
    ::sigprocmask(SIG_BLOCK, &passed, nullptr);
    signals_.reset(::signalfd(-1, &passed, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signals_) end_without_rank(ipc::system_error("signalfd"));
  }

  void start() {
    auto [here, there] = need(ipc::Socket::make_pair());
    const auto job = need(write_job(job_));
    ::setenv(kEnvironment, "1", 1);
    rank_ = need(ipc::ChildProcess::spawn(
        {.program = program_,
         .arguments = arguments_,
         .strip_environment = kLaunchersOwn,
         .descriptors = {there.fd(), listener_.get(), job.get(), start_.get()},
         .leads_group = false,
         .named = true}));
    line_ = std::move(here);
  }

  void listen_to_rank() {
    auto packet = line_.receive();
    if (!packet.ok()) return line_.close();  // its end is told by the pidfd
    if (!*packet || (*packet)->bytes.size() != sizeof(FromRank)) return;
    FromRank said;
    std::memcpy(&said, (*packet)->bytes.data(), sizeof said);
    switch (said.kind) {
      case FromRank::Kind::goodbye: goodbye_ = said; break;
      case FromRank::Kind::abort: MPI_Abort(MPI_COMM_WORLD, said.status); break;
      case FromRank::Kind::respawn: respawns_ = said; break;
      case FromRank::Kind::leave: respawns_.reset(); break;
    }
  }

  void pass_signals_on() {
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
      passed_on_ = static_cast<int>(info.ssi_signo);
      ::kill(rank_.pid(), passed_on_);
    }
  }

  /// True if the rank may be started again after this signal.
  bool may_start_again(int signal) {
    if (!respawns_ || signal == passed_on_) return false;
    const auto now = std::chrono::steady_clock::now();
    std::erase_if(deaths_, [&](const auto& death) {
      return now - death > std::chrono::nanoseconds(respawns_->time_ns);
    });
    deaths_.push_back(now);
    if (deaths_.size() <= static_cast<std::size_t>(respawns_->status)) return true;
    std::fprintf(
        stderr,
        "troupe-keeper: rank %d has died of signal %d (%s), more often than restart-budget = "
        "%d allows: the job ends\n",
        job_.rank, signal, ::strsignal(signal), respawns_->status);
    std::fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, kExitRequeue);
    std::_Exit(kExitRequeue);
  }

  /// The rank has ended. Nothing: another one has been started in its place.
  std::optional<int> conclude() {
    while (line_.fd() >= 0 && !goodbye_) {
      pollfd more{line_.fd(), POLLIN, 0};
      if (::poll(&more, 1, 0) <= 0) break;
      listen_to_rank();
    }
    siginfo_t end{};
    ::waitid(P_PID, static_cast<id_t>(rank_.pid()), &end, WEXITED | WNOWAIT);
    (void)rank_.reap();
    if (end.si_code != CLD_EXITED) {
      if (!may_start_again(end.si_status)) die_of(end.si_status);
      ++job_.incarnation;
      start();
      return std::nullopt;
    }
    if (goodbye_) {
      finalise(*goodbye_);
      return end.si_status;
    }
    // As a program that ends without MPI_Finalize.
    std::_Exit(end.si_status);
  }

  std::string program_;
  std::vector<std::string> arguments_;
  UniqueFd listener_, signals_, start_;
  Job job_;
  ipc::ChildProcess rank_;
  ipc::Socket line_;
  std::optional<FromRank> goodbye_;
  std::optional<FromRank> respawns_;  ///< how often the rank may be started again
  std::vector<std::chrono::steady_clock::time_point> deaths_;
  int passed_on_ = 0;  ///< the newest signal of the launcher's
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: troupe-keeper PROGRAM NAME [ARGUMENT...]\n");
    return kExitUsage;
  }
  ipc::fill_standard_descriptors();
  std::string program = argv[1];
  std::vector<std::string> arguments(argv + 2, argv + argc);
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  return Keeper(std::move(program), std::move(arguments)).run();
}
