#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <troupe/error.hpp>

#include "common/ipc/ring.hpp"
#include "common/ipc/shared_memory.hpp"
#include "rank/net/fd_exchange.hpp"

namespace troupe::rank_process {

/// Messages between the ranks of a node through shared memory. Each rank has an inbox with a ring
/// for each of the others. A message crosses its ring in pieces, so that rings are small and
/// messages are not. Messages from one rank to another arrive in order. One thread.
class NodeRings {
 public:
  static constexpr std::size_t kLongest = std::size_t{1} << 20;  ///< bytes of a message
  /// Called with one message at a time.
  using Arrived = std::function<void(std::vector<std::byte>)>;

  /// Without others.
  NodeRings() = default;
  /// Makes the inbox of rank `own` and has `fds` offer it. `ranks`: those of the node, in order,
  /// the same list on all of them. Errors: io.
  static Result<NodeRings> open(FdExchange& fds, std::vector<int> ranks, int own);
  /// Takes the inboxes of the others, once all have opened theirs. A rank that cannot be had is not
  /// reached.
  void meet(const FdExchange& fds);
  /// Ends the offer, once all have met.
  static void withdraw(FdExchange& fds) { fds.withdraw(kInbox); }

  [[nodiscard]] bool reaches(int rank) const { return out_.contains(rank); }
  [[nodiscard]] std::size_t reached() const noexcept { return out_.size(); }
  /// To a rank that is reached.
  void send(int rank, std::vector<std::byte> bytes);
  /// Calls `arrived` with each message that has come. True if there was one.
  bool receive(const Arrived& arrived);
  /// Sends on what had to wait for room.
  void advance();
  [[nodiscard]] bool sending() const noexcept { return waiting_ != 0; }
  /// Another process is that rank now, and is not reached. What the one before has sent is dropped.
  void forget(int rank);

 private:
  static constexpr std::uint64_t kInbox = ~std::uint64_t{0};  ///< its number in the FdExchange

  /// Shared memory with rings, one for each rank of the list.
  class Inbox {
   public:
    static Result<Inbox> create(std::size_t rings);
    static Result<Inbox> map(UniqueFd fd, std::size_t rings);
    [[nodiscard]] int fd() const noexcept { return memory_.fd(); }
    template <class End>
    [[nodiscard]] End end(std::size_t ring) const;

   private:
    explicit Inbox(ipc::SharedMemory memory) : memory_(std::move(memory)) {}
    ipc::SharedMemory memory_;
  };
  struct In {
    ipc::RingConsumer ring;
    std::vector<std::byte> begun{};  ///< the pieces so far of the next message
    bool closed = false;             ///< nothing more is taken
  };
  struct Out {
    Inbox inbox;  ///< the other rank's
    ipc::RingProducer ring;
    std::deque<std::vector<std::byte>> waiting{};
    std::size_t gone = 0;  ///< bytes of the first of them, or of the one that is being sent
  };

  /// The next message has come as a whole, if there is one. Errors: internal.
  static Result<bool> take(In& in);
  /// True once all of the message has gone, or has nowhere to go; else there is no room for more.
  static bool write(Out& out, std::span<const std::byte> message);

  std::vector<int> ranks_;
  int own_ = 0;
  std::optional<Inbox> inbox_;
  std::map<int, In> in_;
  std::map<int, Out> out_;
  std::size_t waiting_ = 0;  ///< messages that wait for room
};

}  // namespace troupe::rank_process
