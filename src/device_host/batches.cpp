#include "device_host/batches.hpp"

#include <chrono>
#include <thread>

namespace troupe::host {
namespace {

bool ends_the_host(Errc code) {
  return code == Errc::device_lost || code == Errc::device_failed || code == Errc::peer_lost;
}

}  // namespace

Result<void> Batches::close() {
  if (open_.count == 0) return {};
  Batch batch = std::move(open_);
  open_ = Batch{};
  if (completion_ == wire::Completion::host_fn) {
    batch.host_fns = std::make_unique<std::atomic<int>>(__builtin_popcount(batch.lanes));
  }
  for (std::size_t i = 0; i < kLaneCount; ++i) {
    if ((batch.lanes >> i & 1u) == 0) continue;
    const auto lane = static_cast<Lane>(i);
    batch.issued[i] = lanes_->issued(lane);
    if (completion_ == wire::Completion::sync) {
      if (auto synced = engine_->synchronize(lane); !synced) return synced;
    }
    auto mark = lanes_->mark(lane);
    if (!mark) return mark.error();
    batch.marks[i] = *mark;
    if (batch.host_fns) {
      auto call = std::make_unique<HostFnCall>(HostFnCall{batch.host_fns.get(), &bell_});
      const auto run = [](void* argument) {
        const std::unique_ptr<HostFnCall> own(static_cast<HostFnCall*>(argument));
        const auto* bell = own->bell;
        own->left->fetch_sub(1, std::memory_order_acq_rel);
        bell->ring();
      };
      if (auto queued = engine_->call_when_reached(lane, run, call.get()); !queued) return queued;
      (void)call.release();
    }
  }
  in_flight_.push_back(std::move(batch));
  return {};
}

Result<bool> Batches::done(Batch& batch) {
  if (batch.host_fns && batch.host_fns->load(std::memory_order_acquire) != 0) return false;
  for (auto& mark : batch.marks) {
    if (!mark) continue;
    auto reached = engine_->reached(mark->get());
    if (!reached || !*reached) return reached;
  }
  return true;
}

Result<bool> Batches::poll() {
  bool any = false;
  while (!in_flight_.empty()) {
    auto& batch = in_flight_.front();
    const auto outcome = done(batch);
    if (outcome.ok() && !*outcome) break;
    if (!outcome.ok() && ends_the_host(outcome.code())) return outcome;
    for (std::size_t i = 0; i < kLaneCount; ++i) {
      if (batch.marks[i]) lanes_->completed(static_cast<Lane>(i), batch.issued[i]);
    }
    replies_->send(batch.first, batch.count,
                   outcome.ok() ? Result<void>() : Result<void>(outcome.error()));
    flight_->completed(batch.first, batch.count);
    in_flight_.pop_front();
    any = true;
  }
  return any;
}

Result<bool> Batches::drained() {
  while (!in_flight_.empty()) {
    const auto outcome = done(in_flight_.front());
    if (outcome.ok() && !*outcome) return false;
    if (outcome.code() == Errc::device_lost || outcome.code() == Errc::device_failed)
      return outcome;
    in_flight_.pop_front();
  }
  return true;
}

void Batches::discard() {
  // Host functions still hold their counters: they run when the drained stream gets there.
  for (auto& batch : in_flight_) {
    while (batch.host_fns && batch.host_fns->load(std::memory_order_acquire) != 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }
  in_flight_.clear();
  open_ = Batch{};
}

}  // namespace troupe::host
