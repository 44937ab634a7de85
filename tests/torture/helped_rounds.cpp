#include <array>
#include <limits>
#include <thread>

#include <fmt/format.h>

#include <troupe/actor.hpp>

#include "catalogue/random.hpp"
#include "runner.hpp"

// Runs whose steps have others do their work: functions of futures, a coroutine, an actor, threads.

namespace troupe::torture {
namespace {

constexpr std::int64_t kLength = 3'000;

/// Adds 1 to every element, by an object of the library that was made outside of the run.
struct Adding {
  Blas blas;
  GpuRef<double> one;
  Future<void> operator()(const GpuRef<double>& sum) const { return blas.axpy(1.0, one, sum); }
};

struct Add {
  const Adding* adding;
  GpuRef<double> sum;
};
class Adder : public Actor<Adder, Add> {
 public:
  void on(const Add& add) { (void)(*add.adding)(add.sum); }
};

Future<void> add_behind(Future<void> until, const Adding* adding, GpuRef<double> sum) {
  co_await until;
  co_await (*adding)(sum);
}

}  // namespace

/// Each step adds 1 to a sum in each of these ways, and no step waits for its sums: a commit does.
/// After faults every sum is the number of steps all the same. A group of ranks is let go before
/// the run, but for what a sequence keeps of it. The largest of numbers among which one is NaN is
/// NaN.
void Runner::play_helped(const Round& round) {
  enum Way { function, coroutine, actor, thread, kWays };
  constexpr std::array<const char*, kWays> kNames{"a function of a future", "a coroutine",
                                                  "an actor", "a thread"};
  Random random(derive(program_->seed, round_));
  const std::int64_t every = random.between(1, 4), steps = 2 * every + round.special % 8;
  const auto struck_at = program_->stormy ? random.below(2 * every) : -1;
  bool strikes = random.below(ranks_) == rank_;
  const int odd_rank = static_cast<int>(random.below(ranks_));
  const bool groups = program_->groups && conduct_.collectives;
  const bool largest = conduct_.collectives && device_.info().engine == "cpu";

  Adding adding{device_.blas(), device_.alloc<double>(kLength)};
  device_.fill(adding.one, 1.0);
  Checkpoint state(device_);
  state.add("one", adding.one);
  std::array<GpuRef<double>, kWays> sums;
  for (std::size_t way = 0; way < kWays; ++way) {
    sums[way] = device_.alloc<double>(kLength);
    device_.fill(sums[way], 0.0);
    state.add(kNames[way], sums[way]);
  }
  auto numbers = device_.alloc<double>(8);
  auto members = device_.alloc<double>(1);
  state.add_scratch(numbers), state.add_scratch(members);
  Sequence counts;
  double size = 1;
  if (groups) {
    auto group = world_.split(rank_ % 2, rank_);
    size = group.size();
    counts = device_.record([&] {
      device_.fill(members, 1.0);
      group.all_reduce(members, ReduceOp::sum);
    });
  }
  const auto adder = runtime_.actors().spawn<Adder>({});
  std::string damage;
  world_.barrier();
  try {
    world_.run(state,
               [&](std::int64_t step) {
                 account_.advance();
                 account_.count_operations(kWays);
                 (void)device_.nop().then([&adding, &sums] { (void)adding(sums[function]); });
                 (void)add_behind(device_.nop(), &adding, sums[coroutine]);
                 if (const auto told = tell_patiently(adder, Add{&adding, sums[actor]}); !told.ok())
                   throw Finding("a message to an actor is refused: " + told.error().to_string());
                 std::jthread helper([&, timeline = World::timeline()] {
                   const Timeline::Scope scope(timeline);
                   (void)adding(sums[thread]);
                 });
                 if (largest) {
                   device_.fill(numbers, rank_ == odd_rank
                                             ? std::numeric_limits<double>::quiet_NaN()
                                             : static_cast<double>(rank_));
                   world_.all_reduce(numbers, ReduceOp::max).get();
                   for (const auto number : device_.download(numbers)) {
                     if (number == number)
                       damage = fmt::format("the largest of a NaN and others, {},", number);
                   }
                 }
                 if (groups) {
                   counts.run();
                   if (device_.download(members)[0] != size) damage = "the size of a group";
                 }
                 if (step == struck_at && std::exchange(strikes, false))
                   (void)device_.inject(memory::FaultKind::kill);
                 return step + 1 == steps ? Step::done : Step::again;
               },
               {.commit_every = every, .save = SaveOptions{}});
  } catch (const Exception& e) {
    if (e.code() == Errc::budget_exhausted || e.code() == Errc::device_failed) throw;
    throw Finding(std::string("run() of steps that others do fails: ") + e.what());
  }
  if (stormy_) settle();
  for (std::size_t way = 0; way < kWays; ++way) {
    for (const auto sum : device_.download(sums[way])) {
      if (sum != static_cast<double>(steps))
        damage = fmt::format("what {} added, {},", kNames[way], sum);
    }
  }
  if (!damage.empty())
    throw Finding(fmt::format("WRONG CONTENTS: {} after {} steps", damage, steps));
  world_.barrier();
  counts = {};
  if (groups) (void)world_.split(-1);  // frees the communicator of the one that is gone
}

}  // namespace troupe::torture
