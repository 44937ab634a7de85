#include "rank/net/links/keeper_line.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "common/ipc/socket.hpp"

namespace troupe::rank_process {
namespace {

constexpr int kExitFailure = 1, kExitUsage = 2;  // as runtime.hpp has them

struct FromKeeper {
  keeper::Job job;
  ipc::Socket line;
  UniqueFd listener;
  UniqueFd start;
  UniqueFd estate;
  std::vector<KeptSlab> slabs = {};
};

UniqueFd inherited(int fd) {
  (void)::fcntl(fd, F_SETFD, FD_CLOEXEC);
  return UniqueFd(fd);
}

template <class T>
T need(Result<T> result) {
  if (result.ok()) return std::move(*result);
  std::fprintf(stderr, "troupe: %s\n", result.error().message.c_str());
  std::_Exit(kExitUsage);
}

struct Told {
  keeper::ToRank message;
  UniqueFd fd;
};

/// The next message. nullopt: there is none now. Ends the process once the keeper has gone.
std::optional<Told> next(const ipc::Socket& line) {
  auto packet = line.receive();
  if (!packet.ok()) std::_Exit(kExitFailure);
  Told told;
  if (!*packet || (*packet)->bytes.size() != sizeof told.message) return std::nullopt;
  std::memcpy(&told.message, (*packet)->bytes.data(), sizeof told.message);
  told.fd = std::move((*packet)->fd);
  return told;
}

std::vector<KeptSlab> take(const ipc::Socket& line, std::uint32_t count) {
  std::vector<KeptSlab> slabs;
  while (slabs.size() < count) {
    pollfd readable{line.fd(), POLLIN, 0};
    if (::poll(&readable, 1, -1) < 0) continue;  // a signal
    auto told = next(line);
    if (told && told->message.kind == keeper::ToRank::Kind::slab)
      slabs.push_back({told->message.incarnation, told->message.region, told->message.bytes,
                       std::move(told->fd)});
  }
  return slabs;
}

/// Until there is a rank for this process.
keeper::Job wait_for_seat(const ipc::Socket& line) {
  for (;;) {
    pollfd readable{line.fd(), POLLIN, 0};
    if (::poll(&readable, 1, -1) < 0) continue;  // a signal
    const auto told = next(line);
    if (told && told->message.kind == keeper::ToRank::Kind::seat)
      return need(keeper::read_job(told->fd.get()));
  }
}

/// Once in the life of the process: children that it starts have no keeper.
std::optional<FromKeeper>& from_keeper() {
  static std::optional<FromKeeper> given = []() -> std::optional<FromKeeper> {
    if (std::getenv(keeper::kEnvironment) == nullptr) return std::nullopt;
    ::unsetenv(keeper::kEnvironment);
    auto job = need(keeper::read_job(keeper::kJob));
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    pollfd line{keeper::kLine, 0, 0};
    if (::poll(&line, 1, 0) > 0) std::_Exit(kExitFailure);  // the keeper was gone before that
    ::close(keeper::kJob);
    FromKeeper made{std::move(job), ipc::Socket(inherited(keeper::kLine)),
                    inherited(keeper::kListener), inherited(keeper::kStart),
                    inherited(keeper::kEstate)};
    made.slabs = take(made.line, made.job.slabs);
    return made;
  }();
  return given;
}

}  // namespace

bool KeeperLine::is_there() {
  return from_keeper().has_value();
}

const keeper::Job& KeeperLine::place() {
  return from_keeper()->job;
}

const keeper::Job& KeeperLine::job() {
  auto& given = *from_keeper();
  if (given.job.rank == keeper::Job::kSpare) {
    given.job = wait_for_seat(given.line);
    given.slabs = take(given.line, given.job.slabs);
  }
  return given.job;
}

UniqueFd KeeperLine::listener() {
  return UniqueFd(::fcntl(from_keeper()->listener.get(), F_DUPFD_CLOEXEC, 3));
}

UniqueFd KeeperLine::start_log() {
  return UniqueFd(::fcntl(from_keeper()->start.get(), F_DUPFD_CLOEXEC, 3));
}

void KeeperLine::tell(const keeper::FromRank& what, int fd) {
  (void)from_keeper()->line.send(std::as_bytes(std::span(&what, 1)), fd);
}

std::vector<KeptSlab> KeeperLine::take_slabs() {
  return std::exchange(from_keeper()->slabs, {});
}

int KeeperLine::estate() {
  return from_keeper()->estate.get();
}

KeeperLine::KeeperLine(net::LinkHub& hub)
    : hub_(&hub), stop_(ipc::Doorbell::create().take()), thread_([this] { run(); }) {}

KeeperLine::~KeeperLine() {
  stop_.ring();
  thread_.join();
}

void KeeperLine::release(std::function<void()> kept) {
  {
    const std::lock_guard lock(mutex_);
    kept_ = std::move(kept);
  }
  tell({.kind = keeper::FromRank::Kind::release});
}

void KeeperLine::run() {
  const auto& line = from_keeper()->line;
  for (;;) {
    pollfd fds[] = {{stop_.fd(), POLLIN, 0}, {line.fd(), POLLIN, 0}};
    if (::poll(fds, std::size(fds), -1) < 0) continue;
    if (fds[0].revents != 0) return;
    const auto told = next(line);
    if (!told) continue;
    const auto& message = told->message;
    switch (message.kind) {
      case keeper::ToRank::Kind::ping: tell({.kind = keeper::FromRank::Kind::alive}); break;
      case keeper::ToRank::Kind::seat:
      case keeper::ToRank::Kind::slab: break;  // at the begin only
      case keeper::ToRank::Kind::move:
        if (message.rank >= 0 && message.rank < hub_->size())
          hub_->move(message.rank, message.card);
        break;
      case keeper::ToRank::Kind::keep: {
        std::function<void()> kept;
        {
          const std::lock_guard lock(mutex_);
          kept = std::exchange(kept_, nullptr);
        }
        if (kept) kept();
        break;
      }
    }
  }
}

}  // namespace troupe::rank_process
