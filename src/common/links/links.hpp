#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "common/ipc/doorbell.hpp"
#include "common/links/link_hub.hpp"
#include "common/links/near_memory.hpp"

namespace troupe::net {

/// TCP connections of one channel from this rank to others, made when they are first needed, and
/// from others to this one. Each carries messages one way; those from one process to another arrive
/// in order, also where a connection is made anew.
///
/// A large message to a process of the same host does not go through the connection: the sender
/// says where it lies, and the receiver reads it there and says so. It counts once the sender has
/// confirmed that it has lain there all the time. A receiver that cannot read it gets it through
/// the connection.
///
/// They move only while they are looked at. One thread, but for adopt() and wake().
class Links {
 public:
  /// Goes ahead of each message.
  struct Head {
    std::uint32_t tag = 0;
    std::uint32_t slot = 0;
    std::uint64_t key = 0;
    std::uint64_t sequence = 0;
    std::uint64_t bytes = 0;  ///< filled in by send()
  };
  static constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 46;

  /// The receiver of what comes.
  struct Taker {
    /// A message has come as a whole. `where`: where place() wanted it; then `bytes` are empty.
    std::function<void(int rank, const Head& head, std::vector<std::byte> bytes, std::byte* where)>
        arrived;
    /// Where a message shall go; nullptr: into a vector. Empty: all of them.
    std::function<std::byte*(int rank, const Head& head)> place{};
    /// A connection from that rank, or to it, has ended by itself.
    std::function<void(int rank)> gone{};
  };

  Links(LinkHub& hub, LinkChannel channel);
  ~Links();
  Links(const Links&) = delete;
  Links& operator=(const Links&) = delete;

  /// To another rank.
  void send(int rank, Head head, std::vector<std::byte> bytes);
  /// `data` must not change until `sent` is called, in look() or send().
  void send(int rank, Head head, std::span<const std::byte> data, std::function<void()> sent);
  /// Drops the messages to that rank that wait for their turn. Later ones take another connection,
  /// also if the one that there was has ended.
  void forget(int rank);
  /// Moves what can be moved now. True if something has come, or gone.
  bool look(const Taker& taker);
  /// Sleeps until look() would do something, wake() is called, or the time is over.
  void wait(std::chrono::nanoseconds limit) const;
  /// Readable when look() would do something.
  [[nodiscard]] int fd() const noexcept { return epoll_.get(); }
  /// Ends wait(). Any thread.
  void wake() const { bell_.ring(); }
  /// Something has not been given to the system yet.
  [[nodiscard]] bool sending() const noexcept { return sending_ > 0; }
  /// All that was sent is with the systems of the receivers.
  [[nodiscard]] bool delivered() const;

  /// The hub: a rank has connected. Any thread.
  void adopt(int rank, std::uint32_t incarnation, UniqueFd socket);

 private:
  /// A message's head is followed by one of these.
  enum class Way : std::uint8_t {
    whole,    ///< its bytes
    offered,  ///< where it lies; then the receiver is waited for
    taken,    ///< the same, and a byte that confirms it
    refused   ///< the same, and its bytes
  };
  struct Message {
    Head head;
    std::vector<std::byte> owned;
    std::span<const std::byte> data;
    std::function<void()> sent;
    Way way = Way::whole;
    NearMemory place = {};  ///< unless whole
    /// How many bytes of it go through the connection, as far as that is known.
    [[nodiscard]] std::size_t on_the_way() const noexcept;
  };
  struct End {
    int rank = 0;
    std::uint32_t incarnation = 0;  ///< of the other rank, as Peers has it
    bool incoming = false;
    UniqueFd socket{};
  };
  struct Out : End {
    std::vector<std::byte> introduction;
    std::deque<Message> queue;
    std::size_t done = 0;  ///< bytes of the introduction and of the first message that are gone
    bool watched = false;  ///< look() is told when there is room
    bool broken = false;
    bool waits_for_address = false;
    bool near = false;  ///< the other process is on this host, and has not refused to read there
  };
  struct In : End {
    std::vector<std::byte> buffer;   ///< what came and is not looked at …
    std::size_t begin = 0, end = 0;  ///< … between these
    /// The receiver waits for this part of a message.
    enum class Next : std::uint8_t { head, place, confirmation, bytes } next = Next::head;
    Head head{};
    std::vector<std::byte> bytes;
    std::byte* where = nullptr;  ///< see Taker
    std::uint64_t received = 0;  ///< of the message
    bool is_younger = false;     ///< there may be another connection that is to be read first
  };

  Out& out_to(int rank);
  void connect(Out& out);
  /// Lets go what leads to processes that are no more, and connects what waited for an address.
  void renew();
  void queue(Out& out, Message message);
  void push(Out& out);
  /// The first message has been offered, and its receiver has answered.
  void hear_answer(Out& out);
  void drop(Out& out);
  void watch(Out& out, bool room);
  bool take(In& in, const Taker& taker);
  [[nodiscard]] bool has_elder(const End& end) const;
  static bool consume(In& in, const Taker& taker);
  /// A message is there as a whole.
  static void hand_on(In& in, const Taker& taker);
  void take_adopted();

  LinkHub* hub_;
  LinkChannel channel_;
  UniqueFd epoll_;
  ipc::Doorbell bell_;
  std::map<int, std::unique_ptr<Out>> out_;
  std::vector<std::unique_ptr<In>> in_;
  std::vector<int> gone_;    ///< see Taker
  std::size_t sending_ = 0;  ///< messages in queues
  bool progress_ = false;

  std::mutex mutex_;
  std::vector<std::unique_ptr<In>> adopted_;
};

}  // namespace troupe::net
