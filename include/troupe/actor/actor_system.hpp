#pragma once

#include <memory>
#include <utility>

#include <troupe/actor/actor.hpp>
#include <troupe/actor/scheduler.hpp>

namespace troupe {

/// Actors that share a scheduler, and their orderly end.
///
/// \code
///   struct Add { int amount; };                           // told
///   struct Total { using Reply = int; };                  // asked
///   struct Tick {};
///
///   class Counter : public Actor<Counter, Add, Total, Tick> {
///    public:
///     explicit Counter(int start) : total_(start) {}
///     void on_start() override { context().schedule(std::chrono::seconds(1), Tick{}); }
///     Result<void> on(Add add) {
///       if (add.amount < 0) return Error{Errc::invalid, 0, "negative"};  // supervised: resume
///       total_ += add.amount;
///       return {};
///     }
///     int on(Total) { return total_; }
///     void on(Tick) { context().schedule(std::chrono::seconds(1), Tick{}); }
///    private:
///     int total_;
///   };
///
///   class Owner : public Actor<Owner, Down> {             // supervises what it spawns
///    public:
///     void on_start() override { counter_ = context().spawn<Counter>({.name = "counter"}, 0); }
///     void on(Down down) { context().stop(down.reason); } // the counter ended, restarts included
///    private:
///     ActorRef<Counter> counter_;
///   };
///
///   ActorSystem system(ProductionScheduler::start({.workers = 2}).take());
///   auto counter = system.spawn<Counter>({.name = "counter", .mailbox_capacity = 1024}, 10);
///   if (!counter.tell(Add{1}).ok()) { /* full or ended: the message was not sent */ }
///   int total = counter.ask(Total{}, std::chrono::seconds(1)).get();
///
///   auto stepped = std::make_shared<SteppedScheduler>(SteppedOptions{.seed = 7});   // in a test
///   ActorSystem deterministic(stepped);
///   deterministic.spawn<Owner>({});
///   stepped->run_until_idle();
///   stepped->advance(std::chrono::seconds(1));            // fires the tick
/// \endcode
class ActorSystem {
 public:
  /// `scheduler` serves this system alone, and is stopped with it.
  explicit ActorSystem(std::shared_ptr<Scheduler> scheduler, SystemOptions options = {});
  ActorSystem(const ActorSystem&) = delete;
  ActorSystem& operator=(const ActorSystem&) = delete;
  /// shutdown().
  ~ActorSystem();

  /// Makes an actor without a parent; any thread. `args` go to A's constructor, which runs on the
  /// scheduler; they are kept and copied for every restart. If the system is shutting down, or has
  /// max_actors, the actor has ended already: tell() answers Errc::stopped.
  template <class A, class... Args>
  ActorRef<A> spawn(SpawnOptions options, Args&&... args) {
    const auto cell =
        detail::make_cell<A>(core_, {}, std::move(options), std::forward<Args>(args)...);
    core_->launch(cell, true);
    return ActorRef<A>(cell);
  }

  /// Ends everything, in order: refuse messages and actors from outside; drain what is in the
  /// mailboxes, up to drain_time; close the mailboxes, children before parents; destroy the objects
  /// and end the scheduler's threads. Every future is resolved then. Waits for handlers that are
  /// running. Not from a handler; a second call does nothing.
  void shutdown();

  /// Actors that have not ended. Any thread.
  [[nodiscard]] std::size_t living() const { return core_->living(); }
  [[nodiscard]] const Clock& clock() const noexcept { return core_->scheduler().clock(); }
  /// For timers of what is no actor; valid while the system is.
  [[nodiscard]] Scheduler& scheduler() const noexcept { return core_->scheduler(); }

 private:
  std::shared_ptr<detail::SystemCore> core_;
  bool shut_down_ = false;
};

}  // namespace troupe
