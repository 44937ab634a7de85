#include "world_simulation.hpp"

#include <algorithm>
#include <cstring>
#include <set>

namespace troupe::rank {

using Kind = WorldMessage::Kind;
using Order = DeviceDone::Order;

template <class Rule>
bool WorldSimulation::anyone(Rule rule) const {
  return std::any_of(nodes_.begin(), nodes_.end(), [&](const auto& node) { return rule(*node); });
}

/// One rank: its device host, its program, and the real member of the protocol.
class WorldSimulation::Node final : public MemberActions {
 public:
  Node(WorldSimulation* world, int rank)
      : world_(world),
        rank_(rank),
        member_(rank, this),
        relay_(
            {.rank = rank, .tree = {.size = world->options_.ranks, .radix = world->options_.radix}},
            [world, rank](int to, const WorldMessage& m) { world->send(rank, to, m); },
            [this](const WorldMessage& m) { member_.receive(m); }) {}

  // What the protocol orders.
  void send(const WorldMessage& message) override { relay_.up(message); }
  void close_world() override { accepting_ = false; }
  void halt(std::uint32_t round) override {
    if (failed_) return failed(round);
    if (open_order_ != 0) answer_late(open_order_);
    order(round);
    ++device_work_;  // what was under way ends unanswered
    if (detected_) return done(Order::halt, round);
    work(2'000, [this, round] { done(Order::halt, round); });
  }
  void quiesce(std::uint32_t round) override {
    if (failed_) return failed(round);
    order(round);
    everyone([&](const Node& node) { return node.halted_.contains(round); },
             "a communicator is given up before all have halted");
    connected_ = broken_ = false;
    if (detected_) return done(Order::quiesce, round);
    work(20'000, [this, round] { done(Order::quiesce, round); });
  }
  void replace(std::uint32_t round) override {
    if (failed_) return failed(round);
    order(round);
    if (round > 1)
      everyone([&](const Node& node) { return node.quiesced_.contains(round); },
               "replace before all have quiesced");
    replacing_ = round;
    if (!detected_) return work(2000, [this] { replaced(); });
    raise();
  }
  void promote(std::uint32_t round, std::uint32_t formation) override {
    if (failed_) return failed(round);
    order(round);
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
  void prepare_contribute(std::uint32_t formation) override {
    standby_work(3000, [this, formation] {
      std::vector<std::byte> name(sizeof formation);
      std::memcpy(name.data(), &formation, sizeof formation);
      member_.device_event(
          DeviceDone{.order = Order::contribute, .formation = formation, .outcome = name});
    });
  }
  void prepare_connect(std::uint32_t formation,
                       std::vector<std::vector<std::byte>> contributions) override {
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
  void lose_standby() {
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
  void contribute(std::uint32_t round) override {
    work(3000, [this, round] {
      std::vector<std::byte> name(sizeof(round) + sizeof(rank_));
      std::memcpy(name.data(), &round, sizeof round);
      std::memcpy(name.data() + sizeof round, &rank_, sizeof rank_);
      member_.device_event(DeviceDone{.order = Order::contribute, .round = round, .outcome = name});
    });
  }
  void connect(std::uint32_t round, std::vector<std::vector<std::byte>> contributions) override {
    order(round);
    everyone([&](const Node& node) { return node.replaced_.contains(round); },
             "form before all are replaced");
    if (contributions.size() != world_->nodes_.size())
      world_->violation("contributions are missing");
    for (int peer = 0; peer < static_cast<int>(contributions.size()); ++peer) {
      if (world_->nodes_[static_cast<std::size_t>(peer)]->member_.spectator()) continue;
      const auto& name = contributions[static_cast<std::size_t>(peer)];
      if (name.size() != 8 || std::memcmp(name.data(), &round, 4) != 0 ||
          std::memcmp(name.data() + 4, &peer, 4) != 0) {
        world_->violation("a contribution of another round or rank");
      }
    }
    work(30'000, [this, round] {
      if (world_->anyone([](const Node& node) { return node.missing(); })) {
        if (world_->chance(50)) return;  // hangs until it is aborted
        return member_.device_event(
            DeviceDone{.order = Order::connect,
                       .round = round,
                       .outcome = Error{Errc::library, 2, "a peer is gone"}});
      }
      connected_ = true;
      formed_.insert(round);
      member_.device_event(DeviceDone{.order = Order::connect, .round = round});
    });
  }
  void verify(std::uint32_t round, std::uint32_t epoch) override {
    order(round);
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
  void regroup(std::uint32_t round) override {
    if (round != open_order_) world_->violation("regroup out of order");
  }
  void restore(std::uint32_t round, std::int64_t step) override {
    order(round);
    everyone([&](const Node& node) { return node.verified_.contains(round); },
             "restore before all have verified");
    work(8000, [this, round, step] { roll_back(round, step); });
  }
  void activate(std::uint32_t epoch, std::int64_t stable,
                std::vector<RecoveryReport> reports) override {
    if (epoch <= epoch_) world_->violation("the epoch goes back");
    if (epoch != world_->supervisor_->epoch())
      world_->violation("active in another epoch than the supervisor's");
    epoch_ = epoch;
    accepting_ = !member_.spectator();
    if (member_.excluded() != excluded_) start_anew();
    everyone([&](const Node& node) { return !node.accepting_ || node.epoch_ == epoch; },
             "two epochs accept collectives");
    stable_ = stable;
    finishing_ = false;
    if (accepting_) raise_standby();
    if (rank_ == 0) world_->reports_.insert(world_->reports_.end(), reports.begin(), reports.end());
    continue_program();
  }
  void stopping(std::int64_t since) override {
    if (!stopping_since_) stopping_since_ = since;
  }
  void stable(std::int64_t step) override {
    world_->trace("rank %d: stable %d", rank_, static_cast<int>(step));
    stable_ = step;
    continue_program();
  }
  void all_finished() override {
    ++runs_;
    halves_[0] = halves_[1] = complete_ = stable_ = -1;  // the next run begins
    current_ = 1;
    finishing_ = false;
    end_step_ = INT64_MAX;
    if (stopping_since_) stopping_since_ = -1;
    continue_program();
  }
  void stop(const Error& error) override { stopped_ = error; }
  void strike(Phase phase) override {
    auto& struck = world_->struck_;
    const auto it = std::find(struck.begin(), struck.end(), std::pair(rank_, phase));
    if (it == struck.end()) return;
    struck.erase(it);
    die("struck");
  }

  // Faults.
  void die(const char* kind) {
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
  void break_communicator() {
    if (!connected_) return;
    world_->after(world_->some_time(50'000), [this, work = device_work_] {
      if (!connected_ || !alive_ || broken_ || work != device_work_) return;
      broken_ = true;
      world_->trace("rank %d: communicator broken", rank_);
      member_.device_event(DeviceFault{"communicator", Error{Errc::peer_lost, 0, "a peer is gone"},
                                       world_->now_, world_->now_});
    });
  }
  void ask_to_stop() { member_.ask_to_stop(); }
  /// For good, or until revive().
  void fail(const Error& error) {
    if (failed_ || stopped_ || (epoch_ == 0 && world_->options_.shrink)) return;
    world_->trace("rank %d: failed", rank_);
    failed_ = error;
    alive_ = connected_ = standby_ = false;
    detected_ = true;
    replacing_ = 0;
    ++device_work_, ++standby_work_, ++incarnation_;
    member_.device_event(DeviceFailed{error});
  }
  /// A spectator's device host is there again; one that is not yet a spectator waits.
  void revive() {
    if (!failed_ || stopped_) return;
    if (!member_.spectator() || member_.phase() != Phase::active)
      return world_->after(Micros(50'000), [this] { revive(); });
    world_->trace("rank %d: revived", rank_);
    failed_.reset();
    alive_ = true;
    detected_ = false;
    member_.device_event(DeviceRevived{});
  }
  [[nodiscard]] bool missing() const { return !alive_ && !member_.spectator(); }
  void mute() { muted_ = true; }

  [[nodiscard]] bool settled() const {
    if (member_.spectator()) return member_.phase() == Phase::active;
    return accepting_ && alive_ && connected_ && !broken_ && member_.phase() == Phase::active;
  }

  WorldSimulation* world_;
  int rank_;
  WorldMember member_;
  WorldRelay relay_;
  std::optional<Error> stopped_;
  std::optional<Error> failed_;         ///< the device is given up
  std::vector<std::int32_t> excluded_;  ///< of the epoch before
  bool alive_ = true, detected_ = false, connected_ = false, broken_ = false, muted_ = false,
       accepting_ = false;
  std::uint32_t incarnation_ = 1;  ///< of the device host
  std::uint64_t device_work_ = 0;  ///< changes when what is under way is dropped
  bool standby_ = false;
  std::uint32_t standby_formation_ = 0;  ///< whose communicator it has
  std::uint64_t standby_work_ = 0;
  std::uint32_t open_order_ = 0;  ///< round of the newest order
  std::uint32_t replacing_ = 0;   ///< round of an unanswered replace
  std::set<std::uint32_t> halted_, quiesced_, replaced_, formed_, verified_;  ///< in which rounds
  std::uint32_t epoch_ = 0;
  std::int64_t halves_[2] = {-1, -1};  ///< the program's A/B pair
  int current_ = 1;
  std::int64_t complete_ = -1;  ///< its newest commit that is complete
  std::int64_t stable_ = -1;
  std::optional<std::int64_t> stopping_since_;
  std::int64_t end_step_ = INT64_MAX;  ///< the commit with which a run ends that was asked to
  bool finishing_ = false;
  int runs_ = 0;

 private:
  template <class Rule>
  void everyone(Rule rule, const char* what) {
    for (const auto& node : world_->nodes_) {
      if (!node->member_.spectator() && !rule(*node))
        world_->violation("rank " + std::to_string(rank_) + ": " + what);
    }
  }
  void failed(std::uint32_t round) {
    order(round);
    member_.device_event(DeviceFailed{*failed_});
  }
  /// With other members the program begins its run again.
  void start_anew() {
    excluded_ = member_.excluded();
    halves_[0] = halves_[1] = complete_ = -1;
    current_ = 1;
    end_step_ = INT64_MAX;
  }
  void order(std::uint32_t round) {
    world_->trace("rank %d: round %u %s", rank_, round, to_string(member_.phase()).data());
    if (round < open_order_) world_->violation("an order of an older round");
    open_order_ = round;
    replacing_ = 0;
  }
  /// What the device does next, unless it dies or is stopped before.
  void work(std::uint32_t limit_us, std::function<void()> then) {
    if (!alive_ && !detected_) return;  // nobody there, and nobody knows
    if (world_->network_.is_slow(rank_)) limit_us *= SimulatedNetwork::kSlowness;
    world_->after(world_->some_time(limit_us), [this, work = device_work_, then = std::move(then)] {
      if (alive_ && work == device_work_ && !muted_) then();
    });
  }
  void standby_work(std::uint32_t limit_us, std::function<void()> then) {
    world_->after(world_->some_time(limit_us),
                  [this, work = standby_work_, then = std::move(then)] {
                    if (standby_ && work == standby_work_ && !muted_) then();
                  });
  }
  void raise_standby() {
    world_->after(world_->some_time(400'000), [this, epoch = epoch_] {
      if (!accepting_ || epoch != epoch_) return;
      standby_ = true;
      standby_formation_ = 0;
      ++standby_work_;
      member_.device_event(DeviceStandby{true});
    });
  }
  void done(Order what, std::uint32_t round) {
    if (what == Order::halt) halted_.insert(round);
    if (what == Order::quiesce) quiesced_.insert(round);
    member_.device_event(DeviceDone{.order = what, .round = round});
  }
  /// What was ordered in an earlier round may still be answered, by a helper that was at it.
  void answer_late(std::uint32_t round) {
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
  /// A new device host takes the place of a dead one.
  void raise() {
    const auto incarnation = ++incarnation_;
    ++device_work_;
    world_->after(world_->some_time(100'000), [this, incarnation] {
      if (incarnation != incarnation_) return;
      alive_ = true;
      detected_ = false;
      if (replacing_ != 0) replaced();
    });
  }
  void replaced() {
    const auto round = std::exchange(replacing_, 0u);
    replaced_.insert(round);
    done(Order::replace, round);
  }

  // The program, as World::run and Checkpoint have it.
  void continue_program() {
    if (!accepting_ || finishing_) return;
    if (complete_ == std::min(end_step_, world_->options_.last_step) && stable_ >= complete_) {
      finishing_ = true;
      world_->after(world_->some_time(5000), [this, epoch = epoch_] {
        if (epoch == member_.epoch()) member_.finished();
      });
      return;
    }
    if (complete_ != halves_[current_] || stable_ < complete_)
      return;  // one under way, or the half still needed
    if (stopping_since_ && *stopping_since_ <= complete_)
      end_step_ = std::min(end_step_, complete_ + 1);
    current_ = 1 - current_;
    halves_[current_] = complete_ + 1;
    work(10'000, [this, epoch = epoch_, step = complete_ + 1, run = runs_] {
      if (broken_ || run != runs_) return;
      complete_ = step;
      world_->after(world_->some_time(world_->chance(10) ? 200'000 : 2000), [this, epoch, step] {
        if (epoch == member_.epoch()) member_.committed(step);
      });
    });
  }
  void roll_back(std::uint32_t round, std::int64_t step) {
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
};

WorldSimulation::WorldSimulation(const Options& options)
    : options_(options),
      random_(options.seed),
      network_(options.network, &random_,
               [this](std::chrono::nanoseconds delay, std::function<void()> run) {
                 after(delay, std::move(run));
               }) {
  for (int rank = 0; rank < options.ranks; ++rank)
    nodes_.push_back(std::make_unique<Node>(this, rank));
  supervisor_ = std::make_unique<WorldSupervisor>(
      WorldSupervisor::Options{
          .size = options.ranks, .max_rounds = options.max_rounds, .shrink = options.shrink},
      [this](const WorldMessage& message) { announce(message); });
  supervisor_->start(now_);
  after(std::chrono::milliseconds(100), [this] { tick(); });
}

WorldSimulation::~WorldSimulation() = default;

/// The supervisor's broadcast.
void WorldSimulation::announce(const WorldMessage& message) {
  if (message.kind == Kind::stable) {
    for (const auto& node : nodes_) {
      if (!node->member_.spectator() && node->complete_ < message.step)
        violation("stable before every rank has committed");
    }
  }
  if (message.kind == Kind::all_finished) {
    ++runs_finished_;
    const Node* first = nullptr;
    for (const auto& node : nodes_) {
      if (node->member_.spectator()) continue;
      if (first == nullptr) first = node.get();
      if (node->complete_ != first->complete_)
        violation("the ranks ended their runs at different steps");
    }
    if (first != nullptr) last_end_ = first->complete_;
  }
  send(0, 0, message);
}

/// From rank to rank, or from rank 0's relay to the supervisor.
void WorldSimulation::send(int from, int to, const WorldMessage& message) {
  if (to == WorldRelay::kToSupervisor) return supervisor_->receive(message, now_);
  const auto decoded = decode_world_message(encode(message));
  if (!decoded.ok()) return violation("a message that cannot be read");
  network_.send(from, to, [this, to, copy = *decoded] {
    auto& node = *nodes_[static_cast<std::size_t>(to)];
    if (copy.kind < Kind::order) return node.relay_.up(copy);
    if (!node.stopped_) node.relay_.down(copy, now_);
  });
}

template <class... Parts>
void WorldSimulation::trace(const char* format, Parts... parts) const {
  if (!options_.trace) return;
  std::printf("%10.3f ms  ", to_ms(now_));
  std::printf(format, parts...);
  std::printf("\n");
}

void WorldSimulation::kill_at(Micros when, int rank) {
  after(when, [this, rank] { nodes_[static_cast<std::size_t>(rank)]->die("killed"); });
}
void WorldSimulation::lose_standby_at(Micros when, int rank) {
  after(when, [this, rank] { nodes_[static_cast<std::size_t>(rank)]->lose_standby(); });
}
void WorldSimulation::break_communicator_at(Micros when, int rank) {
  after(when, [this, rank] { nodes_[static_cast<std::size_t>(rank)]->break_communicator(); });
}
void WorldSimulation::fail_at(Micros when, int rank, const Error& error) {
  after(when, [this, rank, error] { nodes_[static_cast<std::size_t>(rank)]->fail(error); });
}
void WorldSimulation::revive_at(Micros when, int rank) {
  after(when, [this, rank] { nodes_[static_cast<std::size_t>(rank)]->revive(); });
}
int WorldSimulation::spectators() const {
  return static_cast<int>(std::count_if(
      nodes_.begin(), nodes_.end(), [](const auto& node) { return node->member_.spectator(); }));
}
void WorldSimulation::ask_to_stop_at(Micros when, int rank) {
  after(when, [this, rank] { nodes_[static_cast<std::size_t>(rank)]->ask_to_stop(); });
}
void WorldSimulation::mute(int rank) {
  nodes_[static_cast<std::size_t>(rank)]->mute();
}

void WorldSimulation::after(std::chrono::nanoseconds delay, std::function<void()> run) {
  events_.push({now_ + delay, ++order_, std::move(run)});
}

void WorldSimulation::violation(const std::string& what) {
  ADD_FAILURE() << "at " << to_ms(now_) << " ms: " << what;
  broken_ = true;
}

void WorldSimulation::tick() {
  supervisor_->tick(now_);
  for (const auto& node : nodes_) node->relay_.tick(now_);
  after(std::chrono::milliseconds(100), [this] { tick(); });
}

bool WorldSimulation::run(const std::function<bool()>& until) {
  for (int steps = 0; steps < 300'000 && !broken_; ++steps) {
    if (until()) return true;
    auto event = events_.top();
    events_.pop();
    now_ = event.at;
    event.run();
    if (supervisor_->epoch() < last_epoch_ || supervisor_->epoch() > last_epoch_ + 1)
      violation("the epoch jumps");
    last_epoch_ = supervisor_->epoch();
  }
  return false;
}

bool WorldSimulation::settled() const {
  return supervisor_->phase() == Phase::active &&
         std::all_of(nodes_.begin(), nodes_.end(), [&](const auto& node) {
           return node->settled() && node->epoch_ == supervisor_->epoch();
         });
}

bool WorldSimulation::all_stopped() const {
  return std::all_of(nodes_.begin(), nodes_.end(),
                     [](const auto& node) { return node->stopped_.has_value(); });
}

Error WorldSimulation::stop_of(int rank) const {
  return nodes_[static_cast<std::size_t>(rank)]->stopped_.value_or(
      Error{Errc::ok, 0, "not stopped"});
}

}  // namespace troupe::rank
