// Birth, death watch, children and shutdown of actors, on a clock that stands still.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <troupe/actor/actor_system.hpp>
#include <troupe/actor/stepped_scheduler.hpp>

namespace troupe {
namespace {

using namespace std::chrono_literals;
using Log = std::vector<std::string>;

struct Say {
  std::string text;
};
struct Quit {
  Error reason{Errc::stopped, 0, "quit"};
};

class Target : public Actor<Target, Say, Quit> {
 public:
  Target(Log* log, std::string name) : log_(log), name_(std::move(name)) {}
  ~Target() override { log_->push_back("~" + name_); }
  void on_start() override { log_->push_back("start " + name_); }
  void on_stop(const Error& reason) noexcept override {
    log_->push_back("stop " + name_ + " " + std::string(to_string(reason.code)));
  }
  void on(Say&& say) { log_->push_back(name_ + " " + say.text); }
  void on(Quit&& quit) { context().stop(quit.reason); }

 private:
  Log* log_;
  std::string name_;
};

struct Watch {
  ActorRef<Target> target;
};
struct Unwatch {
  ActorRef<Target> target;
};
struct Hire {
  std::string name;
};
struct Child {
  using Reply = ActorRef<Target>;
};

class Watcher : public Actor<Watcher, Watch, Unwatch, Hire, Child, Down> {
 public:
  explicit Watcher(std::vector<Down>* downs, Log* log) : downs_(downs), log_(log) {}
  void on(const Watch& watch) { context().watch(watch.target); }
  void on(const Unwatch& unwatch) { context().unwatch(unwatch.target); }
  void on(Hire&& hire) { child_ = context().spawn<Target>({.name = hire.name}, log_, hire.name); }
  ActorRef<Target> on(Child) { return child_; }
  void on(Down&& down) { downs_->push_back(std::move(down)); }
  ~Watcher() override { log_->push_back("~watcher"); }

 private:
  std::vector<Down>* downs_;
  Log* log_;
  ActorRef<Target> child_;
};

/// Hears of a death through the virtual function.
class Listener : public Actor<Listener, Watch> {
 public:
  explicit Listener(std::vector<Down>* downs) : downs_(downs) {}
  void on(const Watch& watch) { context().watch(watch.target); }
  void on_down(const Down& down) override { downs_->push_back(down); }

 private:
  std::vector<Down>* downs_;
};

class ActorLifecycle : public ::testing::Test {
 protected:
  Log log_;
  std::vector<Down> downs_;
  std::shared_ptr<SteppedScheduler> scheduler_ = std::make_shared<SteppedScheduler>();
  ActorSystem system_{scheduler_, {.max_actors = 4}};
};

TEST_F(ActorLifecycle, AnActorStartsHandlesStopsAndIsDestroyed) {
  auto target = system_.spawn<Target>({}, &log_, "a");
  EXPECT_TRUE(log_.empty()) << "it is made by the scheduler";
  target.tell(Say{"hello"}).take();
  target.tell(Quit{}).take();
  target.tell(Say{"unheard"}).take();
  scheduler_->run_until_idle();
  EXPECT_EQ(log_, (Log{"start a", "a hello", "stop a stopped", "~a"}));
  EXPECT_TRUE(target.ended());
  EXPECT_EQ(system_.living(), 0u);
}

TEST_F(ActorLifecycle, WatchersAreToldOnceWithTheReason) {
  auto target = system_.spawn<Target>({}, &log_, "a");
  auto watcher = system_.spawn<Watcher>({}, &downs_, &log_);
  std::vector<Down> heard;
  auto listener = system_.spawn<Listener>({}, &heard);
  watcher.tell(Watch{target}).take();
  watcher.tell(Watch{target}).take();
  listener.tell(Watch{target}).take();
  scheduler_->run_until_idle();
  EXPECT_TRUE(downs_.empty());
  target.tell(Quit{{Errc::peer_lost, 5, "gone"}}).take();
  scheduler_->run_until_idle();
  ASSERT_EQ(downs_.size(), 1u);
  EXPECT_EQ(downs_[0].id, target.id());
  EXPECT_EQ(downs_[0].reason.code, Errc::peer_lost);
  EXPECT_EQ(downs_[0].reason.native, 5);
  ASSERT_EQ(heard.size(), 1u);
  EXPECT_EQ(heard[0].id, target.id());
}

TEST_F(ActorLifecycle, WatchingTheDeadTellsAtOnce) {
  auto target = system_.spawn<Target>({}, &log_, "a");
  target.stop({Errc::io, 0, "broken"});
  scheduler_->run_until_idle();
  auto watcher = system_.spawn<Watcher>({}, &downs_, &log_);
  watcher.tell(Watch{target}).take();
  scheduler_->run_until_idle();
  ASSERT_EQ(downs_.size(), 1u);
  EXPECT_EQ(downs_[0].reason.code, Errc::io);
}

TEST_F(ActorLifecycle, UnwatchedMeansUntold) {
  auto target = system_.spawn<Target>({}, &log_, "a");
  auto watcher = system_.spawn<Watcher>({}, &downs_, &log_);
  watcher.tell(Watch{target}).take();
  watcher.tell(Unwatch{target}).take();
  scheduler_->run_until_idle();
  target.stop();
  scheduler_->run_until_idle();
  EXPECT_TRUE(downs_.empty());
}

TEST_F(ActorLifecycle, ParentsHearOfTheirChildrenWithoutAWatch) {
  auto parent = system_.spawn<Watcher>({}, &downs_, &log_);
  parent.tell(Hire{"child"}).take();
  auto asked = parent.ask(Child{}, 1s);
  scheduler_->run_until_idle();
  auto child = asked.get();
  child.stop();
  scheduler_->run_until_idle();
  ASSERT_EQ(downs_.size(), 1u);
  EXPECT_EQ(downs_[0].id, child.id());
  EXPECT_EQ(downs_[0].reason.code, Errc::stopped);
}

TEST_F(ActorLifecycle, ChildrenEndBeforeTheirParent) {
  auto parent = system_.spawn<Watcher>({}, &downs_, &log_);
  parent.tell(Hire{"one"}).take();
  parent.tell(Hire{"two"}).take();
  scheduler_->run_until_idle();
  EXPECT_EQ(system_.living(), 3u);
  parent.stop();
  scheduler_->run_until_idle();
  EXPECT_EQ(system_.living(), 0u);
  ASSERT_EQ(log_.size(), 7u);
  EXPECT_EQ(log_.back(), "~watcher");
  EXPECT_TRUE(downs_.empty()) << "an ending actor handles nothing any more";
}

TEST_F(ActorLifecycle, PastMaxActorsASpawnedActorHasEnded) {
  std::vector<ActorRef<Target>> targets;
  for (int i = 0; i < 5; ++i) targets.push_back(system_.spawn<Target>({}, &log_, "t"));
  EXPECT_EQ(system_.living(), 4u);
  EXPECT_FALSE(targets[3].ended());
  EXPECT_TRUE(targets[4].ended());
  EXPECT_EQ(targets[4].tell(Say{"?"}).code(), Errc::stopped);
  targets[0].stop();
  scheduler_->run_until_idle();
  EXPECT_FALSE(system_.spawn<Target>({}, &log_, "t").ended());
}

TEST_F(ActorLifecycle, ShutdownDrainsThenEndsEverything) {
  auto parent = system_.spawn<Watcher>({}, &downs_, &log_);
  parent.tell(Hire{"child"}).take();
  auto target = system_.spawn<Target>({}, &log_, "a");
  target.tell(Say{"last message"}).take();
  system_.shutdown();
  EXPECT_EQ(system_.living(), 0u);
  EXPECT_NE(std::find(log_.begin(), log_.end(), "a last message"), log_.end());
  EXPECT_NE(std::find(log_.begin(), log_.end(), "~child"), log_.end());
  EXPECT_TRUE(target.ended());
  EXPECT_TRUE(system_.spawn<Target>({}, &log_, "late").ended());
}

}  // namespace
}  // namespace troupe
