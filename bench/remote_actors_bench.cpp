// Actors of two processes, by one program under mpirun.
//
//   mpirun -n 2 [--mca btl tcp,self] remote_actors_bench [--json FILE]
//
// tell: rank 0 sends messages of 64 bytes to an actor of rank 1, and waits until that has had them
// all; raw is CAF's io module over TCP, where CAF is installed (compare it with --mca btl tcp,self,
// which makes MPI take TCP too). ask: a question of 64 bytes and its answer, waited for; raw is a
// ping-pong of MPI over the same transport, and in a second line CAF's.
#include <fmt/format.h>
#include <mpi.h>

#include <array>
#include <functional>

#include <troupe/actor.hpp>
#include <troupe/runtime.hpp>

#include "remote_caf.hpp"
#include "world_bench.hpp"

namespace troupe::bench {
namespace {

using namespace std::chrono_literals;

constexpr auto kDeadline = 60s;

std::vector<OptionSpec> option_specs() {
  return {
      {"repetitions", OptionType::integer, "7", "N", "measurements of each side", {}, "1", "1000"},
      {"tells", OptionType::integer, "200000", "N", "messages of a measurement", {}, "1"},
      {"asks", OptionType::integer, "2000", "N", "questions of a measurement", {}, "1"},
      {"json", OptionType::text, "", "FILE", "write the results as JSON"},
  };
}

struct Payload {
  std::array<std::uint64_t, 8> words{};
};
struct HowMany {
  using Reply = std::int64_t;
};
struct Echo {
  using Reply = Payload;
  Payload payload;
};
class Counter : public Actor<Counter, Payload, HowMany, Echo> {
 public:
  void on(const Payload&) { ++count_; }
  std::int64_t on(HowMany) { return std::exchange(count_, 0); }
  Payload on(const Echo& echo) { return echo.payload; }

 private:
  std::int64_t count_ = 0;
};

class Bench {
 public:
  explicit Bench(Runtime& runtime)
      : world_(runtime.world()),
        config_(runtime.config()),
        first_(world_.rank() == 0),
        counter_(world_.actor<Counter>("counter", Rank(1))) {
    MPI_Comm_dup(MPI_COMM_WORLD, &communicator_);
    if (!first_) {
      const auto counter =
          runtime.actors().spawn<Counter>({.name = "counter", .mailbox_capacity = 4096});
      world_.publish("counter", counter).take();
      caf_ = RemoteCaf::host();
    }
    const auto ports = world_.gather_values<std::uint16_t>(caf_ ? caf_->port() : 0);
    if (first_ && ports[1] != 0) caf_ = RemoteCaf::connect(ports[1]);
    const auto there = world_.gather_values<int>(caf_ != nullptr);
    has_caf_ = there[0] != 0 && there[1] != 0;
  }
  ~Bench() {
    if (first_) caf_.reset();
    world_.barrier();
    MPI_Comm_free(&communicator_);
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  std::vector<Comparison> run() {
    const auto tells = config_.integer("tells"), asks = config_.integer("asks");
    const auto caf = [this](std::function<void()> work) {
      return has_caf_ ? std::move(work) : std::function<void()>();
    };
    const auto each = [&](std::int64_t count, double per_second) {
      return [this, count, per_second](const std::function<void()>& work) {
        const double seconds = seconds_of(world_, work);
        return per_second > 0 ? static_cast<double>(count) / seconds / per_second
                              : seconds / static_cast<double>(count) * 1e6;
      };
    };
    std::vector<Comparison> lines{{"tell 64 B, and CAF over TCP", "M/s", {}, {}},
                                  {"ask 64 B, and MPI ping-pong", "us", {}, {}},
                                  {"ask 64 B, and CAF over TCP", "us", {}, {}}};
    const auto repetitions = config_.integer("repetitions");
    measure(
        lines[0], repetitions, [&] { tell(tells); }, caf([&] {
          if (first_) caf_->tell(tells);
        }),
        each(tells, 1e6));
    measure(
        lines[1], repetitions, [&] { ask(asks); }, [&] { ping_pong(asks); }, each(asks, 0));
    measure(
        lines[2], repetitions, [&] { ask(asks); }, caf([&] {
          if (first_) caf_->ask(asks);
        }),
        each(asks, 0));
    return lines;
  }

 private:
  void tell(std::int64_t count) const {
    if (!first_) return;
    for (std::int64_t i = 0; i < count; ++i) tell_patiently(counter_, Payload{}).take();
    if (counter_.ask(HowMany{}, kDeadline).get() != count)
      throw Exception(Error{Errc::library, 0, "messages were lost"});
  }
  void ask(std::int64_t count) const {
    if (!first_) return;
    for (std::int64_t i = 0; i < count; ++i) (void)counter_.ask(Echo{}, kDeadline).get();
  }
  void ping_pong(std::int64_t count) const {
    Payload payload;
    const int bytes = sizeof payload, peer = first_ ? 1 : 0;
    for (std::int64_t i = 0; i < count; ++i) {
      if (first_) MPI_Send(&payload, bytes, MPI_BYTE, peer, 0, communicator_);
      MPI_Recv(&payload, bytes, MPI_BYTE, peer, 0, communicator_, MPI_STATUS_IGNORE);
      if (!first_) MPI_Send(&payload, bytes, MPI_BYTE, peer, 0, communicator_);
    }
  }

  World& world_;
  const Config& config_;
  const bool first_;
  const RemoteActor<Counter> counter_;
  MPI_Comm communicator_ = MPI_COMM_NULL;
  std::unique_ptr<RemoteCaf> caf_;
  bool has_caf_ = false;
};

int run(Runtime& runtime) {
  require_report_file(runtime);
  auto& world = runtime.world();
  if (world.size() != 2)
    world.agree(Error{Errc::invalid, 0, "remote_actors_bench wants two ranks"});
  const auto lines = Bench(runtime).run();
  report(runtime, fmt::format("medians of {}", runtime.config().integer("repetitions")), lines);
  return kExitSuccess;
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  using namespace troupe;
  const Program program{"remote_actors_bench",
                        "Measures messages between the actors of two processes.",
                        bench::option_specs()};
  return run_program(argc, argv, program, bench::run);
}
