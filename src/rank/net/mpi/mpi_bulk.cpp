#include "rank/net/mpi/mpi_bulk.hpp"

#include <sys/prctl.h>

#include <chrono>
#include <vector>

#include "rank/net/session.hpp"

namespace troupe::rank_process {
namespace {

// Between looks while there is traffic, unless there are cores to spare …
constexpr auto kPause = std::chrono::microseconds(5);
constexpr auto kQuietPause = std::chrono::microseconds(100);  // … and while none has come for …
constexpr auto kQuietAfter = std::chrono::milliseconds(2);    // … this long
constexpr auto kIdlePause = std::chrono::milliseconds(50);    // while none is to come

}  // namespace

struct MpiBulk::InFlight {
  MPI_Request request = MPI_REQUEST_NULL;
  int rank = 0;
  std::uint32_t stream = 0;
  std::byte* where = nullptr;  ///< of a piece that comes; nullptr: one that nobody wants
  std::size_t bytes = 0;
  std::vector<std::byte> discarded{};
  std::function<void()> sent{};  ///< of a piece that goes
};

MpiBulk::MpiBulk(MPI_Comm communicator, bool spins, Receiver receiver)
    : communicator_(communicator),
      spins_(spins),
      receiver_(std::move(receiver)),
      thread_([this] { run(); }) {}

MpiBulk::~MpiBulk() {
  leave();
}

void MpiBulk::leave() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void MpiBulk::send(int rank, std::uint32_t stream, const std::byte* data, std::size_t bytes,
                   std::function<void()> sent) {
  {
    const std::lock_guard lock(mutex_);
    outgoing_.push_back({rank, stream, data, bytes, std::move(sent)});
  }
  wake_.notify_one();
}

void MpiBulk::attend(int change) {
  {
    const std::lock_guard lock(mutex_);
    attended_ += change;
  }
  wake_.notify_one();
}

bool MpiBulk::receive(std::list<InFlight>& in_flight) {
  int there = 0;
  MPI_Status status;
  MPI_Message message;
  MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, communicator_, &there, &message, &status);
  if (there == 0) return false;
  int bytes = 0;
  MPI_Get_count(&status, MPI_BYTE, &bytes);
  auto& piece = in_flight.emplace_back();
  piece.rank = status.MPI_SOURCE;
  piece.stream = static_cast<std::uint32_t>(status.MPI_TAG);
  piece.bytes = static_cast<std::size_t>(bytes);
  piece.where = receiver_.place(piece.rank, piece.stream, piece.bytes);
  if (piece.where == nullptr) piece.discarded.resize(piece.bytes);
  // Within a node MPI may copy the piece here and now.
  MPI_Imrecv(piece.where != nullptr ? piece.where : piece.discarded.data(), bytes, MPI_BYTE,
             &message, &piece.request);
  return true;
}

bool MpiBulk::finish(std::list<InFlight>& in_flight, const Receiver& receiver) {
  bool any = false;
  for (auto it = in_flight.begin(); it != in_flight.end();) {
    int done = 0;
    MPI_Test(&it->request, &done, MPI_STATUS_IGNORE);
    if (done == 0) {
      ++it;
      continue;
    }
    any = true;
    if (it->sent) {
      it->sent();
    } else if (it->where != nullptr) {
      receiver.arrived(it->rank, it->stream, it->where, it->bytes);
    }
    it = in_flight.erase(it);
  }
  return any;
}

void MpiBulk::run() {
  ::prctl(PR_SET_TIMERSLACK, 1000);  // ns: kPause is shorter than the default slack
  std::list<InFlight> in_flight;
  MPI_Request leaving = MPI_REQUEST_NULL;
  auto last_traffic = std::chrono::steady_clock::now();
  bool traffic = false;
  for (;;) {
    std::deque<Outgoing> outgoing;
    bool stop = false;
    {
      std::unique_lock lock(mutex_);
      const auto due = [&] { return !outgoing_.empty() || stop_; };
      if (in_flight.empty() && attended_ == 0 && !stop_) {
        // A piece of a transfer that was given up may still come, and holds up its sender.
        wake_.wait_for(lock, kIdlePause, [&] { return due() || attended_ != 0; });
        last_traffic = std::chrono::steady_clock::now();
      } else if (!traffic && outgoing_.empty()) {
        const bool quiet = std::chrono::steady_clock::now() - last_traffic > kQuietAfter;
        if (quiet || !spins_) wake_.wait_for(lock, quiet ? kQuietPause : kPause);
      }
      outgoing.swap(outgoing_);
      stop = stop_;
    }
    traffic = !outgoing.empty();
    for (auto& piece : outgoing) {
      auto& flight = in_flight.emplace_back();
      flight.sent = std::move(piece.sent);
      MPI_Isend(piece.data, static_cast<int>(piece.bytes), MPI_BYTE, piece.rank,
                static_cast<int>(piece.stream), communicator_, &flight.request);
    }
    // One at a time: whoever gets it copies it on while the next one comes.
    traffic |= receive(in_flight);
    traffic |= finish(in_flight, receiver_);
    if (traffic) last_traffic = std::chrono::steady_clock::now();
    if (stop && Session::forsaken()) return;
    if (!stop || !in_flight.empty()) continue;
    // All ranks leave together: a piece on its way must still find its receiver.
    if (leaving == MPI_REQUEST_NULL) MPI_Ibarrier(communicator_, &leaving);
    int left = 0;
    MPI_Test(&leaving, &left, MPI_STATUS_IGNORE);
    if (left != 0) return;
  }
}

}  // namespace troupe::rank_process
