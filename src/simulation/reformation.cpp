#include "simulation/reformation.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <random>

#include "rank/net/transport.hpp"
#include "rank/protocol/follower.hpp"
#include "rank/protocol/relay.hpp"
#include "rank/protocol/supervisor.hpp"

namespace troupe::simulation {
namespace {

using namespace rank_process;
using Nanos = std::chrono::nanoseconds;
using Order = DeviceDone::Order;

WorldTree tree_of(const Parameters& parameters) {
  WorldTree tree{.size = parameters.ranks};
  if (parameters.radix != 0) tree.radix = parameters.radix;
  return tree;
}

class World {
 public:
  explicit World(const Parameters& parameters)
      : tree_(tree_of(parameters)), parameters_(parameters) {
    const int ranks = parameters.ranks;
    supervisor_ = std::make_unique<WorldSupervisor>(
        WorldSupervisor::Options{.size = ranks},
        [this](const SupervisorMessage& message) { send(0, 0, message); });
    for (int rank = 0; rank < ranks; ++rank) nodes_.push_back(std::make_unique<Node>(this, rank));
  }

  Reformation lose_one() {
    supervisor_->start(now_);
    run([this] { return supervisor_->standby_world().formed(); });
    messages_ = bytes_ = 0;
    for (const auto& node : nodes_) node->handled = 0;
    const auto struck = now_ + std::chrono::seconds(1);  // by then all transports have gone idle
    now_ = struck;
    active_ = 0;
    nodes_.back()->member.device_event(
        DeviceFault{"kill", {Errc::device_lost, 9, "killed"}, struck, struck});
    run([this] { return active_ == static_cast<int>(nodes_.size()); });
    Reformation outcome;
    for (int rank = 0; rank < parameters_.ranks; ++rank) {
      int depth = 0;
      for (int at = rank; at != 0; at = tree_.parent(at)) ++depth;
      outcome.depth = std::max(outcome.depth, depth);
    }
    outcome.messages = messages_;
    outcome.bytes = bytes_;
    for (const auto& node : nodes_)
      outcome.most_at_one_rank = std::max(outcome.most_at_one_rank, node->handled);
    outcome.total_ms = to_ms(now_ - struck);
    outcome.control_ms = outcome.total_ms - parameters_.quiesce_ms - parameters_.promote_ms -
                         parameters_.verify_ms - parameters_.restore_ms;
    return outcome;
  }

 private:
  struct Node final : FollowerActions {
    Node(World* of, int number)
        : world(of),
          rank(number),
          member(number, this),
          relay(
              {.rank = number, .tree = of->tree_},
              [of, number](int to, const RankMessage& m) { of->rise(number, to, m); },
              [of, number](int to, const SupervisorMessage& m) { of->send(number, to, m); },
              [this](const SupervisorMessage& m) { member.receive(m); }) {}

    void send(const RankMessage& message) override { relay.up(message); }
    void close_world() override {}
    void order(DeviceOrder order) override {
      const bool stops = order.what == Order::quiesce, takes_over = order.what == Order::promote;
      const double time_ms = order.prepares() ? 1
                             : stops          ? parameters().quiesce_ms
                             : takes_over     ? parameters().promote_ms
                                              : 0;
      world->after(ms(time_ms), [this, order] {
        member.device_event(DeviceDone{.order = order.what,
                                       .round = order.round,
                                       .formation = order.prepares() ? order.formation : 0,
                                       .outcome = says(order.what)});
      });
    }
    void verify(std::uint32_t round, std::uint32_t) override {
      world->after(ms(parameters().verify_ms), [this, round] { member.verified(round, {}); });
    }
    void restore(std::uint32_t round, std::int64_t) override {
      world->after(ms(parameters().restore_ms),
                   [this, round] { member.restored(round, {}, 0, 0); });
    }
    [[nodiscard]] Keeping keeping() const override { return {}; }
    void activate(const from_supervisor::Activate&) override {
      ++world->active_;
      world->after(ms(1), [this] { member.device_event(DeviceStandby{true}); });
    }
    void stable(std::int64_t) override {}
    void stopping(std::int64_t) override {}
    void all_finished(std::int64_t) override {}
    void regroup(std::uint32_t round) override { (void)member.regrouped(round); }  // nobody is out
    void strike(Phase) override {}
    void retire() override {}
    /// Nobody stalls, and no GPU is failing.
    void pass_on(const SupervisorMessage& message) override {
      if (const auto* const stop = std::get_if<from_supervisor::Stop>(&message))
        check(false, stop->error.message.c_str());
    }

    [[nodiscard]] const Parameters& parameters() const { return world->parameters_; }
    static Nanos ms(double value) { return Nanos(static_cast<std::int64_t>(value * 1e6)); }
    /// With NCCL rank 0 contributes its unique id, the others nothing.
    [[nodiscard]] std::vector<std::byte> says(Order what) const {
      return std::vector<std::byte>(what == Order::contribute && rank == 0 ? 128 : 0);
    }

    World* world;
    int rank;
    WorldFollower member;
    WorldRelay relay;
    std::uint64_t handled = 0;  ///< messages sent or received
    TimePoint busy_until{}, last_traffic{};
  };
  struct Event {
    TimePoint at;
    std::uint64_t order;
    std::function<void()> run;
    friend bool operator>(const Event& a, const Event& b) {
      return std::pair(a.at, a.order) > std::pair(b.at, b.order);
    }
  };

  void after(Nanos delay, std::function<void()> run) {
    events_.push({now_ + delay, ++order_, std::move(run)});
  }
  template <class Until>
  void run(Until until) {
    while (!until()) {
      check(!events_.empty(), "the world came to rest too early");
      const auto event = events_.top();
      events_.pop();
      now_ = event.at;
      event.run();
    }
  }
  /// The transport's thread looks at MPI every pause: a message waits for half of it on average.
  Nanos pause(const Node& node) {
    const bool busy = now_ - node.last_traffic < Transport::kBusyTime;
    const Nanos pause = busy ? Nanos(Transport::kBusyPause) : Nanos(Transport::kIdlePause);
    return Nanos(static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(pause.count())));
  }
  void rise(int from, int to, const RankMessage& message) {
    if (to == WorldRelay::kToSupervisor) return supervisor_->receive(message, now_);
    send(from, to, message);
  }
  void send(int from, int to, const WorldMessage& message) {
    const auto handling = Nanos(static_cast<std::int64_t>(parameters_.handling_us * 1e3));
    auto& sender = *nodes_[static_cast<std::size_t>(from)];
    auto bytes = encode(message);
    sender.busy_until = std::max(sender.busy_until, now_) + handling;
    sender.last_traffic = now_;
    auto arrival = sender.busy_until;
    if (from != to) {
      const bool near = from / parameters_.ranks_per_node == to / parameters_.ranks_per_node;
      const double us = (near ? parameters_.node_us : parameters_.network_us) +
                        static_cast<double>(bytes.size()) / parameters_.bytes_per_us;
      arrival +=
          Nanos(static_cast<std::int64_t>(us * 1e3)) + pause(*nodes_[static_cast<std::size_t>(to)]);
      ++messages_;
      bytes_ += bytes.size();
      ++sender.handled;
    }
    auto& line = lines_[{from, to}];  // a pair's messages keep their order
    line = std::max(line, arrival);
    events_.push({line, ++order_, [this, from, to, handling, bytes = std::move(bytes)] {
                    auto& receiver = *nodes_[static_cast<std::size_t>(to)];
                    if (from != to) ++receiver.handled;
                    receiver.busy_until = std::max(receiver.busy_until, now_) + handling;
                    receiver.last_traffic = now_;
                    const auto decoded = decode_world_message(bytes);
                    check(decoded.ok(), "a message that cannot be read");
                    if (const auto* const said = std::get_if<RankMessage>(&*decoded))
                      return receiver.relay.up(*said);
                    receiver.relay.down(std::get<SupervisorMessage>(*decoded), now_);
                  }});
  }

  WorldTree tree_;
  Parameters parameters_;
  TimePoint now_{};
  std::uint64_t order_ = 0, messages_ = 0, bytes_ = 0;
  int active_ = 0;
  std::mt19937_64 random_{1};
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::map<std::pair<int, int>, TimePoint> lines_;
  std::unique_ptr<WorldSupervisor> supervisor_;
  std::vector<std::unique_ptr<Node>> nodes_;
};

}  // namespace

Reformation lose_one(const Parameters& parameters) {
  return World(parameters).lose_one();
}

double measure_handling_us(Parameters parameters) {
  parameters.ranks = 512;
  parameters.radix = 2;
  World world(parameters);
  const auto began = std::chrono::steady_clock::now();
  const auto outcome = world.lose_one();
  const auto took = std::chrono::steady_clock::now() - began;
  return to_ms(took) * 1e3 / static_cast<double>(2 * outcome.messages);
}

}  // namespace troupe::simulation
