#include "rank/device/commands/error_ledger.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace troupe::rank_process {
namespace {

bool by_loss(const Error& error) {
  return error.code == Errc::device_lost || error.code == Errc::world_reformed ||
         OutcomeLog::is_spoilt(error.code);
}

void count(UnreadErrors& errors, const Error& error) {
  if (errors.count++ == 0) errors.first = error;
}

}  // namespace

Error ErrorLedger::enter(Error error, ProgramPlace place, Kind kind) {
  const std::lock_guard lock(mutex_);
  error.read = std::make_shared<std::atomic<bool>>(false);
  open_.push_back({error, place, kind});
  if (open_.size() < settle_at_) return error;
  settle();
  settle_at_ = 2 * open_.size() + 64;
  return error;
}

void ErrorLedger::settle() {
  std::erase_if(open_, [this](const Entry& entry) {
    const auto& error = entry.error;
    if (error.read.use_count() > 1) return false;  // a future holds it
    std::atomic_thread_fence(std::memory_order_acquire);
    if (error.read->load(std::memory_order_relaxed)) return true;
    if (by_loss(error)) {
      count(lost_by_loss_, error);
    } else {
      lose(entry, entry.kind == Kind::answer ? lost_answers_ : lost_);
    }
    return true;
  });
}

void ErrorLedger::lose(const Entry& entry, std::vector<Lost>& lost) {
  constexpr std::size_t kPlaces = 64;
  const auto at = std::upper_bound(
      lost.begin(), lost.end(), entry.place,
      [](const ProgramPlace& place, const Lost& other) { return place < other.place; });
  if (at != lost.begin() && (std::prev(at)->place == entry.place || lost.size() >= kPlaces)) {
    count(std::prev(at)->errors, entry.error);
  } else {
    count(lost.insert(at, {entry.place, {}})->errors, entry.error);
  }
}

void ErrorLedger::mark_all_read() {
  const std::lock_guard lock(mutex_);
  std::erase_if(open_, [](const Entry& entry) { return entry.kind == Kind::failure; });
  lost_.clear();
  lost_by_loss_ = {};
}

void ErrorLedger::forgive_losses() {
  const std::lock_guard lock(mutex_);
  std::erase_if(open_, [](const Entry& entry) { return by_loss(entry.error); });
  lost_by_loss_ = {};
}

void ErrorLedger::forget_since(ProgramPlace place) {
  forgive_losses();
  const std::lock_guard lock(mutex_);
  std::erase_if(open_, [&](const Entry& entry) { return entry.place > place; });
  for (auto* const list : {&lost_, &lost_answers_})
    std::erase_if(*list, [&](const Lost& lost) { return lost.place > place; });
}

UnreadErrors ErrorLedger::unread() {
  const std::lock_guard lock(mutex_);
  UnreadErrors unread;
  for (const auto* const list : {&lost_, &lost_answers_}) {
    for (const auto& lost : *list) {
      if (unread.count == 0) unread.first = lost.errors.first;
      unread.count += lost.errors.count;
    }
  }
  for (const auto& entry : open_) {
    if (!entry.error.read->load(std::memory_order_acquire)) count(unread, entry.error);
  }
  if (unread.count == 0) unread.first = lost_by_loss_.first;
  unread.count += lost_by_loss_.count;
  return unread;
}

}  // namespace troupe::rank_process
