#include "device_host/engine/cpu/worker.hpp"

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "device_host/engine/current_error.hpp"

namespace troupe::host::cpu {

CompletionSignal::CompletionSignal() : fd_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (!fd_) throw Exception({Errc::io, errno, "eventfd"});
}

void CompletionSignal::mark_reached() noexcept {
  if (!armed_.exchange(false)) return;
  const std::uint64_t one = 1;
  // Fails only when the counter is full: then the descriptor is readable anyway.
  [[maybe_unused]] const auto written = ::write(fd_.get(), &one, sizeof one);
}

Worker::Worker(const char* name, CompletionSignal& signal)
    : signal_(signal), thread_([this] { loop(); }) {
  ::pthread_setname_np(thread_.native_handle(), name);
}

Worker::~Worker() {
  drop_work();
  finish();
}

void Worker::finish() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

Result<void> Worker::push(Task task) {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_ >= (task.work ? kWorkLimit : kLimit)) {
      return Error{Errc::would_block, 0, "the cpu engine's queue is full"};
    }
    queues_[task.queue.index()].push_back({pushed_++, std::move(task)});
    if (++waiting_ > 1 && !stalled_.load(std::memory_order_relaxed)) return {};  // it is awake
  }
  wake_.notify_one();
  return {};
}

void Worker::look_again() noexcept {
  if (!stalled_.load()) return;  // it sees the mark without being told
  { const std::lock_guard lock(mutex_); }
  wake_.notify_one();
}

std::deque<Worker::Waiting>* Worker::next() {
  std::deque<Waiting>* oldest = nullptr;
  for (auto& queue : queues_) {
    if (queue.empty() || (oldest != nullptr && oldest->front().number < queue.front().number))
      continue;
    const auto& mark = queue.front().task.wait_for;
    if (!mark || mark->reached.load() != 0) oldest = &queue;
  }
  return oldest;
}

void Worker::loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    std::deque<Waiting>* queue = nullptr;
    wake_.wait(lock, [&] {
      stalled_.store(true);  // before the look at the marks: see look_again()
      queue = next();
      return queue != nullptr || (ending_ && waiting_ == 0);
    });
    stalled_.store(false);
    if (queue == nullptr) return;
    Task task = std::move(queue->front().task);
    queue->pop_front();
    --waiting_;
    lock.unlock();
    execute(task);
    task = {};  // what the task owned goes before the lock is taken
    lock.lock();
  }
}

void Worker::execute(Task& task) {
  auto& failure = failures_[task.queue.index()];
  if (task.work && !dropping_.load(std::memory_order_relaxed)) {
    try {
      task.work();
    } catch (...) {
      if (!failure || failure->over->load()) {  // of several, the first is the cause
        const bool lasts = task.failure_over != nullptr;
        auto over = lasts ? task.failure_over : std::make_shared<std::atomic<bool>>(false);
        failure = std::make_shared<Failure>(Failure{current_error(), std::move(over), lasts});
      }
    }
  }
  if (task.then) task.then();
  if (!task.mark) return;
  if (failure && failure->over->load()) failure = nullptr;
  task.mark->failure = failure;
  task.mark->reached.store(1);
  task.mark->reached.notify_all();
  if (listener_) listener_();
  signal_.mark_reached();
}

}  // namespace troupe::host::cpu
