#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "common/ipc/doorbell.hpp"
#include "common/ipc/unique_fd.hpp"
#include "common/keeper/job.hpp"
#include "common/links/peers.hpp"

namespace troupe::net {

class Links;

/// Kinds of messages that have connections of their own: those of Session::Channel, and more.
enum class LinkChannel : std::uint32_t {
  world,
  actors,
  checks,
  tokens,
  bulk,
  hosts,
  background,
  end
};
inline constexpr std::size_t kLinkChannels = 8;

/// Takes connections of other ranks, on a thread of its own, and gives each to the Links of its
/// channel. Whoever connects says first who it is, and proves that it belongs to the job.
class LinkHub {
 public:
  /// `listener`: a socket that listens.
  LinkHub(keeper::Job job, UniqueFd listener);
  ~LinkHub();
  LinkHub(const LinkHub&) = delete;
  LinkHub& operator=(const LinkHub&) = delete;

  /// As it was when this process started.
  [[nodiscard]] const keeper::Job& job() const noexcept { return job_; }
  /// The rank is at another place now. Any thread.
  void move(int rank, const keeper::Card& card);
  /// The place of a rank, as far as is known here. Any thread.
  [[nodiscard]] keeper::Card card_of(int rank) const;
  /// The rank is on this host, as far as is known here. Any thread.
  [[nodiscard]] bool is_near(int rank) const {
    return card_of(rank).network == job_.card().network;
  }
  [[nodiscard]] int rank() const noexcept { return job_.rank; }
  [[nodiscard]] int size() const noexcept { return job_.size(); }
  [[nodiscard]] Peers& peers() noexcept { return peers_; }
  [[nodiscard]] const Peers& peers() const noexcept { return peers_; }
  /// Ends the waits on all connections, so that who waits looks again. Any thread.
  void wake_all();

  // For Links.

  /// From now on connections of this channel go to `links`; those that have come before, too.
  void attach(LinkChannel channel, Links& links);
  void detach(LinkChannel channel);
  /// A socket that is about to be connected to this rank, and what is to be sent on it first.
  struct Outgoing {
    UniqueFd socket;
    std::vector<std::byte> introduction;
  };
  /// Errors: io; would_block if nobody knows yet where the rank is.
  [[nodiscard]] Result<Outgoing> connect(int rank, LinkChannel channel) const;

 private:
  /// The first bytes on each connection.
  struct Introduction {
    std::uint64_t magic = 0x74726f7570652d6c;  // "troupe-l"
    std::array<std::uint64_t, 2> cookie{};
    std::int32_t from = 0, to = 0;
    std::uint32_t incarnation = 0;  ///< of the one that connects
    std::uint32_t wanted = 0;       ///< of the one that it wants; see Peers
    LinkChannel channel{};
    std::uint32_t reserved = 0;
  };
  /// It has connected, and not said who it is.
  struct Stranger {
    UniqueFd socket;
    std::vector<std::byte> said;
    std::chrono::steady_clock::time_point until;
  };
  struct Arrival {
    int rank;
    std::uint32_t incarnation;
    UniqueFd socket;
  };

  void run();
  /// False: the system takes no more of them just now; they wait.
  bool accept_all(std::vector<Stranger>& strangers) const;
  /// False once nothing more is to be heard from it.
  bool listen_to(Stranger& stranger);
  void introduce(const Introduction& who, UniqueFd socket);

  keeper::Job job_;
  Peers peers_;
  UniqueFd listener_;
  ipc::Doorbell stop_;
  mutable std::mutex mutex_;
  std::vector<keeper::Card> cards_;  ///< by rank
  std::array<Links*, kLinkChannels> links_{};
  std::array<std::vector<Arrival>, kLinkChannels> early_;  ///< for Links that are not there yet
  std::thread thread_;
};

}  // namespace troupe::net
