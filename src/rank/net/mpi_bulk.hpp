#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <mutex>
#include <thread>

#include "rank/net/mpi_session.hpp"

namespace troupe::rank_process {

/// Large pieces of host memory over MPI, on a communicator and a thread of their own: from where
/// they lie to where the receiver wants them, without a copy in between that is ours.
///
/// A piece belongs to a stream, numbered by its receiver; pieces of one stream arrive in any order.
/// MPI wants to be asked again and again, which costs a core: the thread does that while
/// something is being sent or `attend` says that something will come, and sleeps otherwise.
class MpiBulk {
 public:
  static constexpr std::uint32_t kStreams =
      32768;  ///< numbers are below (what any MPI has as tags)

  /// Both are called on this object's thread.
  struct Receiver {
    /// Where a piece of a stream shall go; nullptr: nobody wants it.
    std::function<std::byte*(int rank, std::uint32_t stream, std::size_t bytes)> place;
    std::function<void(int rank, std::uint32_t stream, std::byte* where, std::size_t bytes)>
        arrived;
  };

  MpiBulk(MpiSession& session, Receiver receiver);
  ~MpiBulk();

  /// Sends a piece of at most 1 GiB, which must not change until `sent` is called, on this object's
  /// thread. Any thread.
  void send(int rank, std::uint32_t stream, const std::byte* data, std::size_t bytes,
            std::function<void()> sent);
  /// One more, or one less, stream on which something will come. Any thread.
  void attend(int change);
  /// Waits until what was sent has been taken, and for all ranks to do the same.
  void leave();

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

  MpiSession* session_;
  Receiver receiver_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Outgoing> outgoing_;
  int attended_ = 0;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace troupe::rank_process
