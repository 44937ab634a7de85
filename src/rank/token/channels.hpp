#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <vector>

#include "rank/token/transfers.hpp"

namespace troupe::rank_process {

struct Routes;

/// This rank's ends of channels, from device host to device host: see <troupe/lib/channel.hpp>. The
/// TokenActor's turns.
///
/// The destination decides what goes over a channel next: it tells the source so when it has
/// submitted the receive, and the source then submits the send, whose bytes have been there since
/// the offer. So the two ends agree on the order without a number, a send never waits for anything
/// but the data's way, and neither end ever waits for a program.
class Channels {
 public:
  explicit Channels(Routes& routes) : routes_(routes) {}

  /// This rank's number of the channel to that rank in that epoch, new or not.
  std::uint64_t to(int destination, std::uint32_t epoch);
  /// Receives what has been offered by a channel.
  void receive(const PullPtr& pull);
  /// A transfer has ended for another reason than that it was sent or received.
  void leave(std::uint64_t number, const TransferKey& key, const Error& error);
  [[nodiscard]] bool is_under_way(std::uint64_t number, const TransferKey& key) const;

  void on(int from, const routed::Invited& invited);
  void on(int from, const routed::Joins& joins);
  void on(int from, const routed::Ready& ready);
  void on(int from, const routed::ChannelGone& gone);

  /// Forgets those of epochs that have ended: the device hosts give them up by themselves.
  void forget_ended_epochs();
  /// The rank is out of the world.
  void exclude(int rank);
  void forget_all() { channels_.clear(); }

 private:
  /// One end. It belongs to an epoch, as its transfers do.
  struct Channel {
    enum class State {
      begun,
      connecting,
      open,
      lost  ///< the other end, or a device host, is: the end of the epoch is to come
    };
    int peer = 0;
    bool sends = false;
    std::uint32_t epoch = 0;
    std::uint64_t of_source = 0;  ///< the source's number of it, which messages have
    State state = State::begun;
    std::vector<std::byte> invitation{};  ///< the destination's, once it has come
    std::deque<TransferKey> waiting{};    ///< what can go over it
    std::optional<TransferKey> under_way{};
  };

  std::uint64_t add(Channel channel);
  /// nullptr: it is gone.
  [[nodiscard]] Channel* at(std::uint64_t number);
  [[nodiscard]] std::optional<std::uint64_t> find(int peer, bool sends,
                                                  std::uint64_t of_source) const;
  std::uint64_t from(int source, std::uint32_t epoch, std::uint64_t of_source);
  template <class Op>
  void connect(std::uint64_t number, const Op& op, std::span<const std::byte> data = {});
  /// Lets the next transfer begin, if it can.
  void advance(std::uint64_t number);
  void send_next(std::uint64_t number, const LendingPtr& lending);
  void receive_next(std::uint64_t number, const PullPtr& pull);
  void end_under_way(std::uint64_t number);
  void failed(std::uint64_t number, const Error& error);
  /// Ends its transfers. `tell`: the other end.
  void give_up(std::uint64_t number, const Error& error, bool tell);

  Routes& routes_;
  std::map<std::uint64_t, Channel> channels_;  ///< by this rank's number
  std::uint64_t next_ = 1;
  std::size_t receiving_ = 0;  ///< over all channels
  /// Channels from other ranks that were given up: epoch, source, the source's number.
  std::set<std::tuple<std::uint32_t, int, std::uint64_t>> gone_;
};

}  // namespace troupe::rank_process
