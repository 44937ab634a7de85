#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <variant>
#include <vector>

#include <troupe/clock.hpp>

#include "rank/token/token_message.hpp"

namespace troupe::rank_process {

struct Routes;

/// What other ranks ask of this one: each rank's requests are handled in their order, once this
/// rank's program has come to their epoch and commit, and nothing is in the way. The TokenActor's
/// turns.
class OthersRequests {
 public:
  explicit OthersRequests(Routes& routes);

  template <class M>
  requires kIsRequest<M>
  void on(int from, M request) {
    inbox(from).push_back({std::move(request), std::nullopt});
    advance(from);
  }
  /// Handles what has become possible.
  void advance_all();
  /// The rank is out of the world.
  void exclude(int rank);
  /// At the end: lets all buffers go that others hold.
  void release_all();

 private:
  using Request = std::variant<routed::Fetch, routed::Put, routed::Execute, routed::Hold,
                               routed::Map, routed::Release>;
  struct Waiting {
    Request request;
    std::optional<TimePoint> blocked_since;
  };

  [[nodiscard]] std::deque<Waiting>& inbox(int rank) {
    return inbox_[static_cast<std::size_t>(rank)];
  }
  void advance(int requester);
  /// False: it is too early, or something is in the way; to be tried again.
  bool attempt(int from, const Request& request);
  [[nodiscard]] bool is_used(const TransferKey& key) const;
  /// The obstacle that the request has met until now.
  [[nodiscard]] Error in_the_way(const Request& request) const;
  void refuse(int from, const Request& request, const Error& error);
  void answer(int to, const TransferKey& key, const Result<void>& outcome);
  // Each is as attempt(), for a request that has its time.
  bool handle(int from, const routed::Fetch& fetch);
  bool handle(int from, const routed::Put& put);
  bool handle(int from, const routed::Execute& execute);
  bool handle(int from, const routed::Hold& hold);
  bool handle(int from, const routed::Map& map);
  /// Keeps the buffer of a range for that request. Errors: stale, invalid.
  Result<Operand> keep(const TransferKey& key, const Operand& named);
  void release(const TransferKey& key);

  Routes& routes_;
  std::vector<std::deque<Waiting>> inbox_;      ///< by rank
  std::map<TransferKey, std::uint32_t> holds_;  ///< the buffer
};

}  // namespace troupe::rank_process
