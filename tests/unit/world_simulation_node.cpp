#include "world_simulation_node.hpp"

#include <cstring>

#include "common/core/one_of.hpp"

namespace troupe::rank_process {

// What the protocol orders.

void WorldSimulation::Node::order(DeviceOrder order) {
  if (order.what == Order::contribute)
    return order.prepares() ? prepare_contribute(order.formation) : contribute(order.round);
  if (order.what == Order::connect) {
    return order.prepares() ? prepare_connect(order.formation, *order.contributions)
                            : connect(order.round, *order.contributions);
  }
  if (failed_) {
    begin(order.round);
    return member_.device_event(DeviceFailed{*failed_});
  }
  switch (order.what) {
    case Order::halt: return halt(order.round);
    case Order::quiesce: return quiesce(order.round);
    case Order::replace: return replace(order.round);
    default: return promote(order.round, order.formation);
  }
}

void WorldSimulation::Node::halt(std::uint32_t round) {
  if (open_order_ != 0) answer_late(open_order_);
  begin(round);
  ++device_work_;  // what was under way ends unanswered
  if (detected_) return done(Order::halt, round);
  work(2'000, [this, round] { done(Order::halt, round); });
}

void WorldSimulation::Node::quiesce(std::uint32_t round) {
  begin(round);
  everyone([&](const Node& node) { return node.halted_.contains(round); },
           "a communicator is given up before all have halted");
  connected_ = broken_ = false;
  if (detected_) return done(Order::quiesce, round);
  work(20'000, [this, round] { done(Order::quiesce, round); });
}

void WorldSimulation::Node::replace(std::uint32_t round) {
  begin(round);
  if (round > 1)
    everyone([&](const Node& node) { return node.quiesced_.contains(round); },
             "replace before all have quiesced");
  replacing_ = round;
  if (!detected_) return work(2000, [this] { replaced(); });
  raise();
}

void WorldSimulation::Node::promote(std::uint32_t round, std::uint32_t formation) {
  begin(round);
  everyone([&](const Node& node) { return node.quiesced_.contains(round); },
           "promotion before all have quiesced");
  const bool there = standby_ && standby_formation_ == formation;
  standby_ = false;
  if (!there) {
    return member_.device_event(DeviceDone{.order = Order::promote,
                                           .round = round,
                                           .outcome = Error{Errc::device_lost, 0, "no standby"}});
  }
  // The old host ends, healthy or not, before the memory is mapped.
  alive_ = false;
  detected_ = true;  // until the standby is in its place
  const auto incarnation = ++incarnation_;
  ++device_work_;
  world_->after(world_->some_time(100'000), [this, round, incarnation] {
    if (incarnation != incarnation_ || round != open_order_) return;
    alive_ = connected_ = true;
    detected_ = false;
    formed_.insert(round);
    replaced_.insert(round);
    member_.device_event(DeviceDone{.order = Order::promote, .round = round});
  });
}

void WorldSimulation::Node::prepare_contribute(std::uint32_t formation) {
  standby_work(3000, [this, formation] {
    std::vector<std::byte> name(sizeof formation);
    std::memcpy(name.data(), &formation, sizeof formation);
    member_.device_event(
        DeviceDone{.order = Order::contribute, .formation = formation, .outcome = name});
  });
}

void WorldSimulation::Node::prepare_connect(std::uint32_t formation,
                                            const DeviceOrder::Blobs& contributions) {
  for (const auto& name : contributions) {
    if (name.empty() && !member_.excluded().empty()) continue;  // a spectator's
    if (name.size() != sizeof formation ||
        std::memcmp(name.data(), &formation, sizeof formation) != 0)
      world_->violation("a contribution of another formation");
  }
  standby_work(500'000, [this, formation] {
    const bool peers = !world_->anyone(
        [](const Node& node) { return !node.standby_ && !node.member_.spectator(); });
    if (!peers && world_->chance(50)) return;  // hangs
    if (peers) standby_formation_ = formation;
    using Outcome = Result<std::vector<std::byte>>;
    member_.device_event(
        DeviceDone{.order = Order::connect,
                   .formation = formation,
                   .outcome = peers ? Outcome(std::vector<std::byte>())
                                    : Outcome(Error{Errc::library, 2, "a peer is gone"})});
  });
}

void WorldSimulation::Node::lose_standby() {
  if (!standby_ || stopped_) return;
  world_->trace("rank %d: standby lost", rank_);
  standby_ = false;
  standby_formation_ = 0;
  ++standby_work_;
  world_->after(world_->some_time(50'000), [this] {
    if (member_.phase() == Phase::active) member_.device_event(DeviceStandby{false});
    raise_standby();
  });
}

void WorldSimulation::Node::contribute(std::uint32_t round) {
  work(3000, [this, round] {
    std::vector<std::byte> name(sizeof(round) + sizeof(rank_));
    std::memcpy(name.data(), &round, sizeof round);
    std::memcpy(name.data() + sizeof round, &rank_, sizeof rank_);
    if (world_->options_.one_root && first_member() != rank_) name.clear();
    member_.device_event(DeviceDone{.order = Order::contribute, .round = round, .outcome = name});
  });
}

/// Of the world that is being formed.
int WorldSimulation::Node::first_member() const {
  const auto& out = member_.excluded();
  int first = 0;
  while (std::binary_search(out.begin(), out.end(), first)) ++first;
  return first;
}

void WorldSimulation::Node::connect(std::uint32_t round, const DeviceOrder::Blobs& contributions) {
  begin(round);
  everyone([&](const Node& node) { return node.replaced_.contains(round); },
           "form before all are replaced");
  if (contributions.size() != world_->nodes_.size()) world_->violation("contributions are missing");
  for (int peer = 0; peer < static_cast<int>(contributions.size()); ++peer) {
    if (world_->nodes_[static_cast<std::size_t>(peer)]->member_.spectator()) continue;
    const auto& name = contributions[static_cast<std::size_t>(peer)];
    if (world_->options_.one_root && first_member() != peer) {
      if (!name.empty()) world_->violation("two ranks name the communicator");
      continue;
    }
    if (name.size() != 8 || std::memcmp(name.data(), &round, 4) != 0 ||
        std::memcmp(name.data() + 4, &peer, 4) != 0) {
      world_->violation("a contribution of another round or rank");
    }
  }
  work(30'000, [this, round] {
    if (world_->anyone([](const Node& node) { return node.missing(); })) {
      if (world_->chance(50)) return;  // hangs until it is aborted
      return member_.device_event(DeviceDone{.order = Order::connect,
                                             .round = round,
                                             .outcome = Error{Errc::library, 2, "a peer is gone"}});
    }
    connected_ = true;
    formed_.insert(round);
    member_.device_event(DeviceDone{.order = Order::connect, .round = round});
  });
}

void WorldSimulation::Node::verify(std::uint32_t round, std::uint32_t epoch) {
  begin(round);
  everyone([&](const Node& node) { return node.formed_.contains(round); },
           "verify before all have formed");
  if (epoch != world_->last_epoch_ + 1)
    world_->violation("verify of epoch " + std::to_string(epoch));
  work(3000, [this, round] {
    const bool peers = !world_->anyone([](const Node& node) { return node.missing(); });
    if (broken_ || (!peers && world_->chance(60))) return;  // its collective hangs
    if (peers) verified_.insert(round);
    member_.verified(round,
                     peers ? Result<void>() : Result<void>(Error{Errc::library, 1, "wrong sum"}));
  });
}

void WorldSimulation::Node::regroup(std::uint32_t round) {
  if (round != open_order_) world_->violation("regroup out of order");
  grouped_in_ = round;
  await_group(round);
}

/// A group is made once all of its ranks have got there, and they may have gone on since.
void WorldSimulation::Node::await_group(std::uint32_t round) {
  const bool made = !world_->anyone(
      [&](const Node& node) { return !node.member_.spectator() && node.grouped_in_ < round; });
  world_->after(world_->some_time(5'000), [this, round, made] {
    if (!made) return await_group(round);
    (void)member_.regrouped(round);
  });
}

void WorldSimulation::Node::restore(std::uint32_t round, std::int64_t step) {
  begin(round);
  everyone([&](const Node& node) { return node.verified_.contains(round); },
           "restore before all have verified");
  work(8000, [this, round, step] { roll_back(round, step); });
}

void WorldSimulation::Node::activate(const from_supervisor::Activate& activate) {
  const auto epoch = activate.epoch;
  if (epoch <= epoch_) world_->violation("the epoch goes back");
  if (epoch != world_->supervisor_->epoch())
    world_->violation("active in another epoch than the supervisor's");
  epoch_ = epoch;
  accepting_ = !member_.spectator();
  if (member_.excluded() != excluded_) start_anew();
  everyone([&](const Node& node) { return !node.accepting_ || node.epoch_ == epoch; },
           "two epochs accept collectives");
  flushed_ = all_flushed_ = stable_ = activate.stable;
  finishing_ = false;
  if (accepting_) raise_standby();
  if (rank_ == 0)
    world_->reports_.insert(world_->reports_.end(), activate.reports.begin(),
                            activate.reports.end());
  continue_program();
}

void WorldSimulation::Node::stopping(std::int64_t since) {
  if (!stopping_since_) stopping_since_ = since;
}

/// No program has errors of its own, and none asks where others are.
void WorldSimulation::Node::pass_on(const SupervisorMessage& message) {
  std::visit(
      [this]<class Kind>(const Kind& said) {
        if constexpr (kIsOneOf<Kind, from_supervisor::AllFlushed, from_supervisor::Inquire,
                               from_supervisor::HealthTold, from_supervisor::Stop>)
          this->on(said);
      },
      message);
}

void WorldSimulation::Node::on(const from_supervisor::AllFlushed& flushed) {
  world_->trace("rank %d: all flushed %d", rank_, static_cast<int>(flushed.step));
  all_flushed_ = flushed.step;
  continue_program();
}

void WorldSimulation::Node::stable(std::int64_t step) {
  world_->trace("rank %d: stable %d", rank_, static_cast<int>(step));
  stable_ = step;
  continue_program();
}

void WorldSimulation::Node::all_finished(std::int64_t) {
  ++runs_;
  halves_[0] = halves_[1] = complete_ = -1;  // the next run begins
  flushed_ = all_flushed_ = stable_ = -1;
  current_ = 1;
  finishing_ = false;
  end_step_ = INT64_MAX;
  if (stopping_since_) stopping_since_ = -1;
  continue_program();
}

void WorldSimulation::Node::on(const from_supervisor::Inquire& inquire) {
  work(50'000, [this, inquiry = inquire.inquiry] {
    relay_.up(from_rank::Standing{
        .rank = rank_, .inquiry = inquiry, .text = "at work", .step = complete_});
  });
}

void WorldSimulation::Node::strike(Phase phase) {
  auto& struck = world_->struck_;
  const auto it = std::find(struck.begin(), struck.end(), std::pair(rank_, phase));
  if (it == struck.end()) return;
  struck.erase(it);
  die("struck");
}

// Faults.

void WorldSimulation::Node::die(const char* kind) {
  if (!alive_ || stopped_) return;
  world_->trace("rank %d: %s", rank_, kind);
  alive_ = connected_ = false;
  ++device_work_;
  const auto at = world_->now_;
  world_->after(world_->some_time(150'000), [this, at, incarnation = incarnation_] {
    if (incarnation != incarnation_ || alive_) return;
    detected_ = true;
    world_->trace("rank %d: death detected", rank_);
    if (replacing_ != 0) return raise();  // it died on its way: nobody else's business
    member_.device_event(
        DeviceFault{"kill", Error{Errc::device_lost, 9, "killed"}, at, world_->now_});
    if (member_.phase() == Phase::halt && !halted_.contains(open_order_))
      done(Order::halt, open_order_);
    if (member_.phase() == Phase::quiesce && !quiesced_.contains(open_order_))
      done(Order::quiesce, open_order_);
  });
  for (auto& peer : world_->nodes_) {
    if (peer.get() != this && world_->chance(40)) peer->break_communicator();
  }
}

void WorldSimulation::Node::break_communicator() {
  if (!connected_) return;
  world_->after(world_->some_time(50'000), [this, work = device_work_] {
    if (!connected_ || !alive_ || broken_ || work != device_work_) return;
    broken_ = true;
    world_->trace("rank %d: communicator broken", rank_);
    member_.device_event(DeviceFault{"communicator", Error{Errc::peer_lost, 0, "a peer is gone"},
                                     world_->now_, world_->now_});
  });
}

void WorldSimulation::Node::fail(const Error& error) {
  if (failed_ || stopped_ || (epoch_ == 0 && world_->options_.shrink)) return;
  world_->trace("rank %d: failed", rank_);
  failed_ = error;
  alive_ = connected_ = standby_ = false;
  detected_ = true;
  replacing_ = 0;
  ++device_work_, ++standby_work_, ++incarnation_;
  member_.device_event(DeviceFailed{error});
}

void WorldSimulation::Node::withdraw() {
  if (failed_ || stopped_) return;
  world_->trace("rank %d: withdraws", rank_);
  member_.withdraw();
  world_->after(Micros(50'000), [this] { withdraw(); });
}

void WorldSimulation::Node::retire() {
  if (!member_.spectator()) world_->violation("a member's device is given up");
  fail({Errc::device_failed, 0, "its GPU is failing"});
}

void WorldSimulation::Node::revive() {
  if (!failed_ || stopped_) return;
  if (!member_.spectator() || member_.phase() != Phase::active)
    return world_->after(Micros(50'000), [this] { revive(); });
  world_->trace("rank %d: revived", rank_);
  failed_.reset();
  alive_ = true;
  detected_ = false;
  member_.device_event(DeviceRevived{});
}

bool WorldSimulation::Node::settled() const {
  if (member_.spectator()) return member_.phase() == Phase::active;
  return accepting_ && alive_ && connected_ && !broken_ && member_.phase() == Phase::active;
}

void WorldSimulation::Node::start_anew() {
  excluded_ = member_.excluded();
  halves_[0] = halves_[1] = complete_ = -1;
  current_ = 1;
  end_step_ = INT64_MAX;
}

void WorldSimulation::Node::begin(std::uint32_t round) {
  world_->trace("rank %d: round %u %s", rank_, round, to_string(member_.phase()).data());
  if (round < open_order_) world_->violation("an order of an older round");
  open_order_ = round;
  replacing_ = 0;
}

void WorldSimulation::Node::work(std::uint32_t limit_us, std::function<void()> then) {
  if (!alive_ && !detected_) return;  // nobody there, and nobody knows
  if (world_->network_.is_slow(rank_)) limit_us *= SimulatedNetwork::kSlowness;
  world_->after(world_->some_time(limit_us), [this, work = device_work_, then = std::move(then)] {
    if (alive_ && work == device_work_ && !muted_) then();
  });
}

void WorldSimulation::Node::standby_work(std::uint32_t limit_us, std::function<void()> then) {
  world_->after(world_->some_time(limit_us), [this, work = standby_work_, then = std::move(then)] {
    if (standby_ && work == standby_work_ && !muted_) then();
  });
}

void WorldSimulation::Node::raise_standby() {
  world_->after(world_->some_time(400'000), [this, epoch = epoch_] {
    if (!accepting_ || epoch != epoch_) return;
    standby_ = true;
    standby_formation_ = 0;
    ++standby_work_;
    member_.device_event(DeviceStandby{true});
  });
}

void WorldSimulation::Node::done(Order what, std::uint32_t round) {
  if (what == Order::halt) halted_.insert(round);
  if (what == Order::quiesce) quiesced_.insert(round);
  member_.device_event(DeviceDone{.order = what, .round = round});
}

void WorldSimulation::Node::answer_late(std::uint32_t round) {
  for (const auto what :
       {Order::halt, Order::quiesce, Order::replace, Order::contribute, Order::connect}) {
    if (!world_->chance(20)) continue;
    world_->after(world_->some_time(100'000), [this, what, round] {
      const Error aborted{Errc::library, 6, "aborted"};
      using Outcome = Result<std::vector<std::byte>>;
      member_.device_event(DeviceDone{
          .order = what,
          .round = round,
          .outcome = world_->chance(50) ? Outcome(aborted) : Outcome(std::vector<std::byte>{})});
    });
  }
}

void WorldSimulation::Node::raise() {
  const auto incarnation = ++incarnation_;
  ++device_work_;
  world_->after(world_->some_time(100'000), [this, incarnation] {
    if (incarnation != incarnation_) return;
    alive_ = true;
    detected_ = false;
    if (replacing_ != 0) replaced();
  });
}

void WorldSimulation::Node::replaced() {
  const auto round = std::exchange(replacing_, 0u);
  replaced_.insert(round);
  done(Order::replace, round);
}

// The program, as World::run and Checkpoint have it.

void WorldSimulation::Node::continue_program() {
  if (!accepting_ || finishing_) return;
  if (complete_ == std::min(end_step_, world_->options_.last_step) && stable_ >= complete_) {
    finishing_ = true;
    world_->after(world_->some_time(5000), [this, epoch = epoch_] {
      if (epoch == member_.epoch()) member_.finished(complete_);
    });
    return;
  }
  if (complete_ != halves_[current_] || stable_ < complete_)
    return;  // one under way, or the half still needed
  if (stopping_since_ && *stopping_since_ <= complete_)
    end_step_ = std::min(end_step_, complete_ + 1);
  if (flushed_ <= complete_) {
    flushed_ = complete_ + 1;
    world_->after(world_->some_time(2000), [this, epoch = epoch_, step = flushed_] {
      if (epoch == member_.epoch()) member_.flushed(step);
    });
  }
  if (all_flushed_ <= complete_) return;
  current_ = 1 - current_;
  halves_[current_] = complete_ + 1;
  work(10'000, [this, epoch = epoch_, step = complete_ + 1, run = runs_] {
    if (broken_ || run != runs_) return;
    complete_ = step;
    world_->after(world_->some_time(world_->chance(10) ? 200'000 : 2000), [this, epoch, step] {
      const RankPace pace{.wall_us = step};
      if (epoch == member_.epoch())
        member_.committed(step, step % 4 == 0 ? std::optional(pace) : std::nullopt);
    });
  });
}

void WorldSimulation::Node::roll_back(std::uint32_t round, std::int64_t step) {
  const auto repeated = std::max<std::int64_t>(0, complete_ - step);
  if (step < 0) {
    halves_[0] = halves_[1] = -1;
  } else if (halves_[0] == step || halves_[1] == step) {
    current_ = halves_[0] == step ? 0 : 1;
    halves_[1 - current_] = -1;
  } else {
    world_->violation("rank " + std::to_string(rank_) + " has no commit of step " +
                      std::to_string(step));
  }
  complete_ = step;
  end_step_ = INT64_MAX;
  member_.restored(round, {}, complete_, repeated);
}

}  // namespace troupe::rank_process
