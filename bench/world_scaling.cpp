// How the control plane of a re-formation grows with the number of ranks: the real protocol
// (WorldSupervisor, WorldMember, WorldRelay, their messages encoded and decoded) on a simulated
// network, up to 16,384 ranks.
//
//   world_scaling [--largest N] [--json FILE] [--latency-us N] …
//
// A world forms, raises its standby world, and loses the device host of one rank; measured is from
// the report of the fault until the last rank is active again. What is not simulated is how long
// the devices take: each phase's work takes the same time everywhere, as measured on real GPUs.
#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <set>

#include <nlohmann/json.hpp>

#include "comparison.hpp"
#include "rank/net/mpi_transport.hpp"
#include "rank/world/member.hpp"
#include "rank/world/relay.hpp"
#include "rank/world/supervisor.hpp"

namespace troupe::bench {
namespace {

using namespace rank;
using Nanos = std::chrono::nanoseconds;
using Order = DeviceDone::Order;

struct Parameters {
  // An MPI message of 100 bytes, as osu_latency has it on current machines: in shared memory
  // 0.5-1.5 us, over InfiniBand or Slingshot 1.5-4 us.
  double node_us = 1.5, network_us = 4.0;
  double bytes_per_us = 10'000;
  int ranks_per_node = 8;
  double handling_us = 0;  ///< of a message, by the rank that sends or receives it
  // bench/results/2026-11-20-h200-x2, device host killed: medians.
  double quiesce_ms = 66.7, promote_ms = 7.3, verify_ms = 0.8, restore_ms = 1.0;
};

struct Outcome {
  int ranks = 0, radix = 0, depth = 0;
  std::uint64_t messages = 0, bytes = 0, most_at_one_rank = 0;
  double control_ms = 0, total_ms = 0;
};

class World {
 public:
  World(int ranks, int radix, const Parameters& parameters)
      : tree_{ranks, radix}, parameters_(parameters) {
    supervisor_ = std::make_unique<WorldSupervisor>(
        WorldSupervisor::Options{.size = ranks},
        [this](const WorldMessage& message) { send(0, 0, message); });
    for (int rank = 0; rank < ranks; ++rank) nodes_.push_back(std::make_unique<Node>(this, rank));
  }

  Outcome lose_one() {
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
    Outcome outcome{static_cast<int>(nodes_.size()), tree_.radix};
    for (int rank = 0; rank < outcome.ranks; ++rank) {
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

  [[nodiscard]] std::uint64_t messages() const { return messages_; }

 private:
  struct Node final : MemberActions {
    Node(World* of, int number)
        : world(of),
          rank(number),
          member(number, this),
          relay(
              {.rank = number, .tree = of->tree_},
              [of, number](int to, const WorldMessage& m) { of->send(number, to, m); },
              [this](const WorldMessage& m) { member.receive(m); }) {}

    void send(const WorldMessage& message) override { relay.up(message); }
    void close_world() override {}
    void quiesce(std::uint32_t round) override {
      done(Order::quiesce, round, parameters().quiesce_ms);
    }
    void replace(std::uint32_t round) override { done(Order::replace, round, 0); }
    void promote(std::uint32_t round, std::uint32_t) override {
      done(Order::promote, round, parameters().promote_ms);
    }
    void contribute(std::uint32_t round) override { done(Order::contribute, round, 0); }
    void connect(std::uint32_t round, std::vector<std::vector<std::byte>>) override {
      done(Order::connect, round, 0);
    }
    void prepare_contribute(std::uint32_t formation) override {
      prepared(Order::contribute, formation);
    }
    void prepare_connect(std::uint32_t formation, std::vector<std::vector<std::byte>>) override {
      prepared(Order::connect, formation);
    }
    void verify(std::uint32_t round, std::uint32_t) override {
      world->after(ms(parameters().verify_ms), [this, round] { member.verified(round, {}); });
    }
    void restore(std::uint32_t round, std::int64_t) override {
      world->after(ms(parameters().restore_ms),
                   [this, round] { member.restored(round, {}, 0, 0); });
    }
    void activate(std::uint32_t, std::int64_t, std::vector<RecoveryReport>) override {
      ++world->active_;
      world->after(ms(1), [this] { member.device_event(DeviceStandby{true}); });
    }
    void stable(std::int64_t) override {}
    void all_finished() override {}
    void stop(const Error& error) override { check(false, error.message.c_str()); }
    void strike(Phase) override {}

    [[nodiscard]] const Parameters& parameters() const { return world->parameters_; }
    static Nanos ms(double value) { return Nanos(static_cast<std::int64_t>(value * 1e6)); }
    void done(Order what, std::uint32_t round, double time_ms) {
      world->after(ms(time_ms), [this, what, round] {
        member.device_event(DeviceDone{.order = what, .round = round, .outcome = says(what)});
      });
    }
    void prepared(Order what, std::uint32_t formation) {
      world->after(ms(1), [this, what, formation] {
        member.device_event(
            DeviceDone{.order = what, .formation = formation, .outcome = says(what)});
      });
    }
    /// With NCCL rank 0 contributes its unique id, the others nothing.
    [[nodiscard]] std::vector<std::byte> says(Order what) const {
      return std::vector<std::byte>(what == Order::contribute && rank == 0 ? 128 : 0);
    }

    World* world;
    int rank;
    WorldMember member;
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
    const bool busy = now_ - node.last_traffic < MpiTransport::kBusyTime;
    const Nanos pause = busy ? Nanos(MpiTransport::kBusyPause) : Nanos(MpiTransport::kIdlePause);
    return Nanos(static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(pause.count())));
  }
  void send(int from, int to, const WorldMessage& message) {
    if (to == WorldRelay::kToSupervisor) return supervisor_->receive(message, now_);
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
                    if (decoded->kind < WorldMessage::Kind::order)
                      return receiver.relay.up(*decoded);
                    receiver.relay.down(*decoded, now_);
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

/// What a message costs a rank here and now: the run of a world of 512 ranks, over its messages,
/// each of which is handled twice. The simulation's own cost is in it: a bound from above.
double measure_handling_us(Parameters parameters) {
  World world(512, 2, parameters);
  const auto began = std::chrono::steady_clock::now();
  const auto outcome = world.lose_one();
  const auto took = std::chrono::steady_clock::now() - began;
  return to_ms(took) * 1e3 / static_cast<double>(2 * outcome.messages);
}

int scale(int argc, char** argv) {
  namespace po = boost::program_options;
  Parameters parameters;
  int largest = 16'384;
  std::string json;
  po::options_description options("Options");
  options.add_options()("help", "this text")("largest", po::value(&largest)->default_value(largest),
                                             "most ranks")("json", po::value(&json),
                                                           "write the results to this file")(
      "node-us", po::value(&parameters.node_us)->default_value(parameters.node_us),
      "latency within a node")(
      "network-us", po::value(&parameters.network_us)->default_value(parameters.network_us),
      "latency between nodes")("handling-us", po::value(&parameters.handling_us),
                               "of a message; default: measured");
  po::variables_map given;
  po::store(po::parse_command_line(argc, argv, options), given);
  po::notify(given);
  if (given.contains("help")) {
    std::cout << options;
    return 0;
  }
  if (!given.contains("handling-us")) parameters.handling_us = measure_handling_us(parameters);

  fmt::print("latency {} us in a node of {}, {} us between nodes; {:.2f} us to handle a message\n",
             parameters.node_us, parameters.ranks_per_node, parameters.network_us,
             parameters.handling_us);
  fmt::print("{:>7} {:>6} {:>6} {:>9} {:>11} {:>14} {:>11} {:>9}\n", "ranks", "radix", "depth",
             "messages", "bytes", "most at a rank", "control ms", "total ms");
  std::vector<std::string> lines;
  for (int ranks = 4; ranks <= largest; ranks *= 4) {
    for (const int radix : std::set<int>{2, 4, 8, ranks}) {
      if (radix > ranks) continue;  // as the last: everyone hangs on rank 0
      const auto o = World(ranks, radix, parameters).lose_one();
      fmt::print("{:>7} {:>6} {:>6} {:>9} {:>11} {:>14} {:>11.3f} {:>9.1f}\n", o.ranks,
                 radix == ranks ? "flat" : std::to_string(radix), o.depth, o.messages, o.bytes,
                 o.most_at_one_rank, o.control_ms, o.total_ms);
      lines.push_back(nlohmann::json{{"ranks", o.ranks},
                                     {"radix", o.radix},
                                     {"depth", o.depth},
                                     {"messages", o.messages},
                                     {"bytes", o.bytes},
                                     {"most_messages_at_one_rank", o.most_at_one_rank},
                                     {"control_ms", o.control_ms},
                                     {"total_ms", o.total_ms},
                                     {"handling_us", parameters.handling_us},
                                     {"node_us", parameters.node_us},
                                     {"network_us", parameters.network_us}}
                          .dump());
    }
  }
  const auto written = write_json_lines(json, lines);
  if (!written.ok()) fmt::print(stderr, "world_scaling: {}\n", written.error().to_string());
  return written.ok() ? 0 : 1;
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  try {
    return troupe::bench::scale(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "world_scaling: %s\n", e.what());
    return 2;
  }
}
