#include <troupe/actor/actor_system.hpp>

#include <thread>

namespace troupe {

using detail::SystemCore;

ActorSystem::ActorSystem(std::shared_ptr<Scheduler> scheduler, SystemOptions options)
    : core_(std::make_shared<SystemCore>(std::move(scheduler), std::move(options))) {}

ActorSystem::~ActorSystem() {
  shutdown();
}

void ActorSystem::shutdown() {
  if (std::exchange(shut_down_, true)) return;
  check(!detail::Cell::inside_a_turn(), "ActorSystem::shutdown() from a handler");
  auto& scheduler = core_->scheduler();
  core_->enter(SystemCore::Phase::draining);
  scheduler.drain(core_->options().drain_time);
  core_->enter(SystemCore::Phase::closing);
  for (const auto& root : core_->roots()) root->stop(Error{Errc::stopped, 0, "shutdown"});
  while (core_->living() > 0) {
    // One round will do, unless a thread outside is just between putting a message and waking its
    // actor.
    scheduler.drain(std::chrono::hours(1));
    std::this_thread::yield();
  }
  scheduler.stop();
}

}  // namespace troupe
