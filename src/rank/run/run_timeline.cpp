#include <algorithm>
#include <thread>

#include "common/core/log.hpp"
#include "rank/run/run_loop.hpp"
#include "rank/world/world_actor.hpp"
#include "rank/world/world_core.hpp"

// Work that other threads do for a run's steps, and errors that look as if a fault caused them.
// docs/recovery.md has the rule of timelines.

namespace troupe::rank_process {
namespace {

constexpr auto kShortest = std::chrono::microseconds(20),
               kLongest = std::chrono::microseconds(1000);

/// A fault is noticed everywhere within this time, mostly. To end the epoch sooner costs a second
/// round of the recovery that is about to begin, and nothing else.
constexpr auto kNoFault = std::chrono::seconds(1);

}  // namespace

void RunLoop::turn_timeline(TimelineEnd before) {
  TimelinePtr next(new detail::TimelineState);
  core_->device().port().run_guard().turn(next.operator->(), before, checkpoint_->buffers());
  (void)detail::bind_timeline(next.operator->());
  timeline_ = std::move(next);
}

void RunLoop::end_timeline(TimelineEnd before) {
  core_->device().port().run_guard().turn(nullptr, before, {});
  (void)detail::bind_timeline(outside_);
  timeline_ = {};
}

void RunLoop::settle_timeline() {
  const auto idle = [&] {
    const auto work = timeline_->work();
    return work.active == 0 && work.waiting == 0;
  };
  if (idle()) return;
  const Whereabouts::Wait wait(core_->whereabouts(),
                               "World::run for functions of futures, messages to actors and scopes "
                               "of its steps");
  auto& port = core_->device().port();
  const auto until = [&](const auto& holds) {
    for (auto pause = kShortest; !holds(); pause = std::min(2 * pause, kLongest)) {
      if (interrupted()) throw Exception({Errc::world_reformed, 0, "the world is re-formed"});
      port.poll();
      std::this_thread::sleep_for(pause);
    }
  };
  for (;;) {
    const auto starts = timeline_->starts();
    until([&] { return timeline_->work().active == 0; });
    if (idle()) break;
    // Behind a fence, commands and requests have resolved all their futures. If that started no
    // function, the functions that are left wait for promises of the program.
    const auto fence = port.outcomes().fence().reached;
    until([&] {
      return fence.ready() && !port.outcomes().resolving() && timeline_->work().active == 0;
    });
    if (idle() || timeline_->starts() == starts) break;
  }
  throw_error();
}

void RunLoop::end_epoch_by(const Error& error) {
  const auto epoch = core_->epoch().value;
  if (interrupted()) return;
  if (core_->status().wait_for_end_of_epoch(epoch, kNoFault) || interrupted()) return;
  const auto newest = checkpoint_->newest();
  if (ended_epoch_at_ == newest) {
    throw Exception({error.code, error.native,
                     "a step has failed twice as if by a fault, and there was none (a future of an "
                     "earlier step, or another rank's error): " +
                         error.message});
  }
  ended_epoch_at_ = newest;
  log::warn("world", "a step has failed as if by a fault, and there was none: it is repeated: {}",
            error.to_string());
  (void)core_->actor().tell(world_message::EndEpoch{epoch, error});
  core_->status().wait_for_end_of_epoch();
}

}  // namespace troupe::rank_process
