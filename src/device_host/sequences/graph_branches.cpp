#include "device_host/sequences/graph_branches.hpp"

namespace troupe::host {
namespace {

Error not_nested() {
  return {Errc::unsupported, 0, "its branches do not lie within one another"};
}

}  // namespace

Result<bool> GraphBranches::next_command(Playing& playing) {
  for (;;) {
    if (!ends_.empty() && ends_.back() == playing.next_index()) {
      if (auto left = leave(playing); !left) return left.error();
      continue;
    }
    if (playing.done()) return false;
    const auto* const following = playing.following();
    if (playing.next().flag != nullptr) {
      if (auto entered = enter(playing); !entered) return entered.error();
    } else if (playing.next().by != 0) {
      // Back to the flag of a loop: the end of its part of the graph looks at that.
      if (ends_.empty() || ends_.back() != playing.next_index() + 1) return not_nested();
      playing.pass();
    } else if (following != nullptr && following->watched != nullptr) {
      playing.pass();  // the copy is for who reads the flag on the host
    } else {
      return true;
    }
  }
}

Result<void> GraphBranches::enter(Playing& playing) {
  const auto& steps = playing.sequence().steps();
  const auto at = playing.next_index();
  const auto& step = playing.next();
  if (step.watched == nullptr || step.by < 1) return not_nested();
  const auto end = at + static_cast<std::size_t>(step.by);
  if (!ends_.empty() && end > ends_.back()) return not_nested();
  const auto& last = steps[end - 1];
  const bool again = last.by < 0 && last.flag == nullptr;
  // The copy of the flag stands before the branch.
  if (again &&
      static_cast<std::ptrdiff_t>(end) - 1 + last.by != static_cast<std::ptrdiff_t>(at) - 1)
    return not_nested();
  const auto* const flag = reinterpret_cast<const std::int32_t*>(addresses_->find(*step.watched));
  if (flag == nullptr) return Error{Errc::unsupported, 0, "a flag is out of bounds"};
  if (auto joined = playing.join(); !joined) return joined;
  if (auto begun = engine_->graphs().begin_branch(playing.origin(), flag, again); !begun)
    return begun;
  ends_.push_back(end);
  playing.begin_again();
  playing.pass();
  return {};
}

Result<void> GraphBranches::leave(Playing& playing) {
  if (auto joined = playing.join(); !joined) return joined;
  ends_.pop_back();
  playing.begin_again();
  return engine_->graphs().end_branch(playing.origin());
}

}  // namespace troupe::host
