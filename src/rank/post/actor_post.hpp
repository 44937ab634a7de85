#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <troupe/actor/remote_actor.hpp>

#include "rank/post/actor_inbound.hpp"
#include "rank/post/actor_route.hpp"

namespace troupe::rank_process {

/// Carries messages between the actors of all ranks: this rank's routes to others' actors, the
/// others' routes to the ones that are published here, and the names of these. Knows nothing of
/// epochs. Any thread.
class ActorPost : public std::enable_shared_from_this<ActorPost> {
 public:
  static constexpr std::size_t kMaxRoutes = 65536;

  static std::shared_ptr<ActorPost> make(ActorPostParts parts) {
    return std::shared_ptr<ActorPost>(new ActorPost(std::move(parts)));
  }

  /// See World::publish.
  Result<void> publish(const std::string& name, std::shared_ptr<detail::PublishedActor> actor);
  /// The actor of that name, and of this message set, of a rank of the job; rank -1: of none.
  std::shared_ptr<detail::RemoteAddress> address(const std::string& name, int rank,
                                                 std::uint64_t set);

  /// What has come from another rank's post, or this one's. One thread at a time. Errors: invalid
  /// (it is malformed, and not acted on from there on).
  Result<void> received(std::span<const std::byte> bytes);
  /// These ranks are out of the world. All others are in it, or back in it. What is sent to them is
  /// refused, and what they have sent and is held here is dropped. A rank that is out itself has no
  /// others.
  void set_excluded(const std::vector<std::int32_t>& ranks);
  /// Nothing is sent any more, and all questions end, with this error. The first call counts.
  void end(const Error& why);

 private:
  explicit ActorPost(ActorPostParts parts);
  using Target = std::tuple<int, std::string, std::uint64_t>;  ///< rank, name, set
  using InboundId = std::pair<int, std::uint32_t>;             ///< rank, route

  Result<std::shared_ptr<detail::PublishedActor>> find(const std::string& name, std::uint64_t set);
  void handle(const ActorPacket& packet);
  void open(const ActorPacket& packet);
  void refuse(const ActorMessage& head);
  [[nodiscard]] std::shared_ptr<ActorInbound> inbound_of(const ActorMessage& head);
  [[nodiscard]] std::shared_ptr<ActorRoute> route_of(const ActorMessage& head);
  [[nodiscard]] std::optional<Error> obstacle(int rank) const;
  void tell_later(EndedQuestions questions);
  /// With the lock: see set_excluded(). The inbound routes that it closes, to be settled without
  /// it.
  std::vector<std::shared_ptr<ActorInbound>> exclude(const std::vector<std::int32_t>& ranks);
  /// The same of those for which which(entry of inbound_) holds.
  template <class Which>
  std::vector<std::shared_ptr<ActorInbound>> close_inbound(const Which& which);

  const std::shared_ptr<const ActorPostParts> parts_;

  std::mutex mutex_;  // taken before a route's, and behind an inbound's
  std::optional<Error> ended_;
  std::vector<bool> excluded_;
  std::map<std::string, std::shared_ptr<detail::PublishedActor>, std::less<>> published_;
  std::map<Target, std::shared_ptr<ActorRoute>> targets_;
  std::map<std::uint32_t, std::shared_ptr<ActorRoute>> routes_;
  std::uint32_t last_route_ = 0;
  std::map<InboundId, std::shared_ptr<ActorInbound>> inbound_;
};

}  // namespace troupe::rank_process
