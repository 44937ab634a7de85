#include "rank/net/mpi_transport.hpp"

#include <sys/prctl.h>

#include <list>

#include "rank/net/communicators.hpp"

namespace troupe::rank {

struct MpiTransport::InFlight {
  std::vector<std::byte> bytes;
  MPI_Request request = MPI_REQUEST_NULL;
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

void MpiTransport::send(int rank, std::vector<std::byte> bytes) {
  {
    const std::lock_guard lock(mutex_);
    outgoing_.push_back({rank, std::move(bytes)});
  }
  wake_.notify_one();
}

void MpiTransport::run() {
  const auto& all = *session_->communicators_;
  const auto communicator = channel_ == Channel::world    ? all.world
                            : channel_ == Channel::tokens ? all.tokens
                                                          : all.checks;
  ::prctl(PR_SET_TIMERSLACK, 1000);  // ns: kBusyPause is shorter than the default slack
  std::list<InFlight> in_flight;
  auto last_traffic = std::chrono::steady_clock::now();
  MPI_Request leaving = MPI_REQUEST_NULL;  // the barrier of the end
  for (;;) {
    std::deque<Outgoing> outgoing;
    bool stop = false;
    {
      std::unique_lock lock(mutex_);
      const bool busy =
          !in_flight.empty() || std::chrono::steady_clock::now() - last_traffic < kBusyTime;
      wake_.wait_for(lock, busy ? kBusyPause : kIdlePause,
                     [&] { return !outgoing_.empty() || (stop_ && leaving == MPI_REQUEST_NULL); });
      outgoing.swap(outgoing_);
      stop = stop_;
    }
    bool traffic = !outgoing.empty();
    for (auto& message : outgoing) {
      if (message.rank == session_->rank()) {
        receiver_(std::move(message.bytes));
        continue;
      }
      auto& flight = in_flight.emplace_back(InFlight{std::move(message.bytes)});
      MPI_Isend(flight.bytes.data(), static_cast<int>(flight.bytes.size()), MPI_BYTE, message.rank,
                0, communicator, &flight.request);
    }
    in_flight.remove_if([](InFlight& flight) {
      int done = 0;
      MPI_Test(&flight.request, &done, MPI_STATUS_IGNORE);
      return done != 0;
    });
    for (;;) {
      int there = 0;
      MPI_Status status;
      MPI_Message message;
      MPI_Improbe(MPI_ANY_SOURCE, 0, communicator, &there, &message, &status);
      if (there == 0) break;
      int bytes = 0;
      MPI_Get_count(&status, MPI_BYTE, &bytes);
      std::vector<std::byte> buffer(static_cast<std::size_t>(bytes));
      MPI_Mrecv(buffer.data(), bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE);
      receiver_(std::move(buffer));
      traffic = true;
    }
    if (traffic) last_traffic = std::chrono::steady_clock::now();
    if (!stop || !in_flight.empty()) continue;
    // All ranks leave together: a late message must still find its receiver.
    if (leaving == MPI_REQUEST_NULL) {
      MPI_Ibarrier(communicator, &leaving);
      last_traffic = std::chrono::steady_clock::now();
    }
    int left = 0;
    MPI_Test(&leaving, &left, MPI_STATUS_IGNORE);
    if (left != 0) return;
  }
}

}  // namespace troupe::rank
