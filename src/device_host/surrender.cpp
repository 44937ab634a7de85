#include "device_host/surrender.hpp"

#include <chrono>

namespace troupe::host {
namespace {

/// For the reactor to do it: mostly it is not waiting for anything.
constexpr auto kReactorFirst = std::chrono::milliseconds(20);
constexpr auto kForEver = std::chrono::hours(1);

}  // namespace

Surrender::Surrender(ipc::SharedCounter& asked, std::function<void()> give_up)
    : asked_(asked),
      give_up_(std::move(give_up)),
      done_(asked.value()),
      thread_([this] { watch(); }) {}

Surrender::~Surrender() {
  ends_ = true;
  asked_.advance();
  thread_.join();
}

void Surrender::catch_up() {
  const std::lock_guard lock(giving_up_);
  const auto asked = asked_.value();
  if (done_ == asked) return;
  give_up_();
  done_ = asked;
}

void Surrender::watch() {
  for (auto seen = done_.load(); !ends_;) {
    const auto asked = asked_.wait_beyond(seen, kForEver);
    if (asked == seen || ends_) continue;
    seen = asked;
    std::this_thread::sleep_for(kReactorFirst);
    // The reactor may be waiting in use() itself: what it waits for ends by this.
    const std::unique_lock lock(launching_, kReactorFirst);
    catch_up();
  }
}

}  // namespace troupe::host
