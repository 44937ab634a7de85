#include <signal.h>
#include <unistd.h>

#include <troupe/actor.hpp>

#include "mpi_tests.hpp"

// A rank's process dies, and another one is that rank (--on-rank-loss respawn).

namespace troupe::test {
namespace {

struct WhoAreYou {
  using Reply = int;  ///< the process
};

class Porter : public Actor<Porter, WhoAreYou> {
 public:
  int on(WhoAreYou) { return ::getpid(); }
};

constexpr std::int64_t kSteps = 90;

/// All that a program may make in RunOptions::prepare.
class Made {
 public:
  explicit Made(Context& c) : c_(&c), checkpoint_(c.device()) {}

  void run() {
    c_->world().run(checkpoint_, [this](std::int64_t step) { return this->step(step); },
                    {.commit_every = 10, .prepare = [this] { make(); }});
  }
  /// Names that survivors hold of the rank's first process lead nowhere.
  void expect_gone(int rank) {
    const auto& token = first_tokens_[static_cast<std::size_t>(rank)];
    const auto mine = c_->device().alloc<double>(8);
    c_->expect_equal(c_->world().fetch(token, mine).wait().code(), Errc::peer_lost,
                     "a token of a process that has died");
    c_->expect_equal(c_->world().hold(token).wait().code(), Errc::peer_lost,
                     "a lease of what has died");
    (void)c_->device().take_error();
  }
  [[nodiscard]] bool is_a_survivor() const { return survivor_; }

 private:
  void make() {
    auto& world = c_->world();
    x_ = c_->device().alloc<double>(8);
    y_ = c_->device().alloc<double>(8);
    c_->device().fill(x_, 0.0).get();
    checkpoint_.add("x", x_), checkpoint_.add_scratch(y_);
    group_.emplace(world.split(c_->rank() % 2, c_->rank()));
    if (!porter_) {
      porter_ = c_->runtime().actors().spawn<Porter>({.name = "porter"});
      c_->require(world.publish("porter", *porter_).ok(), "an actor cannot be published");
    }
    tokens_ = world.gather_values(x_.token());
    pids_ = world.gather_values(static_cast<int>(::getpid()));
    if (!first_tokens_.empty()) survivor_ = true;
    if (first_tokens_.empty()) first_tokens_ = tokens_;
    if (c_->size() > 1 && !lease_) lease_ = world.hold(tokens_[next()]).get();
  }

  Step step(std::int64_t number) {
    auto& world = c_->world();
    // On one rank after the other, 0 among them.
    const int victim = static_cast<int>((number / 30) % c_->size());
    if (number % 30 == 25 && victim == c_->rank() && world.deaths_of_rank() == 0 && number < 60)
      ::kill(::getpid(), SIGKILL);
    c_->device().fill(x_, static_cast<double>(number + 1));
    c_->device().fill(y_, 1.0);
    group_->all_reduce(y_, ReduceOp::sum).get();
    c_->expect_equal(c_->device().download(y_)[0], group_->size(), "the group's sum");
    world.all_reduce(y_, ReduceOp::max).get();  // all have written x
    world.fetch(tokens_[next()], y_).get();
    c_->expect_equal(c_->device().download(y_)[3], number + 1, "what the token names");
    const auto porter = world.actor<Porter>("porter", Rank(static_cast<int>(next())));
    c_->expect_equal(porter.ask(WhoAreYou{}, kDeadline).get(), pids_[next()],
                     "the actor is of another process");
    c_->device().fill(y_, 1.0);
    world.all_reduce(y_, ReduceOp::max).get();  // all have read it
    return number + 1 < kSteps ? Step::again : Step::done;
  }
  [[nodiscard]] std::size_t next() const {
    return static_cast<std::size_t>((c_->rank() + 1) % c_->size());
  }

  Context* c_;
  Checkpoint checkpoint_;
  GpuRef<double> x_, y_;
  std::optional<Group> group_;
  std::optional<ActorRef<Porter>> porter_;
  std::vector<GpuToken> tokens_, first_tokens_;
  std::vector<int> pids_;
  std::optional<TokenLease> lease_;
  bool survivor_ = false;
};

}  // namespace

/// Groups, published actors and tokens that are made in prepare come back on all ranks; what the
/// dead processes had is gone by name.
TROUPE_MPI_CASE(respawn) {
  Made made(c);
  made.run();
  const auto recoveries = c.world().recoveries();
  const auto deaths = std::count_if(recoveries.begin(), recoveries.end(),
                                    [](const auto& one) { return one.kind == "rank"; });
  c.expect_equal(deaths, 2, "two ranks have died");
  if (c.world().deaths_of_rank() == 0) {
    c.expect(made.is_a_survivor(), "nothing was made anew");
    made.expect_gone(0);
    made.expect_gone(1);
  }
}

}  // namespace troupe::test
