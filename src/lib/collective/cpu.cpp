#include <gloo/barrier.h>
#include <gloo/config.h>
#include <troupe/clock.hpp>
#include <troupe/lib/collective.hpp>

#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "device_host/engine/collective_half.hpp"
#include "device_host/engine/cpu/library.hpp"
#include "lib/collective/gloo/channel_cpu.hpp"
#include "lib/collective/gloo/communicator_cpu.hpp"

namespace troupe::host::cpu {
namespace {

/// Checks that the operation is right for a communicator. Errors: invalid.
template <class Op>
Result<void> fits(const Op& op, const Call&, int rank, int size) {
  return op.check_world(rank, size);
}
Result<void> fits(const collective::Exchange&, const Call& call, int rank, int size) {
  return collective::check_world(call.tail(), rank, size);
}
Result<void> fits(const collective::Bundle&, const Call& call, int rank, int size) {
  const auto list = collective::bundled(call.parts());
  if (!list.ok()) return list.error();
  for (const auto& one : *list) {
    if (auto right = one.info->check_world(one.op(), rank, size); !right) return right;
  }
  return {};
}

using Work = std::function<void(Communicator&)>;

/// The scalar of a premul_sum, where it is read when the operation executes.
class FactorBytes {
 public:
  FactorBytes(const Scalar& scalar, const Call& call)
      : value_(scalar.value),
        element_(scalar.device.present() ? call.at(scalar.device) : nullptr) {}
  [[nodiscard]] const std::byte* get() const {
    return element_ != nullptr ? element_ : value_.data();
  }

 private:
  decltype(Scalar::value) value_;
  const std::byte* element_;
};
template <class Op>
FactorBytes factor_of(const Op& op, const Call& call) {
  return {op.scalar, call};
}

Work work_of(const collective::AllReduce& op, const Call& call) {
  return [op, source = call.at(op.source), destination = call.at(op.destination),
          scalar = factor_of(op, call)](Communicator& communicator) {
    communicator.all_reduce({op.dtype, op.op, scalar.get()}, op.count, source, destination);
  };
}

Work work_of(const collective::Reduce& op, const Call& call) {
  return [op, source = call.at(op.source), destination = call.at(op.destination),
          scalar = factor_of(op, call)](Communicator& communicator) {
    communicator.reduce({op.dtype, op.op, scalar.get()}, static_cast<int>(op.root), op.count,
                        source, destination);
  };
}

Work work_of(const collective::Broadcast& op, const Call& call) {
  const auto* const source = op.source.present() ? call.at(op.source) : nullptr;
  return [op, source, data = call.at(op.data)](Communicator& communicator) {
    const auto bytes = op.count * size_of(op.dtype);
    if (source != nullptr && bytes != 0) std::memcpy(data, source, bytes);
    communicator.broadcast(static_cast<int>(op.root), bytes, data);
  };
}

Work work_of(const collective::Gather& op, const Call& call) {
  auto* const whole = op.destination.present() ? call.at(op.destination) : nullptr;
  return [op, whole, part = call.at(op.source)](Communicator& communicator) {
    const auto bytes = op.count * size_of(op.dtype);
    const int root = static_cast<int>(op.root);
    std::vector<Communicator::Message> messages{{part, bytes, root, false}};
    for (int peer = 0; communicator.rank() == root && peer < communicator.size(); ++peer)
      messages.push_back({whole + static_cast<std::size_t>(peer) * bytes, bytes, peer, true});
    communicator.exchange(messages);
  };
}

Work work_of(const collective::Scatter& op, const Call& call) {
  auto* const whole = op.source.present() ? call.at(op.source) : nullptr;
  return [op, whole, part = call.at(op.destination)](Communicator& communicator) {
    const auto bytes = op.count * size_of(op.dtype);
    const int root = static_cast<int>(op.root);
    std::vector<Communicator::Message> messages{{part, bytes, root, true}};
    for (int peer = 0; communicator.rank() == root && peer < communicator.size(); ++peer)
      messages.push_back({whole + static_cast<std::size_t>(peer) * bytes, bytes, peer, false});
    communicator.exchange(messages);
  };
}

Work work_of(const collective::AllGather& op, const Call& call) {
  return [op, source = call.at(op.source),
          destination = call.at(op.destination)](Communicator& communicator) {
    communicator.all_gather(op.count * size_of(op.dtype), source, destination);
  };
}

Work work_of(const collective::ReduceScatter& op, const Call& call) {
  return [op, source = call.at(op.source), destination = call.at(op.destination),
          scalar = factor_of(op, call)](Communicator& communicator) {
    communicator.reduce_scatter({op.dtype, op.op, scalar.get()}, op.count, source, destination);
  };
}

Work work_of(const collective::AllToAll& op, const Call& call) {
  return [op, source = call.at(op.source),
          destination = call.at(op.destination)](Communicator& communicator) {
    communicator.all_to_all(op.count * size_of(op.dtype), source, destination);
  };
}

Work work_of(const collective::Exchange&, const Call& call) {
  std::vector<Communicator::Message> messages;
  messages.reserve(call.tail().size());
  for (const auto& part : call.tail()) {
    messages.push_back(
        {call.at(part.range), part.range.bytes, static_cast<int>(part.tag), part.written()});
  }
  return [messages = std::move(messages)](Communicator& communicator) {
    communicator.exchange(messages);
  };
}

/// The order is all that matters: a sum that nobody looks at.
Work work_of(const collective::Barrier&, const Call&) {
  return [](Communicator& communicator) {
    std::byte mine{}, sum{};
    communicator.all_reduce({DType::u8, ReduceOp::sum}, 1, &mine, &sum);
  };
}

template <class Op>
std::pair<std::uint32_t, Work (*)(const std::byte*, const Call&)> bundled_work() {
  return {opcode_of<Op>, [](const std::byte* op, const Call& call) {
            return work_of(*reinterpret_cast<const Op*>(op), call);
          }};
}

Work work_of(const collective::Bundle&, const Call& call) {
  static const std::map<std::uint32_t, Work (*)(const std::byte*, const Call&)> kinds{
      bundled_work<collective::AllReduce>(),     bundled_work<collective::Reduce>(),
      bundled_work<collective::Broadcast>(),     bundled_work<collective::AllGather>(),
      bundled_work<collective::ReduceScatter>(), bundled_work<collective::AllToAll>(),
      bundled_work<collective::Gather>(),        bundled_work<collective::Scatter>()};
  std::vector<Work> all;
  for (const auto& one : collective::bundled(call.parts()).take())
    all.push_back(kinds.at(one.info->opcode)(one.op(), call));
  return [all = std::move(all)](Communicator& communicator) {
    for (const auto& work : all) work(communicator);
  };
}

/// Tells the rank how long a collective takes.
class Timing {
 public:
  explicit Timing(wire::HostTimes* times)
      : times_(times), begin_(times != nullptr ? SteadyClock::time() : TimePoint()) {}
  ~Timing() {
    if (times_ == nullptr) return;
    const auto took = SteadyClock::time() - begin_;
    times_->in_collectives.fetch_add(static_cast<std::uint64_t>(took.count()),
                                     std::memory_order_relaxed);
    times_->collectives.fetch_add(1, std::memory_order_relaxed);
  }
  Timing(const Timing&) = delete;
  Timing& operator=(const Timing&) = delete;

 private:
  wire::HostTimes* times_;
  TimePoint begin_;
};

class Collective final : public HalfOf<Collective, CollectiveHalf, collective::Operations> {
 public:
  explicit Collective(Services& services) : services_(services) {}
  [[nodiscard]] Dependencies stands_on() const override;

  Result<std::vector<std::byte>> contribute(const Place& place) override;
  Result<void> connect(const Place& place,
                       const std::vector<std::vector<std::byte>>& contributions) override;
  void drop(std::uint32_t communicator) override;
  void abort() override;
  Result<std::shared_ptr<ChannelEnd>> make_channel_end(bool receives) override {
    return cpu::make_channel_end(receives, services_.network());
  }
  void measure(wire::HostTimes& times) override { times_ = &times; }

  /// Queues what the operation does if it is right for its communicator; to be skipped if that has
  /// been aborted when its turn comes.
  template <class Op>
  Result<void> run(const Op& op, const Call& call);

 private:
  Result<std::shared_ptr<Communicator>> communicator(std::uint32_t number);

  struct Entry {
    std::shared_ptr<Communicator> communicator;
    bool connected = false;
  };
  Services& services_;
  wire::HostTimes* times_ = nullptr;  ///< nullptr: nobody wants to know
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
  if (!is_given_up(place)) drop(place.communicator);
  const std::lock_guard lock(mutex_);
  if (is_given_up(place)) return Error{Errc::peer_lost, 0, "the communicator was given up"};
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
  note_abort();
  ending.swap(communicators_);
  for (const auto& [number, entry] : ending) entry.communicator->abort();
}

Result<std::shared_ptr<Communicator>> Collective::communicator(std::uint32_t number) {
  const std::lock_guard lock(mutex_);
  const auto entry = communicators_.find(number);
  if (entry != communicators_.end() && entry->second.connected) return entry->second.communicator;
  return Error{Errc::world_reformed, 0, "there is no communicator"};
}

template <class Op>
Result<void> Collective::run(const Op& op, const Call& call) {
  auto current = communicator(call.communicator());
  if (!current) return current.error();
  if (auto right = fits(op, call, (*current)->rank(), (*current)->size()); !right) return right;
  auto over = (*current)->ended();
  auto execute = [communicator = *current, work = work_of(op, call), times = times_] {
    if (communicator->ended()->load()) return;
    const Timing timing(times);
    work(*communicator);
  };
  return services_.submit(call, std::move(execute), std::move(over));
}

}  // namespace
}  // namespace troupe::host::cpu

TROUPE_MODULE_HALF(troupe::host::cpu::Collective, cpu)
