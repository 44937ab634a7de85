#include "device_host/helpers.hpp"

#include <algorithm>

namespace troupe::host {

Helpers::~Helpers() {
  join();
}

void Helpers::join() {
  for (auto& running : threads_) running.thread.join();
  threads_.clear();
}

bool Helpers::start(Job job, WaitsFor waits_for) {
  if (threads_.size() >= most_) return false;
  const auto self = threads_.insert(threads_.end(), Running{{}, waits_for});
  self->thread = std::thread([this, self, job = std::move(job)] {
    auto finish = job();
    {
      const std::lock_guard lock(mutex_);
      finished_.emplace_back(self, std::move(finish));
    }
    any_finished_.store(true, std::memory_order_release);
    bell_.ring();
  });
  return true;
}

bool Helpers::may_wait_for_device() const {
  return std::any_of(threads_.begin(), threads_.end(),
                     [](const Running& running) { return running.waits_for == WaitsFor::device; });
}

bool Helpers::run_finished() {
  if (!any_finished_.load(std::memory_order_relaxed))
    return false;  // the reactor asks all the time
  any_finished_.exchange(false, std::memory_order_acquire);
  decltype(finished_) finished;
  {
    const std::lock_guard lock(mutex_);
    finished.swap(finished_);
  }
  for (auto& [running, finish] : finished) {
    running->thread.join();
    threads_.erase(running);
    finish();
  }
  // Only now: a job rings after it has announced itself, and may have done so as late as its join.
  // A job that finishes meanwhile has set the flag that the next round looks at.
  bell_.clear();
  return !finished.empty();
}

}  // namespace troupe::host
