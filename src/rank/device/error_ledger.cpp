#include "rank/device/error_ledger.hpp"

#include <utility>

namespace troupe::rank {
namespace {

bool by_loss(const Error& error) {
  return error.code == Errc::device_lost || error.code == Errc::world_reformed ||
         error.code == Errc::stale || error.code == Errc::peer_lost;
}

void count(UnreadErrors& errors, const Error& error) {
  if (errors.count++ == 0) errors.first = error;
}

}  // namespace

Error ErrorLedger::enter(Error error) {
  const std::lock_guard lock(mutex_);
  if (!first_) first_ = error;
  error.read = std::make_shared<std::atomic<bool>>(false);
  any_.store(true, std::memory_order_release);
  open_.push_back(error);
  if (open_.size() < settle_at_) return error;
  settle();
  settle_at_ = 2 * open_.size() + 64;
  return error;
}

void ErrorLedger::settle() {
  std::erase_if(open_, [this](const Error& error) {
    if (error.read.use_count() > 1) return false;  // a future holds it
    std::atomic_thread_fence(std::memory_order_acquire);
    if (!error.read->load(std::memory_order_relaxed))
      count(by_loss(error) ? lost_by_loss_ : lost_, error);
    return true;
  });
}

std::optional<Error> ErrorLedger::take() {
  if (!any_.load(std::memory_order_acquire)) return std::nullopt;
  const std::lock_guard lock(mutex_);
  any_.store(false, std::memory_order_relaxed);
  open_.clear();
  lost_ = lost_by_loss_ = {};
  return std::exchange(first_, std::nullopt);
}

void ErrorLedger::forgive_losses() {
  const std::lock_guard lock(mutex_);
  std::erase_if(open_, by_loss);
  lost_by_loss_ = {};
}

UnreadErrors ErrorLedger::unread() {
  const std::lock_guard lock(mutex_);
  auto unread = lost_;
  for (const auto& error : open_) {
    if (!error.read->load(std::memory_order_acquire)) count(unread, error);
  }
  if (unread.count == 0) unread.first = lost_by_loss_.first;
  unread.count += lost_by_loss_.count;
  return unread;
}

}  // namespace troupe::rank
