#include "rank/net/links/link_session.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>

#include <troupe/clock.hpp>

#include "common/core/mix.hpp"
#include "rank/net/links/link_bulk.hpp"
#include "rank/net/links/link_messages.hpp"
#include "rank/net/mpi/mpi_session.hpp"

namespace troupe::rank_process {
namespace {

// Kinds of groups, beside those of Session::GroupTag.
constexpr std::uint32_t kEveryone = 16, kNeighbours = 17, kClock = 18;

std::uint64_t number_of(std::uint32_t kind, std::uint32_t number, const std::vector<int>& ranks) {
  Mix mix;
  mix.add(kind);
  mix.add(number);
  for (const int rank : ranks) mix.add(static_cast<std::uint64_t>(rank));
  return mix.value();
}

StartLog::Replay replay_of(std::uint32_t incarnation) {
  if (incarnation == 0) return StartLog::Replay::nothing;
  return keeper::moves(incarnation) == 0 ? StartLog::Replay::own : StartLog::Replay::others;
}

LinkChannel channel_of(Session::Channel channel) {
  switch (channel) {
    case Session::Channel::world: return LinkChannel::world;
    case Session::Channel::actors: return LinkChannel::actors;
    case Session::Channel::checks: return LinkChannel::checks;
    case Session::Channel::tokens: return LinkChannel::tokens;
  }
  return LinkChannel::world;
}

}  // namespace

std::unique_ptr<Session> LinkSession::open() {
  return std::unique_ptr<Session>(new LinkSession(KeeperLine::job()));
}

LinkSession::LinkSession(keeper::Job job)
    : hub_(std::move(job), KeeperLine::listener()),
      eras_(hub_.peers()),
      line_(hub_),
      start_(KeeperLine::start_log(), replay_of(hub_.job().incarnation)),
      end_(hub_, LinkChannel::end),
      ending_(hub_.rank(), hub_.size()) {
  const auto& card = hub_.job().card();
  place_ = {.rank = hub_.rank(),
            .size = hub_.size(),
            .local_rank = card.local_rank,
            .local_size = card.local_size,
            .node = card.node};
  const bool spins = has_cores_to_spare(1);
  hosts_ = std::make_shared<LinkPost>(hub_, eras_, LinkChannel::hosts, spins);
  background_ = std::make_shared<LinkPost>(hub_, eras_, LinkChannel::background, false);
  std::vector<int> all(static_cast<std::size_t>(size())), here;
  std::iota(all.begin(), all.end(), 0);
  std::copy_if(all.begin(), all.end(), std::back_inserter(here), [&](int rank) {
    return hub_.job().cards[static_cast<std::size_t>(rank)].node == card.node;
  });
  using Renewal = LinkExchange::Renewal;
  everyone_ = std::make_unique<HostGroup>(
      all, rank(), exchange(hosts_, all, rank(), kEveryone, 0, Renewal::at_once, {&start_, 0}),
      exchange(background_, all, rank(), kEveryone, 0, Renewal::when_asked));
  // Not its local rank, which counts spare places, too.
  const int among = static_cast<int>(std::find(here.begin(), here.end(), rank()) - here.begin());
  neighbours_ = std::make_unique<HostGroup>(
      here, among,
      exchange(hosts_, here, among, kNeighbours, 0, Renewal::at_once, {&start_, local_size()}));
  one_node_ = hub_.job().several_hosts == 0;
  respawns_ =
      std::make_unique<LinkRespawns>(LinkRespawns::Parts{hub_, eras_, start_, line_, *everyone_});
}

LinkSession::~LinkSession() {
  neighbours_.reset();
  everyone_.reset();
  if (forsaken()) return;
  KeeperLine::tell(
      {.kind = keeper::FromRank::Kind::goodbye, .status = status_, .time_ns = patience_.count()});
}

std::unique_ptr<Exchange> LinkSession::exchange(const std::shared_ptr<LinkPost>& post,
                                                const std::vector<int>& ranks, int own,
                                                std::uint32_t kind, std::uint32_t number,
                                                LinkExchange::Renewal renewal,
                                                LinkExchange::Start start) const {
  return std::make_unique<LinkExchange>(post, ranks, own, number_of(kind, number, ranks), renewal,
                                        start);
}

void LinkRespawns::expect(int cores) {
  expected_ = true;
  KeeperLine::tell(
      {.kind = keeper::FromRank::Kind::respawn, .cores = static_cast<std::uint32_t>(cores)});
}

void LinkRespawns::begin_run() {
  // The others have counted in another era what this rank has heard anew.
  if (parts_.start.is_open() && incarnation() > 0) parts_.everyone.count_anew();
  parts_.start.close();
}

void LinkRespawns::expect_no_more() {
  if (expected_) KeeperLine::tell({.kind = keeper::FromRank::Kind::leave});
}

bool LinkRespawns::learn(int rank, std::uint32_t incarnation) {
  if (!parts_.hub.peers().learn(rank, incarnation)) return false;
  parts_.hub.wake_all();
  return true;
}

void LinkRespawns::begin_era(std::uint32_t epoch, std::uint32_t deaths) {
  parts_.eras.begin({epoch, deaths});
  parts_.everyone.count_anew();
}

std::optional<std::array<std::uint64_t, 4>> LinkRespawns::secret() const {
  std::array<std::uint64_t, 4> secret{};
  for (std::size_t i = 0; i < secret.size(); ++i) {
    Mix mix;
    for (const auto word : parts_.hub.job().cookie) mix.add(word);
    mix.add(static_cast<std::uint64_t>(parts_.hub.rank()));
    mix.add(i);
    secret[i] = mix.value();
  }
  return secret;
}

Result<void> LinkSession::check_threads() const {
  if (!MpiSession::is_initialised()) return {};
  return Error{Errc::invalid, 0,
               "--on-rank-loss respawn: this program initialises MPI by itself, and would not "
               "outlive a rank"};
}

std::shared_ptr<const HostGroup> LinkSession::make_group(std::vector<int> ranks, GroupTag tag,
                                                         int number) {
  const int own = static_cast<int>(std::find(ranks.begin(), ranks.end(), rank()) - ranks.begin());
  const auto kind = static_cast<std::uint32_t>(tag);
  const auto which = static_cast<std::uint32_t>(number);
  using Renewal = LinkExchange::Renewal;
  const bool of_world = tag == GroupTag::world;
  auto host =
      exchange(hosts_, ranks, own, kind, which, of_world ? Renewal::at_once : Renewal::never);
  auto background =
      of_world ? exchange(background_, ranks, own, kind, which, Renewal::when_asked) : nullptr;
  return std::make_shared<const HostGroup>(std::move(ranks), own, std::move(host),
                                           std::move(background));
}

std::unique_ptr<Messages> LinkSession::messages(Session::Channel channel) {
  return std::make_unique<LinkMessages>(hub_, channel_of(channel));
}

std::unique_ptr<Bulk> LinkSession::bulk(Bulk::Receiver receiver) {
  return std::make_unique<LinkBulk>(hub_, std::move(receiver));
}

/// Rank 0 answers one node after the other, and of several round trips the fastest says most. Where
/// each rank is by now it says itself: others may not have heard of its last move.
std::chrono::nanoseconds LinkSession::clock_offset() {
  constexpr std::uint64_t kTrips = 16;
  std::int64_t offset = 0, fastest = INT64_MAX;
  const auto nodes = everyone_->gather(hub_.job().card().node);
  const auto first_on = [&](std::int32_t node) {
    return static_cast<int>(std::find(nodes.begin(), nodes.end(), node) - nodes.begin());
  };
  const std::uint64_t group = number_of(kClock, 0, {});
  const auto as_bytes = [](const std::int64_t& value) {
    return std::as_bytes(std::span(&value, 1));
  };
  for (int asking = 1; asking < size() && !start_.replays(); ++asking) {
    if (first_on(nodes[static_cast<std::size_t>(asking)]) != asking) continue;
    for (std::uint64_t trip = 0; trip < kTrips && (rank() == 0 || rank() == asking); ++trip) {
      const auto era = eras_.now();
      const LinkPost::Name ask{era, group, trip, 0}, answer{era, group, trip, 1};
      std::int64_t there = 0;
      if (rank() == 0) {
        (void)hosts_->receive(asking, ask);
        there = SteadyClock::time().count();
        hosts_->send(asking, answer, as_bytes(there));
        continue;
      }
      const auto before = SteadyClock::time().count();
      hosts_->send(0, ask, {});
      const auto told = hosts_->receive(0, answer);
      const auto after = SteadyClock::time().count();
      check(told.size() == sizeof there, "a clock's answer");
      std::copy(told.begin(), told.end(), reinterpret_cast<std::byte*>(&there));
      if (after - before >= fastest) continue;
      fastest = after - before;
      offset = there - (before + fastest / 2);
    }
  }
  const auto offsets = everyone_->gather(offset);
  const auto first = static_cast<std::size_t>(first_on(hub_.job().card().node));
  return std::chrono::nanoseconds(first < offsets.size() ? offsets[first] : offset);
}

bool LinkSession::all_have_ended(std::chrono::nanoseconds limit) {
  constexpr std::chrono::milliseconds kLook{1};
  const auto until = SteadyClock::time() + limit;
  for (;;) {
    (void)end_.look({.arrived = [this](int, const Links::Head& head, const std::vector<std::byte>&,
                                       std::byte*) { ending_.hear(head); }});
    if (ending_.advance(end_)) return true;
    if (forsaken() || SteadyClock::time() >= until) return false;
    end_.wait(kLook);
  }
}

void LinkSession::abort(int status) {
  KeeperLine::tell({.kind = keeper::FromRank::Kind::abort, .status = status});
  std::this_thread::sleep_for(std::chrono::seconds(60));  // the launcher ends this process
}

}  // namespace troupe::rank_process
