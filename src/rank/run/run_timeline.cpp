#include "rank/run/run_timeline.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "rank/run/run_commands.hpp"

namespace troupe::rank_process {
namespace {

constexpr auto kShortest = std::chrono::microseconds(20),
               kLongest = std::chrono::microseconds(1000);

}  // namespace

void RunTimeline::begin(ProgramPlace place) {
  began_ = place;
  outside_ = detail::bound_timeline();
  turn(Standing::over);
}

void RunTimeline::turn(Standing before) {
  StatePtr next(new detail::TimelineState);
  core_->device().port().run_guard().turn(next.operator->(), before, checkpoint_->buffers());
  (void)detail::bind_timeline(next.operator->());
  state_ = std::move(next);
}

void RunTimeline::end(Standing before) {
  core_->device().port().run_guard().turn(nullptr, before, {});
  (void)detail::bind_timeline(outside_);
  state_ = {};
}

void RunTimeline::settle() {
  const auto idle = [&] {
    const auto work = state_->work();
    return work.active == 0 && work.waiting == 0;
  };
  if (idle()) return;
  const Whereabouts::Wait wait(core_->whereabouts(),
                               "World::run for functions of futures, messages to actors and scopes "
                               "of its steps");
  auto& port = core_->device().port();
  const auto until = [&](const auto& holds) {
    for (auto pause = kShortest; !holds(); pause = std::min(2 * pause, kLongest)) {
      if (is_interrupted(*core_))
        throw Exception({Errc::world_reformed, 0, "the world is re-formed"});
      port.poll();
      std::this_thread::sleep_for(pause);
    }
  };
  for (;;) {
    const auto starts = state_->starts();
    until([&] { return state_->work().active == 0; });
    if (idle()) break;
    // Behind a fence, commands and requests have resolved all their futures. If that started no
    // function, the functions that are left wait for promises of the program.
    const auto fence = port.outcomes().fence().reached;
    until([&] {
      return fence.ready() && !port.outcomes().resolving() && state_->work().active == 0;
    });
    if (idle() || state_->starts() == starts) break;
  }
  throw_error(*core_);
}

void RunTimeline::begin_commit(std::int64_t step) {
  commits_.push_back({step, {}, state_});
  turn(Standing::over);
}

void RunTimeline::committed(ProgramPlace place) {
  commits_.back().place = place;
  if (commits_.size() > 2) commits_.erase(commits_.begin());
}

std::vector<RunTimeline::Commit>::const_iterator RunTimeline::find(std::int64_t step) const {
  return std::find_if(commits_.begin(), commits_.end(),
                      [&](const Commit& commit) { return commit.step == step; });
}

ProgramPlace RunTimeline::place_of(std::int64_t step) const {
  const auto at = find(step);
  return at != commits_.end() ? at->place : began_;
}

void RunTimeline::forget_commits_after(std::int64_t step) {
  const auto at = find(step);
  const auto first = at != commits_.end() ? at + 1 : commits_.cbegin();
  std::for_each(first, commits_.cend(),
                [](const Commit& commit) { commit.before->set_standing(Standing::undone); });
  commits_.erase(first, commits_.cend());
}

}  // namespace troupe::rank_process
