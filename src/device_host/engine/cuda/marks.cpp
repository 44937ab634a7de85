#include "device_host/engine/cuda/marks.hpp"

#include "device_host/engine/cuda/status.hpp"

namespace troupe::host::cuda {

Result<void> MarkPool::start() {
  while (entries_.size() < kInitial) TROUPE_CUDA_PROPAGATE(grow());
  return {};
}

Result<Mark> MarkPool::take(Queue queue) {
  if (free_.empty()) TROUPE_CUDA_PROPAGATE(grow());
  const Mark mark = free_.back();
  free_.pop_back();
  auto& entry = entries_[mark.id - 1];
  entry.queue = queue;
  entry.taken = true;
  return mark;
}

void MarkPool::give_back(Mark mark) {
  check(entry(mark).taken, "mark released twice");
  entries_[mark.id - 1].taken = false;
  free_.push_back(mark);
}

Result<void> MarkPool::grow() {
  if (entries_.size() == kMaximum) {
    return Error{Errc::would_block, 0, "all marks are in use"};
  }
  Entry entry;
  TROUPE_CUDA_TRY(cudaEventCreateWithFlags(entry.event.out(), cudaEventDisableTiming));
  entries_.push_back(std::move(entry));
  free_.push_back(Mark{static_cast<std::uint32_t>(entries_.size())});
  return {};
}

const MarkPool::Entry& MarkPool::entry(Mark mark) const {
  check(mark.id >= 1 && mark.id <= entries_.size(), "no such mark");
  return entries_[mark.id - 1];
}

}  // namespace troupe::host::cuda
