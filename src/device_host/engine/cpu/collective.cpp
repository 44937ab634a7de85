#include <utility>

#include "device_host/engine/cpu/cpu_engine.hpp"

namespace troupe::host::cpu {
namespace {

Result<void> require_root(std::uint32_t root, const Communicator& communicator) {
  if (root < static_cast<std::uint32_t>(communicator.size())) return {};
  return Error{Errc::invalid, 0, "no such root: rank " + std::to_string(root)};
}

}  // namespace

Result<void> CpuEngine::submit_collective(std::function<void(Communicator&)> work) {
  auto current = communicator();
  if (!current) return current.error();
  auto over = (*current)->ended();
  auto execute = [communicator = *current, work = std::move(work)] {
    if (!communicator->ended()->load()) work(*communicator);
  };
  return collective_.push(
      {.lane = Lane::collective, .work = std::move(execute), .failure_over = std::move(over)});
}

Result<void> CpuEngine::run(const collective::AllReduce& op, const Call& call) {
  return submit_collective([op, source = call.at(op.source),
                            destination = call.at(op.destination)](Communicator& communicator) {
    communicator.all_reduce(op.dtype, op.op, op.count, source, destination);
  });
}

Result<void> CpuEngine::run(const collective::Reduce& op, const Call& call) {
  auto current = communicator();
  if (!current) return current.error();
  if (auto root = require_root(op.root, **current); !root) return root;
  return submit_collective([op, source = call.at(op.source),
                            destination = call.at(op.destination)](Communicator& communicator) {
    communicator.reduce(op.dtype, op.op, static_cast<int>(op.root), op.count, source, destination);
  });
}

Result<void> CpuEngine::run(const collective::Broadcast& op, const Call& call) {
  auto current = communicator();
  if (!current) return current.error();
  if (auto root = require_root(op.root, **current); !root) return root;
  return submit_collective([op, data = call.at(op.data)](Communicator& communicator) {
    communicator.broadcast(static_cast<int>(op.root), op.count * size_of(op.dtype), data);
  });
}

Result<void> CpuEngine::run(const collective::AllGather& op, const Call& call) {
  return submit_collective([op, source = call.at(op.source),
                            destination = call.at(op.destination)](Communicator& communicator) {
    communicator.all_gather(op.count * size_of(op.dtype), source, destination);
  });
}

Result<void> CpuEngine::run(const collective::ReduceScatter& op, const Call& call) {
  return submit_collective([op, source = call.at(op.source),
                            destination = call.at(op.destination)](Communicator& communicator) {
    communicator.reduce_scatter(op.dtype, op.op, op.count, source, destination);
  });
}

Result<void> CpuEngine::run(const collective::AllToAll& op, const Call& call) {
  return submit_collective([op, source = call.at(op.source),
                            destination = call.at(op.destination)](Communicator& communicator) {
    communicator.all_to_all(op.count * size_of(op.dtype), source, destination);
  });
}

Result<void> CpuEngine::run(const collective::Exchange&, const Call& call) {
  auto current = communicator();
  if (!current) return current.error();
  std::vector<Communicator::Message> messages;
  messages.reserve(call.tail().size());
  for (const auto& part : call.tail()) {
    if (part.peer >= static_cast<std::uint32_t>((*current)->size())) {
      return Error{Errc::invalid, 0, "no such peer: rank " + std::to_string(part.peer)};
    }
    messages.push_back(
        {call.at(part.data), part.data.bytes, static_cast<int>(part.peer), part.receive != 0});
  }
  if (!Communicator::self_messages_match((*current)->rank(), messages)) {
    return Error{Errc::invalid, 0, "an exchange whose messages to its own rank do not match"};
  }
  return submit_collective([messages = std::move(messages)](Communicator& communicator) {
    communicator.exchange(messages);
  });
}

}  // namespace troupe::host::cpu
