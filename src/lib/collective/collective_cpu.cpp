#include <gloo/barrier.h>
#include <gloo/config.h>
#include <troupe/lib/collective.hpp>

#include <map>
#include <mutex>
#include <utility>

#include "device_host/engine/collective_half.hpp"
#include "device_host/engine/cpu/library.hpp"
#include "lib/collective/communicator_cpu.hpp"

namespace troupe::host::cpu {
namespace {

template <class Op>
Result<void> fits(const Op& op, int rank, int size) {
  return op.check_world(rank, size);
}
Result<void> fits(std::span<const TailOperand> messages, int rank, int size) {
  return collective::check_world(messages, rank, size);
}

class Collective final
    : public HalfOf<Collective, CollectiveHalf, collective::AllReduce, collective::Reduce,
                    collective::Broadcast, collective::AllGather, collective::ReduceScatter,
                    collective::AllToAll, collective::Exchange> {
 public:
  explicit Collective(Services& services) : services_(services) {}
  [[nodiscard]] Dependencies stands_on() const override;

  Result<std::vector<std::byte>> contribute(const Place& place) override;
  Result<void> connect(const Place& place,
                       const std::vector<std::vector<std::byte>>& contributions) override;
  void drop(std::uint32_t communicator) override;
  void abort() override;

  Result<void> run(const collective::AllReduce& op, const Call& call);
  Result<void> run(const collective::Reduce& op, const Call& call);
  Result<void> run(const collective::Broadcast& op, const Call& call);
  Result<void> run(const collective::AllGather& op, const Call& call);
  Result<void> run(const collective::ReduceScatter& op, const Call& call);
  Result<void> run(const collective::AllToAll& op, const Call& call);
  Result<void> run(const collective::Exchange& op, const Call& call);

 private:
  /// Queues work(communicator) if check_world() finds no fault in `checked`, the operation or its
  /// tail; to be skipped if that communicator has been aborted when its turn comes.
  template <class Checked>
  Result<void> submit(const Call& call, const Checked& checked,
                      std::function<void(Communicator&)> work);
  Result<std::shared_ptr<Communicator>> communicator(std::uint32_t number);

  struct Entry {
    std::shared_ptr<Communicator> communicator;
    bool connected = false;
  };
  Services& services_;
  std::mutex mutex_;
  std::map<std::uint32_t, Entry> communicators_;  ///< by number
};

Dependencies Collective::stands_on() const {
  const auto version = std::to_string(GLOO_VERSION_MAJOR) + "." +
                       std::to_string(GLOO_VERSION_MINOR) + "." +
                       std::to_string(GLOO_VERSION_PATCH);
  return {{"Gloo", version, static_cast<void (*)(gloo::BarrierOptions&)>(&gloo::barrier)}};
}

Result<std::vector<std::byte>> Collective::contribute(const Place& place) {
  if (place.size < 1 || place.rank < 0 || place.rank >= place.size)
    return Error{Errc::invalid, 0, "no such rank"};
  auto made = std::make_shared<Communicator>(place.rank, place.size);
  if (auto listening = made->listen(services_.network()); !listening) return listening.error();
  auto contribution = made->contribution();
  drop(place.communicator);
  const std::lock_guard lock(mutex_);
  communicators_[place.communicator] = {std::move(made)};
  return contribution;
}

Result<void> Collective::connect(const Place& place,
                                 const std::vector<std::vector<std::byte>>& contributions) {
  std::shared_ptr<Communicator> forming;
  {
    const std::lock_guard lock(mutex_);
    const auto entry = communicators_.find(place.communicator);
    if (entry == communicators_.end() || entry->second.connected ||
        entry->second.communicator->rank() != place.rank ||
        entry->second.communicator->size() != place.size) {
      return Error{Errc::invalid, 0,
                   "connect needs a contribution of the same rank to the same size"};
    }
    forming = entry->second.communicator;
  }
  auto formed = forming->connect(contributions);
  const std::lock_guard lock(mutex_);
  if (forming->ended()->load()) return Error{Errc::peer_lost, 0, "the communicator was aborted"};
  if (!formed) {
    communicators_.erase(place.communicator);
    return formed;
  }
  communicators_[place.communicator].connected = true;
  return {};
}

void Collective::drop(std::uint32_t communicator) {
  std::shared_ptr<Communicator> ending;
  const std::lock_guard lock(mutex_);
  const auto entry = communicators_.find(communicator);
  if (entry == communicators_.end()) return;
  ending = std::move(entry->second.communicator);
  communicators_.erase(entry);
  ending->abort();
}

void Collective::abort() {
  std::map<std::uint32_t, Entry> ending;
  const std::lock_guard lock(mutex_);
  ending.swap(communicators_);
  for (const auto& [number, entry] : ending) entry.communicator->abort();
}

Result<std::shared_ptr<Communicator>> Collective::communicator(std::uint32_t number) {
  const std::lock_guard lock(mutex_);
  const auto entry = communicators_.find(number);
  if (entry != communicators_.end() && entry->second.connected) return entry->second.communicator;
  return Error{Errc::world_reformed, 0, "there is no communicator"};
}

template <class Checked>
Result<void> Collective::submit(const Call& call, const Checked& checked,
                                std::function<void(Communicator&)> work) {
  auto current = communicator(call.communicator());
  if (!current) return current.error();
  if (auto right = fits(checked, (*current)->rank(), (*current)->size()); !right) return right;
  auto over = (*current)->ended();
  auto execute = [communicator = *current, work = std::move(work)] {
    if (!communicator->ended()->load()) work(*communicator);
  };
  return services_.submit(call, std::move(execute), std::move(over));
}

Result<void> Collective::run(const collective::AllReduce& op, const Call& call) {
  return submit(call, op,
                [op, source = call.at(op.source),
                 destination = call.at(op.destination)](Communicator& communicator) {
                  communicator.all_reduce(op.dtype, op.op, op.count, source, destination);
                });
}

Result<void> Collective::run(const collective::Reduce& op, const Call& call) {
  return submit(call, op,
                [op, source = call.at(op.source),
                 destination = call.at(op.destination)](Communicator& communicator) {
                  communicator.reduce(op.dtype, op.op, static_cast<int>(op.root), op.count, source,
                                      destination);
                });
}

Result<void> Collective::run(const collective::Broadcast& op, const Call& call) {
  return submit(call, op, [op, data = call.at(op.data)](Communicator& communicator) {
    communicator.broadcast(static_cast<int>(op.root), op.count * size_of(op.dtype), data);
  });
}

Result<void> Collective::run(const collective::AllGather& op, const Call& call) {
  return submit(call, op,
                [op, source = call.at(op.source),
                 destination = call.at(op.destination)](Communicator& communicator) {
                  communicator.all_gather(op.count * size_of(op.dtype), source, destination);
                });
}

Result<void> Collective::run(const collective::ReduceScatter& op, const Call& call) {
  return submit(call, op,
                [op, source = call.at(op.source),
                 destination = call.at(op.destination)](Communicator& communicator) {
                  communicator.reduce_scatter(op.dtype, op.op, op.count, source, destination);
                });
}

Result<void> Collective::run(const collective::AllToAll& op, const Call& call) {
  return submit(call, op,
                [op, source = call.at(op.source),
                 destination = call.at(op.destination)](Communicator& communicator) {
                  communicator.all_to_all(op.count * size_of(op.dtype), source, destination);
                });
}

Result<void> Collective::run(const collective::Exchange&, const Call& call) {
  std::vector<Communicator::Message> messages;
  messages.reserve(call.tail().size());
  for (const auto& part : call.tail()) {
    messages.push_back(
        {call.at(part.range), part.range.bytes, static_cast<int>(part.tag), part.written()});
  }
  return submit(call, call.tail(), [messages = std::move(messages)](Communicator& communicator) {
    communicator.exchange(messages);
  });
}

}  // namespace
}  // namespace troupe::host::cpu

extern "C" __attribute__((visibility("default"))) troupe::host::LibraryHalf* troupe_library_make(
    troupe::host::cpu::Services& services) {
  return new troupe::host::cpu::Collective(services);
}
