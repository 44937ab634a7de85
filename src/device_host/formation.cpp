#include <algorithm>
#include <cstring>

#include "device_host/device_host.hpp"

// Forming communicators: the world's and those of its groups, together or one group beside the
// work.

namespace troupe::host {
namespace {

using Blob = std::vector<std::byte>;

/// What a rank contributes to a communicator: its card for the rendezvous, then what the library
/// has to say.
Blob with_card(const Rendezvous::Card& card, const Blob& contribution) {
  Blob both(sizeof card + contribution.size());
  std::memcpy(both.data(), &card, sizeof card);
  std::copy(contribution.begin(), contribution.end(), both.begin() + sizeof card);
  return both;
}

/// Takes the cards off the shares.
Result<std::vector<Rendezvous::Card>> take_cards(std::vector<Blob>& shares) {
  std::vector<Rendezvous::Card> cards;
  for (auto& both : shares) {
    if (both.size() < sizeof(Rendezvous::Card))
      return Error{Errc::invalid, 0, "a contribution to the communicator is too short"};
    std::memcpy(&cards.emplace_back(), both.data(), sizeof(Rendezvous::Card));
    both.erase(both.begin(), both.begin() + sizeof(Rendezvous::Card));
  }
  return cards;
}

/// A rank's place in one of its groups; `rank`: in the world that is formed.
Place place_in(const wire::FormingGroup& group, int rank) {
  const auto at = std::find(group.members.begin(), group.members.end(), rank);
  return {static_cast<int>(at - group.members.begin()), static_cast<int>(group.members.size()),
          group.number};
}

const Error kGivenUp{Errc::peer_lost, 0, "the communicator was given up before it was formed"};

}  // namespace

using wire::Control;
using wire::ControlKind;

Rendezvous* DeviceHost::rendezvous_of(std::uint32_t communicator) const {
  const auto found = rendezvous_.find(communicator);
  return found != rendezvous_.end() ? found->second.get() : nullptr;
}

Result<DeviceHost::Begun> DeviceHost::begin_communicator(const Place& place,
                                                         wire::GroupState state) {
  auto rendezvous = Rendezvous::open();
  if (!rendezvous.ok()) return rendezvous.error();
  auto& kept = rendezvous_[place.communicator];
  if (meeting_ == kept.get()) meeting_ = nullptr;
  kept = std::move(*rendezvous);
  return Begun{place, state, kept->card()};
}

Result<wire::Share> DeviceHost::share_of(const Begun& begun) {
  auto contribution = engine_->collectives().contribute(begun.place);
  if (!contribution.ok()) return contribution.error();
  return wire::Share{begun.place.communicator, begun.state, with_card(begun.card, *contribution)};
}

void DeviceHost::send_contribution(const Control& request, const Result<Blob>& made) {
  if (!made.ok()) return answer(request, made.error());
  const auto packed = wire::pack_blobs({*made});
  if (!packed.ok()) return answer(request, packed.error());
  send({.kind = ControlKind::contribution, .request = request.request}, {}, packed->get());
}

void DeviceHost::contribute(const wire::ControlMessage& message) {
  const auto request = message.head;
  abandon_communicators();  // a standby's, formed ahead of time with standbys that are gone
  std::vector<wire::FormingGroup> groups;
  if (message.fd) {
    const auto blobs = wire::unpack_blobs(message.fd.get());
    if (!blobs.ok()) return answer(request, blobs.error());
    auto decoded = wire::decode_groups(blobs->empty() ? Blob() : blobs->front());
    if (!decoded.ok()) return answer(request, decoded.error());
    groups = std::move(*decoded);
  }
  std::vector<Begun> all;
  const auto begin = [&](const Place& place, wire::GroupState state) -> Result<void> {
    auto begun = begin_communicator(place, state);
    if (!begun.ok()) return begun.error();
    all.push_back(*begun);
    return {};
  };
  auto outcome = begin({request.rank, request.size, wire::kWorld}, wire::GroupState::held);
  for (const auto& group : groups) {
    if (outcome.ok()) outcome = begin(place_in(group, request.rank), group.state);
  }
  if (!outcome.ok()) return answer(request, outcome);
  on_helper(request, [this, request, all = std::move(all)]() -> Helpers::Finish {
    wire::Contribution contribution;
    Result<Blob> made = Blob();
    for (const auto& begun : all) {
      auto share = share_of(begun);
      if (share.ok()) {
        contribution.push_back(std::move(*share));
      } else if (made.ok()) {
        made = share.error();
      }
    }
    if (made.ok()) made = wire::encode_contribution(contribution);
    return [this, request, made = std::move(made)] { send_contribution(request, made); };
  });
}

void DeviceHost::abandon_communicators() {
  drop_held_connect();
  sequences_.drop_collective();
  abort_communicators();
  bury_channels();
  meeting_ = nullptr;
  rendezvous_.clear();
}

void DeviceHost::abort_communicators() {
  engine_->collectives().abort();
  channels_.abort();
}

Result<DeviceHost::Joining> DeviceHost::meet(const Place& place, std::vector<Blob> shares) {
  const auto cards = take_cards(shares);
  if (!cards.ok()) return cards.error();
  auto* const rendezvous = rendezvous_of(place.communicator);
  if (rendezvous == nullptr) return kGivenUp;
  rendezvous->meet(place.rank, *cards);
  return Joining{place, std::move(shares)};
}

Result<std::vector<DeviceHost::Joining>> DeviceHost::meet_all(const wire::ControlMessage& message) {
  const auto& head = message.head;
  const auto blobs = wire::unpack_blobs(message.fd.get());
  if (!blobs.ok()) return blobs.error();
  const auto size = static_cast<std::size_t>(head.size);
  std::vector<wire::FormingGroup> groups;
  std::vector<wire::Contribution> contributions;
  for (std::size_t i = 0; i < blobs->size(); ++i) {
    if (i == size) {
      auto decoded = wire::decode_groups((*blobs)[i]);
      if (!decoded.ok()) return decoded.error();
      groups = std::move(*decoded);
    } else {
      auto decoded = wire::decode_contribution((*blobs)[i]);
      if (!decoded.ok()) return decoded.error();
      contributions.push_back(std::move(*decoded));
    }
  }
  wire::FormingGroup world{wire::kWorld, wire::GroupState::held, {}};
  for (int rank = 0; rank < head.size; ++rank) world.members.push_back(rank);
  groups.insert(groups.begin(), std::move(world));
  std::vector<Joining> all;
  for (const auto& group : groups) {
    std::vector<Blob> shares;
    for (const auto member : group.members) {
      const auto rank = static_cast<std::size_t>(member);
      const auto* const share =
          rank < contributions.size() ? wire::share_of(contributions[rank], group.number) : nullptr;
      if (share == nullptr)
        return Error{Errc::invalid, 0, "a rank has not contributed to the communicator"};
      shares.push_back(share->bytes);
    }
    auto joining = meet(place_in(group, head.rank), std::move(shares));
    if (!joining.ok()) return joining.error();
    all.push_back(std::move(*joining));
  }
  return all;
}

std::vector<std::uint32_t> DeviceHost::take_others(const std::vector<Joining>& all) {
  std::vector<std::uint32_t> others;
  std::erase_if(rendezvous_, [&](const auto& entry) {
    const bool formed = std::any_of(all.begin(), all.end(), [&](const Joining& one) {
      return one.place.communicator == entry.first;
    });
    if (!formed) others.push_back(entry.first);
    return !formed;
  });
  return others;
}

void DeviceHost::connect(wire::ControlMessage message) {
  drop_held_connect();
  const auto state = actors_[Lane::collective].state;
  if (state == LaneActor::State::opening) {  // a lane is opened once
    held_connect_ = std::move(message);
    return;
  }
  const bool opens = state == LaneActor::State::absent;
  const auto head = message.head;
  auto all = meet_all(message);
  if (!all.ok()) return answer(head, all.error());
  const bool started = on_helper(
      head,
      [this, head, opens, others = take_others(*all), all = std::move(*all)]() -> Helpers::Finish {
        for (const auto number : others) engine_->collectives().drop(number);
        auto connected = opens ? engine_->open_queue(Lane::collective) : Result<void>();
        const bool open = connected.ok();
        // In the order of their numbers on all ranks: no two wait for one another.
        for (const auto& [place, contributions] : all) {
          if (connected.ok()) connected = engine_->collectives().connect(place, contributions);
        }
        return [this, head, opens, open, connected = std::move(connected)] {
          answer(head, connected);
          if (opens) collective_lane_opened(open);
        };
      });
  if (started && opens) actors_[Lane::collective].state = LaneActor::State::opening;
}

void DeviceHost::collective_lane_opened(bool open) {
  actors_[Lane::collective].state = open ? LaneActor::State::ready : LaneActor::State::absent;
  if (held_connect_) connect(*std::exchange(held_connect_, std::nullopt));
}

void DeviceHost::drop_held_connect() {
  if (!held_connect_) return;
  const auto held = std::exchange(held_connect_, std::nullopt)->head;
  answer(held, kGivenUp);
}

// One group, beside the work. A re-formation may begin at any moment: what it has given up, or is
// about to, is refused here.

void DeviceHost::contribute_group(const Control& request) {
  if (!active()) return answer(request, kGivenUp);
  const auto begun =
      begin_communicator({request.rank, request.size, request.region}, wire::GroupState::forming);
  if (!begun.ok()) return answer(request, begun.error());
  on_helper(request, [this, request, begun = *begun]() -> Helpers::Finish {
    auto share = share_of(begun);
    return [this, request, share = std::move(share)] {
      send_contribution(request, share.ok() ? Result<Blob>(share->bytes) : share.error());
    };
  });
}

void DeviceHost::connect_group(const wire::ControlMessage& message) {
  const auto head = message.head;
  if (!active()) return answer(head, kGivenUp);
  auto shares = wire::unpack_blobs(message.fd.get());
  if (!shares.ok()) return answer(head, shares.error());
  auto joining = meet({head.rank, head.size, head.region}, std::move(*shares));
  if (!joining.ok()) return answer(head, joining.error());
  const bool started =
      on_helper(head, [this, head, joining = std::move(*joining)]() -> Helpers::Finish {
        auto connected = engine_->collectives().connect(joining.place, joining.contributions);
        return [this, head, connected = std::move(connected)] {
          --forming_groups_;
          answer(head, connected);
        };
      });
  if (started) ++forming_groups_;
}

void DeviceHost::drop_group(const Control& request) {
  if (meeting_ == rendezvous_of(request.region)) meeting_ = nullptr;
  rendezvous_.erase(request.region);
  sequences_.drop_collective();
  (void)helpers_.start([this, number = request.region]() -> Helpers::Finish {
    engine_->collectives().drop(number);
    return [] {};
  });
}

}  // namespace troupe::host
