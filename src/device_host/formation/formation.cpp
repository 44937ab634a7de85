#include "device_host/formation/formation.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace troupe::host {
namespace {

using Blob = std::vector<std::byte>;
namespace to_host = wire::to_host;

/// The contribution of a rank to a communicator: its card for the rendezvous, then what the library
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

Formation::Formation(Core& core, Requests& requests, Libraries& libraries,
                     ipc::Doorbell channels_bell)
    : core_(&core),
      requests_(&requests),
      libraries_(&libraries),
      channels_(std::move(channels_bell)),
      surrender_(core.port.header().surrenders, [this] { abort(); }) {}

Result<Formation::Begun> Formation::begin(const Place& place, wire::GroupState state) {
  const auto card = meetings_.open(place.communicator);
  if (!card.ok()) return card.error();
  Begun begun{place, state, *card};
  begun.place.aborts = core_->engine->collectives().aborts();
  return begun;
}

Result<wire::Share> Formation::share_of(const Begun& begun) {
  auto contribution = core_->engine->collectives().contribute(begun.place);
  if (!contribution.ok()) return contribution.error();
  return wire::Share{begun.place.communicator, begun.state, with_card(begun.card, *contribution)};
}

void Formation::send_contribution(std::uint64_t request, const Result<Blob>& made) {
  if (!made.ok()) return requests_->answer(request, made.error());
  requests_->answer_with(request, wire::from_host::Contributed{*made});
}

void Formation::on(std::uint64_t request, const to_host::Contribute& contribute) {
  abandon();  // a standby's, formed ahead of time with standbys that are gone
  std::vector<Begun> all;
  const auto begin_one = [&](const Place& place, wire::GroupState state) -> Result<void> {
    auto begun = begin(place, state);
    if (!begun.ok()) return begun.error();
    all.push_back(*begun);
    return {};
  };
  auto outcome =
      begin_one({contribute.rank, contribute.size, wire::kWorld}, wire::GroupState::held);
  for (const auto& group : contribute.groups) {
    if (outcome.ok()) outcome = begin_one(place_in(group, contribute.rank), group.state);
  }
  if (!outcome.ok()) return requests_->answer(request, outcome);
  requests_->on_helper(request, [this, request, all = std::move(all)]() -> Helpers::Finish {
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

void Formation::abandon() {
  drop_held_connect();
  abort();
  channels_.bury(core_->helpers);
  meetings_.close_all();
}

void Formation::abort() {
  core_->engine->collectives().abort();
  channels_.abort();
}

Result<Formation::Joining> Formation::meet(const Place& place, std::vector<Blob> shares) {
  const auto cards = take_cards(shares);
  if (!cards.ok()) return cards.error();
  auto* const rendezvous = meetings_.find(place.communicator);
  if (rendezvous == nullptr) return kGivenUp;
  rendezvous->meet(place.rank, *cards);
  return Joining{place, std::move(shares)};
}

Result<std::vector<Formation::Joining>> Formation::meet_all(const to_host::Connect& connect) {
  std::vector<wire::Contribution> contributions;
  for (const auto& bytes : connect.contributions) {
    auto decoded = wire::decode_contribution(bytes);
    if (!decoded.ok()) return decoded.error();
    contributions.push_back(std::move(*decoded));
  }
  wire::FormingGroup world{wire::kWorld, wire::GroupState::held, {}};
  for (int rank = 0; rank < connect.size; ++rank) world.members.push_back(rank);
  auto groups = connect.groups;
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
    auto joining = meet(place_in(group, connect.rank), std::move(shares));
    if (!joining.ok()) return joining.error();
    all.push_back(std::move(*joining));
  }
  return all;
}

void Formation::on(std::uint64_t request, to_host::Connect& connect) {
  drop_held_connect();
  auto& lane = (*libraries_)[Lane::collective];
  if (lane.state == LaneActor::State::opening) {  // a lane is opened once
    held_ = Held{request, std::move(connect)};
    return;
  }
  const bool opens = lane.state == LaneActor::State::absent;
  auto all = meet_all(connect);
  if (!all.ok()) return requests_->answer(request, all.error());
  std::vector<std::uint32_t> formed;
  for (const auto& one : *all) formed.push_back(one.place.communicator);
  // Nobody meets in the others any more.
  auto others = meetings_.close_others(formed);
  const bool started = requests_->on_helper(
      request,
      [this, request, opens, others = std::move(others),
       all = std::move(*all)]() -> Helpers::Finish {
        auto& collectives = core_->engine->collectives();
        for (const auto number : others) collectives.drop(number);
        auto connected = opens ? core_->engine->open_queue(Lane::collective) : Result<void>();
        const bool open = connected.ok();
        // In the order of their numbers on all ranks: no two wait for one another.
        for (const auto& [place, contributions] : all) {
          if (connected.ok()) connected = collectives.connect(place, contributions);
        }
        return [this, request, opens, open, connected = std::move(connected)] {
          requests_->answer(request, connected);
          if (!opens) return;
          (*libraries_)[Lane::collective].state =
              open ? LaneActor::State::ready : LaneActor::State::absent;
          lane_opened();
        };
      });
  if (started && opens) lane.state = LaneActor::State::opening;
}

void Formation::lane_opened() {
  if (!held_) return;
  auto held = *std::exchange(held_, std::nullopt);
  on(held.request, held.connect);
}

void Formation::drop_held_connect() {
  if (!held_) return;
  requests_->answer(std::exchange(held_, std::nullopt)->request, kGivenUp);
}

void Formation::on(std::uint64_t request, const to_host::ContributeGroup& contribute) {
  if (!core_->life.active()) return requests_->answer(request, kGivenUp);
  const auto begun =
      begin({contribute.rank, contribute.size, contribute.group}, wire::GroupState::forming);
  if (!begun.ok()) return requests_->answer(request, begun.error());
  requests_->on_helper(request, [this, request, begun = *begun]() -> Helpers::Finish {
    auto share = share_of(begun);
    return [this, request, share = std::move(share)] {
      send_contribution(request, share.ok() ? Result<Blob>(share->bytes) : share.error());
    };
  });
}

void Formation::on(std::uint64_t request, to_host::ConnectGroup& connect) {
  if (!core_->life.active()) return requests_->answer(request, kGivenUp);
  auto joining =
      meet({connect.rank, connect.size, connect.group}, std::move(connect.contributions));
  if (!joining.ok()) return requests_->answer(request, joining.error());
  const bool started = requests_->on_helper(
      request, [this, request, joining = std::move(*joining)]() -> Helpers::Finish {
        auto connected = core_->engine->collectives().connect(joining.place, joining.contributions);
        return [this, request, connected = std::move(connected)] {
          --forming_groups_;
          requests_->answer(request, connected);
        };
      });
  if (started) ++forming_groups_;
}

void Formation::on(std::uint64_t, const to_host::DropGroup& drop) {
  meetings_.close(drop.group);
  (void)core_->helpers.start([this, number = drop.group]() -> Helpers::Finish {
    core_->engine->collectives().drop(number);
    return [] {};
  });
}

bool Formation::rests() const {
  const auto& lanes = core_->lanes;
  return lanes.issued(Lane::collective) == lanes.completed(Lane::collective) && !linking_ &&
         forming_groups_ == 0 && !channels_.busy();
}

void Formation::open_links(std::uint32_t communicator, std::vector<Link> links) {
  linking_ =
      core_->helpers.start([this, communicator, links = std::move(links)]() -> Helpers::Finish {
        auto opened = core_->engine->collectives().open_links(communicator, links);
        return [this, opened = std::move(opened)] {
          linking_ = false;
          if (opened.ok() || opened.code() == Errc::world_reformed) return;
          if (core_->life.lose_if_dead(opened)) return;
          if (core_->life.mode() == Life::Mode::active)
            core_->life.break_communicator(opened.error());
        };
      });
}

}  // namespace troupe::host
