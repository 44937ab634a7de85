#include <utility>

#include "device_host/engine/cpu/cpu_engine.hpp"

namespace troupe::host::cpu {

namespace {

template <class Op>
Result<void> fits(const Op& op, int rank, int size) {
  return op.check_world(rank, size);
}
Result<void> fits(std::span<const TailOperand> messages, int rank, int size) {
  return collective::check_world(messages, rank, size);
}

}  // namespace

template <class Checked>
Result<void> CpuEngine::submit_collective(const Checked& checked,
                                          std::function<void(Communicator&)> work) {
  auto current = communicator();
  if (!current) return current.error();
  if (auto right = fits(checked, (*current)->rank(), (*current)->size()); !right) return right;
  auto over = (*current)->ended();
  auto execute = [communicator = *current, work = std::move(work)] {
    if (!communicator->ended()->load()) work(*communicator);
  };
  return collective_.push(
      {.queue = Lane::collective, .work = std::move(execute), .failure_over = std::move(over)});
}

Result<void> CpuEngine::run(const collective::AllReduce& op, const Call& call) {
  return submit_collective(op, [op, source = call.at(op.source),
                                destination = call.at(op.destination)](Communicator& communicator) {
    communicator.all_reduce(op.dtype, op.op, op.count, source, destination);
  });
}

Result<void> CpuEngine::run(const collective::Reduce& op, const Call& call) {
  return submit_collective(op, [op, source = call.at(op.source),
                                destination = call.at(op.destination)](Communicator& communicator) {
    communicator.reduce(op.dtype, op.op, static_cast<int>(op.root), op.count, source, destination);
  });
}

Result<void> CpuEngine::run(const collective::Broadcast& op, const Call& call) {
  return submit_collective(op, [op, data = call.at(op.data)](Communicator& communicator) {
    communicator.broadcast(static_cast<int>(op.root), op.count * size_of(op.dtype), data);
  });
}

Result<void> CpuEngine::run(const collective::AllGather& op, const Call& call) {
  return submit_collective(op, [op, source = call.at(op.source),
                                destination = call.at(op.destination)](Communicator& communicator) {
    communicator.all_gather(op.count * size_of(op.dtype), source, destination);
  });
}

Result<void> CpuEngine::run(const collective::ReduceScatter& op, const Call& call) {
  return submit_collective(op, [op, source = call.at(op.source),
                                destination = call.at(op.destination)](Communicator& communicator) {
    communicator.reduce_scatter(op.dtype, op.op, op.count, source, destination);
  });
}

Result<void> CpuEngine::run(const collective::AllToAll& op, const Call& call) {
  return submit_collective(op, [op, source = call.at(op.source),
                                destination = call.at(op.destination)](Communicator& communicator) {
    communicator.all_to_all(op.count * size_of(op.dtype), source, destination);
  });
}

Result<void> CpuEngine::run(const collective::Exchange&, const Call& call) {
  std::vector<Communicator::Message> messages;
  messages.reserve(call.tail().size());
  for (const auto& part : call.tail()) {
    messages.push_back(
        {call.at(part.range), part.range.bytes, static_cast<int>(part.tag), part.written()});
  }
  return submit_collective(call.tail(),
                           [messages = std::move(messages)](Communicator& communicator) {
                             communicator.exchange(messages);
                           });
}

}  // namespace troupe::host::cpu
