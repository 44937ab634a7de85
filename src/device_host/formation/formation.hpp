#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/wire/control.hpp"
#include "common/wire/formation.hpp"
#include "device_host/core.hpp"
#include "device_host/engine/collective_half.hpp"
#include "device_host/formation/channels.hpp"
#include "device_host/formation/meetings.hpp"
#include "device_host/formation/surrender.hpp"
#include "device_host/libraries/libraries.hpp"
#include "device_host/requests.hpp"

namespace troupe::host {

/// Forms the communicators: the world's and those of its groups together, or one group beside the
/// work; and gives them up, with the channels. The reactor's thread only.
class Formation {
 public:
  Formation(Core& core, Requests& requests, Libraries& libraries, ipc::Doorbell channels_bell);

  [[nodiscard]] Meetings& meetings() noexcept { return meetings_; }
  [[nodiscard]] Channels& channels() noexcept { return channels_; }
  [[nodiscard]] Surrender& surrender() noexcept { return surrender_; }

  /// What an earlier request has formed is given up before.
  void on(std::uint64_t request, const wire::to_host::Contribute& contribute);
  void on(std::uint64_t request, wire::to_host::Connect& connect);
  // One group, beside the work. A re-formation may begin at any moment: what it has given up, or is
  // about to, is refused here.
  void on(std::uint64_t request, const wire::to_host::ContributeGroup& contribute);
  void on(std::uint64_t request, wire::to_host::ConnectGroup& connect);
  void on(std::uint64_t request, const wire::to_host::DropGroup& drop);

  /// Gives the communicators and channels up, or the forming of them.
  void abandon();
  /// The same at once, from any thread, without what the reactor keeps of them.
  void abort();
  /// The collective lane has been opened, or could not be.
  void lane_opened();

  /// Whether no collective may be queued, because a communicator is being formed beside the work,
  /// or this rank is being connected with peers.
  [[nodiscard]] bool is_forming() const noexcept { return forming_groups_ != 0; }
  [[nodiscard]] bool is_linking() const noexcept { return linking_; }
  /// Whether nothing is under way that waits for other ranks.
  [[nodiscard]] bool rests() const;
  /// Has a helper connect this rank with peers; no collective is queued meanwhile.
  void open_links(std::uint32_t communicator, std::vector<Link> links);

 private:
  /// A communicator that this rank contributes to: where its members will meet, and its place.
  struct Begun {
    Place place;
    wire::GroupState state{};
    Rendezvous::Card card{};
  };
  /// Whom to connect with, by their shares.
  struct Joining {
    Place place;
    std::vector<std::vector<std::byte>> contributions;
  };

  Result<Begun> begin(const Place& place, wire::GroupState state);
  /// On a helper: the card, and what the library has to say.
  Result<wire::Share> share_of(const Begun& begun);
  void send_contribution(std::uint64_t request, const Result<std::vector<std::byte>>& made);
  /// Finds the members on this host, by the cards that it takes off their shares.
  Result<Joining> meet(const Place& place, std::vector<std::vector<std::byte>> shares);
  /// For the communicators that a request to connect is about.
  Result<std::vector<Joining>> meet_all(const wire::to_host::Connect& connect);
  /// Answers a request to connect that still waits for its lane.
  void drop_held_connect();

  struct Held {
    std::uint64_t request = 0;
    wire::to_host::Connect connect;
  };

  Core* core_;
  Requests* requests_;
  Libraries* libraries_;
  Meetings meetings_;
  bool linking_ = false;
  std::size_t forming_groups_ = 0;  ///< on helpers, beside the work
  std::optional<Held> held_;        ///< until the collective lane is open
  // Last: their threads use the rest.
  Channels channels_;
  Surrender surrender_;
};

}  // namespace troupe::host
