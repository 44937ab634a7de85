#include <troupe/timeline.hpp>

namespace troupe::detail {
namespace {

constinit thread_local TimelineState* bound = nullptr;

}  // namespace

TimelineState* bound_timeline() noexcept {
  return bound;
}

TimelineState* bind_timeline(TimelineState* timeline) noexcept {
  return std::exchange(bound, timeline);
}

}  // namespace troupe::detail
