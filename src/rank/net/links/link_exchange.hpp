#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "rank/net/exchange.hpp"
#include "rank/net/links/links.hpp"

namespace troupe::rank_process {

/// Messages between groups of ranks, which are asked for by name. Any thread: one at a time.
class LinkPost {
 public:
  /// `spins`: there are cores to spare, so that it looks for a moment before it sleeps.
  LinkPost(LinkHub& hub, LinkChannel channel, bool spins)
      : rank_(hub.rank()), spins_(spins), links_(hub, channel) {}

  struct Name {
    std::uint64_t group = 0;
    std::uint64_t call = 0;  ///< of that group, which all of its members count alike
    std::uint32_t part = 0;
  };
  void send(int rank, const Name& name, std::span<const std::byte> bytes);
  /// Waits for it.
  std::vector<std::byte> receive(int rank, const Name& name);
  /// The two at once. `outgoing` is not copied.
  std::vector<std::byte> exchange(std::span<const std::byte> outgoing, int to, int from,
                                  const Name& name);

 private:
  using Key = std::tuple<int, std::uint64_t, std::uint64_t, std::uint32_t>;

  [[nodiscard]] static Links::Head head_of(const Name& name);
  /// With mutex_ held.
  std::vector<std::byte> wait_for(int rank, const Name& name, const bool* gone = nullptr);
  bool look();

  int rank_;
  bool spins_;
  std::mutex mutex_;
  Links links_;
  std::map<Key, std::vector<std::byte>> come_;
};

/// Exchanges over TCP: what all shall have goes up a binomial tree and down again.
class LinkExchange final : public Exchange {
 public:
  /// `ranks`: the members; this one is `own` of them. `group`: a number of theirs that no other
  /// group has.
  LinkExchange(std::shared_ptr<LinkPost> post, std::vector<int> ranks, int own, std::uint64_t group)
      : post_(std::move(post)), ranks_(std::move(ranks)), own_(own), group_(group) {}

  void barrier() override { (void)gather({}); }
  void all_gather(std::span<const std::byte> value, std::span<std::byte> all) override;
  std::vector<std::string> gather_text(const std::string& text) override;
  std::vector<std::vector<std::byte>> all_to_all(
      const std::vector<std::vector<std::byte>>& outgoing) override;
  std::vector<std::byte> shift(std::span<const std::byte> outgoing, int to, int from,
                               std::vector<std::byte> incoming) override;

 private:
  /// What each member has given.
  std::vector<std::vector<std::byte>> gather(std::span<const std::byte> own);
  [[nodiscard]] int rank_of(int member) const { return ranks_[static_cast<std::size_t>(member)]; }

  std::shared_ptr<LinkPost> post_;
  std::vector<int> ranks_;
  int own_;
  std::uint64_t group_;
  std::uint64_t calls_ = 0;
};

}  // namespace troupe::rank_process
