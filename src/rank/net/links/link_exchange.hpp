#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>

#include "common/links/links.hpp"
#include "rank/net/exchange.hpp"
#include "rank/net/links/eras.hpp"
#include "rank/net/links/start_log.hpp"

namespace troupe::rank_process {

using net::LinkChannel;
using net::LinkHub;
using net::Links;

/// Messages between groups of ranks, which are asked for by name. Any thread: one at a time.
class LinkPost {
 public:
  /// `spins`: there are cores to spare, so that it looks for a moment before it sleeps.
  LinkPost(LinkHub& hub, Eras& eras, LinkChannel channel, bool spins)
      : hub_(&hub), eras_(&eras), spins_(spins), links_(hub, channel) {}

  [[nodiscard]] const net::Peers& peers() const noexcept { return hub_->peers(); }
  [[nodiscard]] const Eras& eras() const noexcept { return *eras_; }
  /// A message's name. What has been said in an era is heard in no other.
  struct Name {
    Era era{};
    std::uint64_t group = 0;
    std::uint64_t call = 0;  ///< of that group, which all of its members count alike
    std::uint32_t part = 0;
  };
  void send(int rank, const Name& name, std::span<const std::byte> bytes);
  /// Waits for it. Once a rank has died that the era of the name does not know of:
  /// Eras::interrupt().
  std::vector<std::byte> receive(int rank, const Name& name);
  /// The two at once. `outgoing` is not copied; what comes is put into `room`, where it can be.
  std::vector<std::byte> exchange(std::span<const std::byte> outgoing, int to, int from,
                                  const Name& name, std::vector<std::byte> room);

 private:
  using Key = std::tuple<std::uint32_t, int, std::uint64_t, std::uint64_t, std::uint32_t>;

  /// Memory for a message that is expected.
  struct Room {
    Key key{};
    std::vector<std::byte> bytes;
    bool in_use =
        false;  ///< the message comes, or is still to come from an exchange that was ended
  };

  [[nodiscard]] static Links::Head head_of(const Name& name);
  /// With mutex_ held.
  std::vector<std::byte> wait_for(int rank, const Name& name, const bool* gone = nullptr);
  bool look();

  LinkHub* hub_;
  Eras* eras_;
  bool spins_;
  std::mutex mutex_;
  Links links_;
  std::map<Key, std::vector<std::byte>> come_;
  Room room_;
};

/// Exchanges over TCP: what all shall have goes up a binomial tree and down again.
class LinkExchange final : public Exchange {
 public:
  /// The exchange goes on once a member that has died is back: at once in the program's next era,
  /// or from renew() on; or not at all.
  enum class Renewal { at_once, when_asked, never };
  /// `ranks`: the members; this one is `own` of them. `group`: a number of theirs that no other
  /// group has.
  LinkExchange(std::shared_ptr<LinkPost> post, std::vector<int> ranks, int own, std::uint64_t group,
               Renewal renewal)
      : LinkExchange(std::move(post), std::move(ranks), own, group, renewal, Start{}) {}
  /// An exchange that ranks have while they start.
  struct Start {
    StartLog* log = nullptr;
    /// Where the members are the ranks of one node: how many places that has; 0: they are all
    /// ranks.
    int neighbours = 0;
  };
  LinkExchange(std::shared_ptr<LinkPost> post, std::vector<int> ranks, int own, std::uint64_t group,
               Renewal renewal, Start start);

  void renew() override;
  void barrier() override { (void)gather({}); }
  void all_gather(std::span<const std::byte> value, std::span<std::byte> all) override;
  std::vector<std::string> gather_text(const std::string& text) override;
  std::vector<std::vector<std::byte>> all_to_all(
      const std::vector<std::vector<std::byte>>& outgoing) override;
  std::vector<std::byte> shift(std::span<const std::byte> outgoing, int to, int from,
                               std::vector<std::byte> incoming) override;

 private:
  /// The name of the next call, but for its part. Throws Exception (peer_lost).
  LinkPost::Name next();
  /// The parts that the rank's first process has heard in this call. `own`: what this one gives.
  std::vector<std::vector<std::byte>> replay(std::span<const std::byte> own) const;
  /// The bytes that each member has given.
  std::vector<std::vector<std::byte>> gather(std::span<const std::byte> own);
  [[nodiscard]] int rank_of(int member) const { return ranks_[static_cast<std::size_t>(member)]; }

  std::shared_ptr<LinkPost> post_;
  std::vector<int> ranks_;
  int own_;
  std::uint64_t group_;
  Renewal renewal_;
  Start start_;
  std::vector<std::uint32_t> incarnations_;  ///< of the members, when it was made
  Era era_{};
  std::uint64_t calls_ = 0;  ///< in this era
};

}  // namespace troupe::rank_process
