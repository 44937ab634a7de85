#include "rank/net/mpi_transport.hpp"

#include <sys/prctl.h>

#include <algorithm>
#include <list>

#include "common/core/continuations.hpp"
#include "common/ipc/doorbell.hpp"
#include "rank/net/communicators.hpp"

namespace troupe::rank_process {

namespace {

constexpr int kMessage = 0, kAreYouThere = 1, kHere = 2;  ///< tags; only messages have contents

}  // namespace

/// See watch().
struct MpiTransport::Watch {
  using Time = std::chrono::steady_clock::time_point;

  std::chrono::nanoseconds patience;
  std::function<void(const std::vector<int>&, bool)> lost;
  std::vector<Time> heard;  ///< by rank
  Time asked{};
  Time found{};  ///< when some were lost
  int told = 0;
};

/// The thread's own.
struct MpiTransport::Traffic {
  struct InFlight {
    std::vector<std::byte> bytes;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  MPI_Comm communicator;
  std::list<InFlight> in_flight{};
  Watch* watch = nullptr;

  void send(int rank, int tag, std::vector<std::byte> bytes) {
    auto& flight = in_flight.emplace_back(InFlight{std::move(bytes)});
    MPI_Isend(flight.bytes.data(), static_cast<int>(flight.bytes.size()), MPI_BYTE, rank, tag,
              communicator, &flight.request);
  }
};

MpiTransport::MpiTransport(MpiSession& session, Channel channel, Receiver receiver)
    : session_(&session),
      channel_(channel),
      receiver_(std::move(receiver)),
      thread_([this] { run(); }) {}

MpiTransport::~MpiTransport() {
  leave();
}

void MpiTransport::leave() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

/// Puts a message behind the last one that waits for its turn, if that goes to the same rank: on
/// the way they are one, which costs MPI as much as each of them. With mutex_ held.
bool MpiTransport::join(int rank, std::span<const std::byte> bytes) {
  if (channel_ != Channel::actors || outgoing_.empty()) return false;
  auto& last = outgoing_.back();
  if (last.rank != rank || last.bytes.size() + bytes.size() > kJoined) return false;
  last.bytes.insert(last.bytes.end(), bytes.begin(), bytes.end());
  return true;
}

void MpiTransport::send(int rank, std::vector<std::byte> bytes) {
  {
    const std::lock_guard lock(mutex_);
    if (join(rank, bytes)) return;
    outgoing_.push_back({rank, std::move(bytes)});
  }
  wake_.notify_one();
}

void MpiTransport::watch(std::chrono::nanoseconds patience,
                         std::function<void(const std::vector<int>&, bool)> lost) {
  auto watch = std::make_unique<Watch>();
  watch->patience = patience;
  watch->lost = std::move(lost);
  watch->heard.assign(static_cast<std::size_t>(session_->size()), std::chrono::steady_clock::now());
  const std::lock_guard lock(mutex_);
  if (!watch_) watch_ = std::move(watch);
}

void MpiTransport::look_at_others(Traffic& traffic) {
  auto& watch = *traffic.watch;
  const auto now = std::chrono::steady_clock::now();
  if (now - watch.asked > watch.patience / 8) {
    watch.asked = now;
    for (int rank = 0; rank < session_->size(); ++rank) {
      if (rank != session_->rank()) traffic.send(rank, kAreYouThere, {});
    }
  }
  std::vector<int> lost;
  for (int rank = 0; rank < session_->size(); ++rank) {
    if (rank != session_->rank() &&
        now - watch.heard[static_cast<std::size_t>(rank)] > watch.patience)
      lost.push_back(rank);
  }
  if (lost.empty() || watch.told == 2) return;
  if (watch.told == 1 && now - watch.found < watch.patience) return;
  watch.found = now;
  watch.lost(lost, watch.told++ == 1);
}

bool MpiTransport::receive(Traffic& traffic) {
  bool any = false;
  for (;;) {
    int there = 0;
    MPI_Status status;
    MPI_Message message;
    MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, traffic.communicator, &there, &message, &status);
    if (there == 0) return any;
    int bytes = 0;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    std::vector<std::byte> buffer(static_cast<std::size_t>(bytes));
    MPI_Mrecv(buffer.data(), bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    if (traffic.watch != nullptr)
      traffic.watch->heard[static_cast<std::size_t>(status.MPI_SOURCE)] =
          std::chrono::steady_clock::now();
    if (status.MPI_TAG == kAreYouThere) {
      traffic.send(status.MPI_SOURCE, kHere, {});
    } else if (status.MPI_TAG == kMessage) {
      receiver_(std::move(buffer));
      any = true;
    }
  }
}

bool MpiTransport::cores_to_spare() const {
  return ipc::usable_cores() >= kCoresToSpin * session_->local_size();
}

void MpiTransport::run() {
  detail::this_thread_must_not_wait();
  ::prctl(PR_SET_TIMERSLACK, 1000);  // ns: kBusyPause is shorter than the default slack
  const auto& all = session_->communicators();
  Traffic traffic{channel_ == Channel::world    ? all.world
                  : channel_ == Channel::tokens ? all.tokens
                  : channel_ == Channel::actors ? all.actors
                                                : all.checks};
  auto& in_flight = traffic.in_flight;
  auto last_traffic = std::chrono::steady_clock::now();
  const bool to_spare = cores_to_spare(), spins = to_spare && channel_ == Channel::actors;
  const auto pause = [&](std::chrono::nanoseconds quiet) -> std::chrono::nanoseconds {
    if (!to_spare)
      return std::clamp<std::chrono::nanoseconds>(quiet / kPauseShare, kBusyPause, kLongestPause);
    return !in_flight.empty() || quiet < kBusyTime ? kBusyPause : kIdlePause;
  };
  MPI_Request leaving = MPI_REQUEST_NULL;  // the barrier of the end
  for (;;) {
    std::deque<Outgoing> outgoing;
    bool stop = false;
    {
      std::unique_lock lock(mutex_);
      const auto quiet = std::chrono::steady_clock::now() - last_traffic;
      if (!spins || quiet > kSpinTime)
        wake_.wait_for(lock, pause(quiet), [&] {
          return !outgoing_.empty() || (stop_ && leaving == MPI_REQUEST_NULL);
        });
      outgoing.swap(outgoing_);
      stop = stop_;
      traffic.watch = watch_.get();
    }
    bool any = !outgoing.empty();
    for (auto& message : outgoing) {
      if (message.rank == session_->rank()) {
        receiver_(std::move(message.bytes));
        continue;
      }
      traffic.send(message.rank, kMessage, std::move(message.bytes));
    }
    in_flight.remove_if([](auto& flight) {
      int done = 0;
      MPI_Test(&flight.request, &done, MPI_STATUS_IGNORE);
      return done != 0;
    });
    any |= receive(traffic);
    if (traffic.watch != nullptr) look_at_others(traffic);
    if (any) last_traffic = std::chrono::steady_clock::now();
    if (stop && MpiSession::forsaken()) return;
    if (!stop || !in_flight.empty()) continue;
    // All ranks leave together: a late message must still find its receiver.
    if (leaving == MPI_REQUEST_NULL) {
      MPI_Ibarrier(traffic.communicator, &leaving);
      last_traffic = std::chrono::steady_clock::now();
    }
    int left = 0;
    MPI_Test(&leaving, &left, MPI_STATUS_IGNORE);
    if (left == 0) continue;
    receive(traffic);  // what came while the barrier ended
    return;
  }
}

}  // namespace troupe::rank_process
