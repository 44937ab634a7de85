#include "world_simulation.hpp"

#include <algorithm>
#include <set>

#include "world_simulation_node.hpp"

namespace troupe::rank_process {

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
      [this](const SupervisorMessage& message) { announce(message); });
  inquiry_ = std::make_unique<Inquiry>(
      options.ranks, [this](const SupervisorMessage& message) { announce(message); });
  supervisor_->start(now_);
  after(std::chrono::milliseconds(100), [this] { tick(); });
}

WorldSimulation::~WorldSimulation() = default;

/// The supervisor's broadcast.
void WorldSimulation::announce(const SupervisorMessage& message) {
  std::visit([this](const auto& said) { judge(said); }, message);
  send(0, 0, message);
}

void WorldSimulation::judge(const from_supervisor::AllFlushed& flushed) {
  for (const auto& node : nodes_) {
    if (!node->member_.spectator() && node->flushed_ < flushed.step)
      violation("all flushed before every rank is");
  }
}

void WorldSimulation::judge(const from_supervisor::Stable& stable) {
  for (const auto& node : nodes_) {
    if (!node->member_.spectator() && node->complete_ < stable.step)
      violation("stable before every rank has committed");
  }
}

void WorldSimulation::judge(const from_supervisor::AllFinished&) {
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

/// A group is made by its members together: none may have been left out, or wait for the others.
void WorldSimulation::judge(const from_supervisor::Activate& activate) {
  std::set<std::uint32_t> rounds;
  for (std::size_t rank = 0; rank < nodes_.size(); ++rank) {
    const auto& out = activate.excluded;
    if (!std::binary_search(out.begin(), out.end(), static_cast<std::int32_t>(rank)))
      rounds.insert(nodes_[rank]->grouped_in_);
  }
  if (rounds.size() > 1) violation("the members have made their group in different rounds");
}

/// From rank to rank, or from rank 0's relay to the supervisor.
void WorldSimulation::rise(int from, int to, const RankMessage& message) {
  if (to != WorldRelay::kToSupervisor) return send(from, to, message);
  if (const auto* const stalled = std::get_if<from_rank::Stalled>(&message))
    return inquiry_->receive(*stalled, now_);
  if (const auto* const committed = std::get_if<from_rank::Committed>(&message)) {
    std::set<std::int32_t> told;
    for (const auto& pace : committed->paces) {
      // A node tells the step as its pace; it may be one ahead of the others.
      const auto ahead = pace.wall_us - committed->step;
      if (ahead < 0 || ahead > 1 || !told.insert(pace.rank).second)
        violation("a pace is told late, or twice");
    }
  }
  if (const auto* const standing = std::get_if<from_rank::Standing>(&message))
    return inquiry_->receive(*standing, now_);
  supervisor_->receive(message, now_);
}

void WorldSimulation::send(int from, int to, const WorldMessage& message) {
  const auto decoded = decode_world_message(encode(message));
  if (!decoded.ok()) return violation("a message that cannot be read");
  network_.send(from, to, [this, to, copy = *decoded] {
    auto& node = *nodes_[static_cast<std::size_t>(to)];
    if (const auto* const said = std::get_if<RankMessage>(&copy)) return node.relay_.up(*said);
    if (!node.stopped_) node.relay_.down(std::get<SupervisorMessage>(copy), now_);
  });
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
void WorldSimulation::withdraw_at(Micros when, int rank) {
  after(when, [this, rank] { nodes_[static_cast<std::size_t>(rank)]->withdraw(); });
}
void WorldSimulation::say_at(Micros when, int rank, const HealthEvent& event) {
  after(when, [this, rank, event] { nodes_[static_cast<std::size_t>(rank)]->say(event); });
}
const std::vector<HealthEvent>& WorldSimulation::told(int rank) const {
  return nodes_[static_cast<std::size_t>(rank)]->told_;
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

void WorldSimulation::stall_at(Micros when, int rank) {
  after(when, [this, rank] {
    nodes_[static_cast<std::size_t>(rank)]->relay_.up(from_rank::Stalled{rank});
  });
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
  if (auto finding = inquiry_->tick(now_)) findings_.push_back(std::move(*finding));
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

}  // namespace troupe::rank_process
