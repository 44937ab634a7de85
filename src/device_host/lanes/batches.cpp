#include "device_host/lanes/batches.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <thread>

namespace troupe::host {
namespace {

bool ends_the_host(Errc code) {
  return code == Errc::device_lost || code == Errc::device_failed || code == Errc::peer_lost;
}

}  // namespace

Error at_step(const Error& error, std::size_t number) {
  return {error.code, error.native,
          "command " + std::to_string(number) + " of the sequence: " + error.message};
}

bool Batches::empty() const {
  return (open_queues_ | busy_queues_) == 0;
}

void Batches::extend(std::vector<Run>& runs, std::uint64_t ticket) {
  if (!runs.empty() && runs.back().first + runs.back().count == ticket) {
    ++runs.back().count;
  } else {
    runs.push_back({ticket, 1});
  }
}

void Batches::add(const wire::Command& command, const AddressMap& addresses, Queue queue,
                  const Waits& waits) {
  const auto ticket = command.header().ticket;
  flight_->queued(ticket, queue.index());
  extend(open_[queue.index()].runs, ticket);
  if (command.info().verdict != nullptr) judge(ticket, command, 0, addresses, queue);
  ++open_count_;
  add_place(queue, waits);
}

void Batches::judge(std::uint64_t ticket, const wire::Command& part, std::size_t number,
                    const AddressMap& addresses, Queue queue) {
  const auto& info = part.info();
  open_[queue.index()].judged.push_back({ticket,
                                         number,
                                         &info,
                                         {part.op(), part.op() + info.bytes},
                                         addresses.find(info.operand(part.op(), *info.cell))});
}

void Batches::add_place(Queue queue, const Waits& waits) {
  auto& batch = open_[queue.index()];
  open_queues_ |= bit(queue.index());
  batch.needs.raise(waits);
  batch.needs.drop(queue.index());  // the queue's own order
  batch.issued = lanes_->issued(queue);
}

void Batches::add(std::uint64_t ticket) {
  extend(ended_, ticket);
  flight_->completed(ticket, 1);
  ++open_count_;
}

const Batches::Batch* Batches::covering(Queue queue, Sequence sequence) const {
  const auto& batches = in_flight_[queue.index()];
  const auto it = std::partition_point(batches.begin(), batches.end(),
                                       [&](const Batch& batch) { return batch.issued < sequence; });
  return it == batches.end() ? nullptr : &*it;
}

Result<void> Batches::order(Queue queue, const Waits& waits, bool alone) {
  if (alone && queue.lane == Lane::collective) {
    if (auto closed = close(queue); !closed) return closed;
  }
  Result<void> outcome;
  waits.for_each([&](std::size_t i, Sequence place) {
    const auto other = Queue::at(i);
    if (outcome.ok() && other != queue) outcome = order_behind(queue, other, place);
  });
  return outcome;
}

Result<void> Batches::order_behind(Queue queue, Queue other, Sequence place) {
  if (place <= lanes_->completed(other) || place <= lanes_->waited(queue, other)) return {};
  if (lanes_->stands_for_peers(other, place)) {
    if (auto closed = close(queue); !closed) return closed;
  }
  const auto* batch = covering(other, place);
  if (batch == nullptr) {
    if (auto closed = close(other); !closed) return closed;
    batch = covering(other, place);
    check(batch != nullptr, "a command waits for one that was not issued");
  }
  if (auto waited = engine_->wait(queue, batch->mark.get()); !waited) return waited;
  lanes_->set_waited(queue, other, batch->issued);
  return {};
}

Result<void> Batches::close_all() {
  open_count_ = 0;
  for (auto left = open_queues_; left != 0; left &= left - 1) {
    const auto i = first_of(left);
    if (in_flight_[i].size() >= kMaxInFlight) continue;  // it grows on until there is room
    if (auto closed = close(Queue::at(i)); !closed) return closed;
  }
  publish();
  return {};
}

Result<void> Batches::close(Queue queue) {
  if ((open_queues_ & bit(queue.index())) == 0) return {};
  open_queues_ &= ~bit(queue.index());
  Batch batch = std::exchange(open_[queue.index()], Batch{});
  // To wait for other ranks here would stop the heart of a host that is well.
  if (completion_ == wire::Completion::sync && !lanes_->stands_for_peers(queue, batch.issued)) {
    if (auto synced = engine_->synchronize(queue); !synced) return synced;
  }
  auto mark = engine_->mark(queue);
  if (!mark) return mark.error();
  batch.mark = HeldMark(*engine_, *mark);
  if (completion_ == wire::Completion::host_fn) {
    if (auto called = call_back(queue, batch); !called) return called;
  }
  in_flight_[queue.index()].push_back(std::move(batch));
  busy_queues_ |= bit(queue.index());
  return {};
}

Result<void> Batches::close(const Waits& waits) {
  Result<void> outcome;
  waits.for_each([&](std::size_t i, Sequence place) {
    if (outcome.ok() && covering(Queue::at(i), place) == nullptr) outcome = close(Queue::at(i));
  });
  return outcome;
}

Result<void> Batches::call_back(Queue queue, Batch& batch) {
  auto call = std::make_unique<HostFnCall>();
  call->bell = &bell_;
  const auto run = [](void* argument) {
    auto& own = *static_cast<HostFnCall*>(argument);
    const auto* bell = own.bell;
    own.has_run.store(true, std::memory_order_release);  // the batch, and it, may be gone now
    bell->ring();
  };
  if (auto queued = engine_->call_when_reached(queue, run, call.get()); !queued) return queued;
  batch.host_fn = std::move(call);
  return {};
}

bool Batches::has_what_it_needs(const Batch& batch) const {
  return !batch.needs.any_of(
      [this](std::size_t i, Sequence place) { return place > lanes_->completed(Queue::at(i)); });
}

Result<bool> Batches::done(const Batch& batch) const {
  auto reached = engine_->reached(batch.mark.get());
  // In a context with an error no host function runs any more: the mark alone tells of it.
  const bool over = !reached.ok() && ends_the_host(reached.code());
  if (!over && batch.awaits_host_fn()) return false;
  return reached;
}

void Batches::end(const Batch& batch) {
  auto runs = batch.runs;
  for (const auto& [ticket, number, info, op, cell] : batch.judged) {
    const auto verdict = info->verdict(op.data(), cell);
    if (verdict.ok()) continue;
    const auto holds = [ticket = ticket](const Run& run) {
      return ticket >= run.first && ticket < run.first + run.count;
    };
    const auto run = std::find_if(runs.begin(), runs.end(), holds);
    if (run == runs.end()) continue;  // another command of its sequence has failed before
    publish();
    replies_->send(ticket, 1, number == 0 ? verdict.error() : at_step(verdict.error(), number),
                   true);
    const Run behind{ticket + 1, static_cast<std::uint32_t>(run->first + run->count - ticket - 1)};
    run->count = static_cast<std::uint32_t>(ticket - run->first);
    if (behind.count != 0) runs.push_back(behind);
  }
  std::copy_if(runs.begin(), runs.end(), std::back_inserter(ended_),
               [](const Run& run) { return run.count != 0; });
}

Result<bool> Batches::answer_front(std::size_t index) {
  auto& batches = in_flight_[index];
  if (batches.empty() || !has_what_it_needs(batches.front())) return false;
  auto& batch = batches.front();
  const auto outcome = done(batch);
  if (outcome.ok() && !*outcome) return false;
  if (!outcome.ok() && ends_the_host(outcome.code())) return outcome;
  lanes_->complete(Queue::at(index), batch.issued);
  // First: whoever has the answer finds the time.
  for (const auto& run : batch.runs) flight_->completed(run.first, run.count);
  if (outcome.ok()) {
    end(batch);
  } else {
    publish();  // what it needed is answered before it
    for (const auto& run : batch.runs) replies_->send(run.first, run.count, outcome.error(), true);
  }
  pop(index);
  return true;
}

void Batches::pop(std::size_t index) {
  in_flight_[index].pop_front();
  if (in_flight_[index].empty()) busy_queues_ &= ~bit(index);
}

Result<bool> Batches::poll() {
  bool any = false;
  Result<void> failure;
  for (bool again = true; again && failure.ok();) {
    again = false;
    for (auto left = busy_queues_; left != 0 && failure.ok(); left &= left - 1) {
      for (;;) {
        const auto answered = answer_front(first_of(left));
        if (!answered.ok()) failure = answered.error();
        if (!answered.ok() || !*answered) break;
        again = any = true;
      }
    }
  }
  publish();
  if (!failure.ok()) return failure.error();
  return any;
}

void Batches::publish() {
  if (ended_.empty()) return;
  // By ticket: whatever a command depends on has a lower one.
  std::sort(ended_.begin(), ended_.end(),
            [](const Run& a, const Run& b) { return a.first < b.first; });
  Run merged = ended_.front();
  for (std::size_t i = 1; i < ended_.size(); ++i) {
    if (ended_[i].first == merged.first + merged.count) {
      merged.count += ended_[i].count;
      continue;
    }
    replies_->send(merged.first, merged.count, {});
    merged = ended_[i];
  }
  replies_->send(merged.first, merged.count, {});
  ended_.clear();
}

Result<void> Batches::health() const {
  for (const auto& batches : in_flight_) {
    if (batches.empty()) continue;
    const auto outcome = engine_->reached(batches.front().mark.get());
    if (outcome.code() == Errc::device_lost || outcome.code() == Errc::device_failed)
      return outcome.error();
  }
  return {};
}

Result<bool> Batches::drained() {
  bool all = true;
  for (std::size_t i = 0; i < kQueueCount; ++i) {
    if (auto closed = close(Queue::at(i)); !closed) return closed.error();
    auto& batches = in_flight_[i];
    while (!batches.empty()) {
      const auto outcome = done(batches.front());
      if (outcome.ok() && !*outcome) break;
      if (outcome.code() == Errc::device_lost || outcome.code() == Errc::device_failed)
        return outcome;
      if (batches.front().awaits_host_fn()) break;
      pop(i);
    }
    all &= batches.empty();
  }
  return all;
}

void Batches::discard() {
  // Host functions run when the drained stream gets there, unless the context is lost.
  for (auto& batches : in_flight_) {
    for (auto& batch : batches) {
      while (batch.awaits_host_fn() && engine_->reached(batch.mark.get()).ok())
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    batches.clear();
  }
  for (auto& batch : open_) batch = Batch{};
  open_queues_ = busy_queues_ = 0;
  ended_.clear();
}

}  // namespace troupe::host
