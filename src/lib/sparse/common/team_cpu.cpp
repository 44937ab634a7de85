#include "lib/sparse/common/team_cpu.hpp"

#include <algorithm>

namespace troupe::host::cpu {
namespace {

constexpr int kMostThreads = 64;
/// Into so many parts per thread work is divided: rows differ in length, and cores in speed.
constexpr std::int64_t kPartsPerThread = 8;

}  // namespace

Team::Team(int threads)
    : helpers_(static_cast<std::size_t>(std::clamp(threads, 1, kMostThreads)) - 1) {}

Team::~Team() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  begin_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void Team::share(std::int64_t items, const Part& part) {
  const std::unique_lock caller(caller_, std::try_to_lock);
  if (helpers_ == 0 || items < 2 || !caller.owns_lock()) return part(0, items);
  while (threads_.size() < helpers_) threads_.emplace_back([this] { run(); });
  const auto parts = static_cast<std::int64_t>(helpers_ + 1) * kPartsPerThread;
  Work work{&part, items, std::max<std::int64_t>(1, items / parts)};
  {
    const std::lock_guard lock(mutex_);
    work_ = &work;
    ++turn_;
  }
  begin_.notify_all();
  work.help();
  std::unique_lock lock(mutex_);
  work_ = nullptr;  // a helper that wakes up late finds nothing to do
  end_.wait(lock, [this] { return busy_ == 0; });
}

void Team::Work::help() {
  for (auto first = next.fetch_add(at_once); first < items; first = next.fetch_add(at_once))
    (*part)(first, std::min(items, first + at_once));
}

void Team::run() {
  std::uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  for (;;) {
    begin_.wait(lock, [&] { return ending_ || (turn_ != seen && work_ != nullptr); });
    if (ending_) return;
    seen = turn_;
    auto& work = *work_;  // it lasts as long as somebody is busy with it
    ++busy_;
    lock.unlock();
    work.help();
    lock.lock();
    if (--busy_ == 0) end_.notify_one();
  }
}

}  // namespace troupe::host::cpu
