#include "device_host/formation/surrender.hpp"

#include <chrono>

namespace troupe::host {
namespace {

/// For a launch that is about to return; one that does not is what is waited for.
constexpr auto kLaunchGrace = std::chrono::milliseconds(20);
constexpr auto kForEver = std::chrono::hours(1);

}  // namespace

Surrender::Surrender(ipc::SharedCounter& asked, std::function<void()> give_up)
    : asked_(asked),
      give_up_(std::move(give_up)),
      done_(asked.value()),
      known_(done_),
      thread_([this, seen = done_] { watch(seen); }) {}

Surrender::~Surrender() {
  ends_ = true;
  asked_.advance();
  thread_.join();
}

void Surrender::catch_up() {
  known_ = asked_.value();
  give_up();
}

bool Surrender::begin_launch() {
  const std::lock_guard lock(launching_);
  launches_ = known_ == asked_.value();
  return launches_;
}

void Surrender::end_launch() {
  {
    const std::lock_guard lock(launching_);
    launches_ = false;
  }
  launched_.notify_one();
}

void Surrender::give_up() {
  const std::lock_guard lock(giving_up_);
  const auto asked = asked_.value();  // whoever comes late finds it done
  if (done_ == asked) return;
  give_up_();
  done_ = asked;
}

void Surrender::watch(std::uint32_t seen) {
  while (!ends_) {
    const auto asked = asked_.wait_beyond(seen, kForEver);
    if (asked == seen || ends_) continue;
    seen = asked;
    {  // No launch begins any more.
      std::unique_lock lock(launching_);
      launched_.wait_for(lock, kLaunchGrace, [this] { return !launches_; });
    }
    give_up();
  }
}

}  // namespace troupe::host
