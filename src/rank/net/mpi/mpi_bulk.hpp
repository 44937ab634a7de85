#pragma once

#include <mpi.h>

#include <condition_variable>
#include <deque>
#include <list>
#include <mutex>
#include <thread>

#include "rank/net/bulk.hpp"

namespace troupe::rank_process {

/// Pieces over MPI, on a communicator of their own. MPI wants to be asked again and again, which
/// costs a core: the thread does that while something is being sent or `attend` says that something
/// will come, and sleeps otherwise.
class MpiBulk final : public Bulk {
 public:
  /// `spins`: there are cores to spare.
  MpiBulk(MPI_Comm communicator, bool spins, Receiver receiver);
  ~MpiBulk() override;

  void send(int rank, std::uint32_t stream, const std::byte* data, std::size_t bytes,
            std::function<void()> sent) override;
  void attend(int change) override;
  void leave() override;

 private:
  struct Outgoing {
    int rank;
    std::uint32_t stream;
    const std::byte* data;
    std::size_t bytes;
    std::function<void()> sent;
  };
  struct InFlight;

  void run();
  bool receive(std::list<InFlight>& in_flight);
  static bool finish(std::list<InFlight>& in_flight, const Receiver& receiver);

  MPI_Comm communicator_;
  const bool spins_;
  Receiver receiver_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Outgoing> outgoing_;
  int attended_ = 0;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace troupe::rank_process
