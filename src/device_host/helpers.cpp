#include "device_host/helpers.hpp"

namespace troupe::host {

Helpers::~Helpers() {
  for (auto& thread : threads_) thread.join();
}

bool Helpers::start(Job job) {
  if (threads_.size() >= most_) return false;
  const auto self = threads_.emplace(threads_.end());
  *self = std::thread([this, self, job = std::move(job)] {
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

bool Helpers::run_finished() {
  if (!any_finished_.load(std::memory_order_relaxed))
    return false;  // the reactor asks all the time
  any_finished_.exchange(false, std::memory_order_acquire);
  decltype(finished_) finished;
  {
    const std::lock_guard lock(mutex_);
    finished.swap(finished_);
  }
  for (auto& [thread, finish] : finished) {
    thread->join();
    threads_.erase(thread);
    finish();
  }
  // Only now: a job rings after it has announced itself, and may have done so as late as its join.
  // A job that finishes meanwhile has set the flag that the next round looks at.
  bell_.clear();
  return !finished.empty();
}

}  // namespace troupe::host
