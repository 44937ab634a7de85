#include "lib/collective/gloo/communicator_cpu.hpp"

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/broadcast.h>
#include <gloo/common/error.h>
#include <gloo/context.h>
#include <gloo/reduce.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <new>

#include "lib/collective/gloo/mesh_cpu.hpp"
#include "lib/collective/gloo/reduction_cpu.hpp"

namespace troupe::host::cpu {
namespace {

/// Slots of our own. Gloo's collectives have theirs in the upper byte, from 1 on (gloo/types.h).
constexpr std::uint64_t kScatterSlot = std::uint64_t{0x80} << 56;
constexpr std::uint64_t kExchangeSlot = std::uint64_t{0x81} << 56;

class MeshContext final : public gloo::Context {
 public:
  explicit MeshContext(std::shared_ptr<Mesh> mesh) : gloo::Context(mesh->rank, mesh->size) {
    transportContext_ = std::move(mesh);
  }
};

void copy_bytes(std::byte* destination, const std::byte* source, std::size_t bytes) {
  if (destination != source && bytes != 0) std::memcpy(destination, source, bytes);
}

/// Gloo takes an element's size from a type.
template <class Visit>
void with_size(DType dtype, Visit&& visit) {
  switch (size_of(dtype)) {
    case 1: return visit(std::uint8_t{});
    case 4: return visit(std::uint32_t{});
    default: return visit(std::uint64_t{});
  }
}

}  // namespace

Communicator::Communicator(int rank, int size) : rank_(rank), size_(size) {
  if (size > 1) mesh_ = std::make_shared<Mesh>(rank, size);
}
Communicator::~Communicator() = default;

Result<void> Communicator::listen(const std::string& interface) {
  return mesh_ ? mesh_->listen(interface) : Result<void>{};
}

std::vector<std::byte> Communicator::contribution() const {
  return mesh_ ? mesh_->contribution() : std::vector<std::byte>{};
}

Result<void> Communicator::connect(const std::vector<std::vector<std::byte>>& contributions) {
  if (!mesh_) return {};
  if (auto connected = mesh_->connect(contributions); !connected) return connected;
  context_ = std::make_shared<MeshContext>(mesh_);
  try {
    std::int64_t ranks = 1;
    auto* bytes = reinterpret_cast<std::byte*>(&ranks);
    all_reduce({DType::i64, ReduceOp::sum}, 1, bytes, bytes);
    if (ranks != size_)
      return Error{Errc::library, 0, "the new communicator's first all-reduce was wrong"};
  } catch (const Exception& exception) {
    return exception.error();
  }
  return {};
}

void Communicator::abort() noexcept {
  ended_->store(true);
  if (mesh_) mesh_->abort();
}

void Communicator::guarded(const std::function<void()>& body) {
  try {
    body();
  } catch (const gloo::IoException& exception) {
    throw Exception({Errc::peer_lost, 0, exception.what()});
  } catch (const std::bad_alloc&) {
    if (mesh_) mesh_->abort();  // the others would wait for this rank's part
    throw Exception({Errc::out_of_memory, 0, "no memory for a collective's workspace"});
  } catch (const std::exception& exception) {
    if (mesh_) mesh_->abort();
    throw Exception({Errc::library, 0, exception.what()});
  }
}

void Communicator::all_reduce(const How& how, std::size_t count, std::byte* source,
                              std::byte* destination) {
  reduce_any({Reduction::all, how, 0, count, source, destination});
}

void Communicator::reduce(const How& how, int root, std::size_t count, std::byte* source,
                          std::byte* destination) {
  reduce_any({Reduction::root, how, root, count, source, destination});
}

void Communicator::reduce_scatter(const How& how, std::size_t count, std::byte* source,
                                  std::byte* destination) {
  reduce_any({Reduction::scatter, how, 0, count, source, destination});
}

std::size_t Communicator::source_count(const ReduceCall& call) const {
  return call.kind == Reduction::scatter ? call.count * static_cast<std::size_t>(size_)
                                         : call.count;
}

void Communicator::reduce_any(const ReduceCall& call) {
  if (call.count == 0) return;
  const bool scales = call.how.op == ReduceOp::premul_sum;
  if (size_ == 1 && !scales)
    return copy_bytes(call.destination, call.source, call.count * size_of(call.how.dtype));
  guarded([&] {
    const auto elements = source_count(call);
    const bool narrow = is_narrow(call.how.dtype);
    const bool divides = call.how.op == ReduceOp::avg && divides_before(call.how.dtype);
    std::vector<std::byte> scaled;
    auto summed = call;
    if (scales || (divides && !narrow)) {
      scaled.resize(elements * size_of(call.how.dtype));
      summed.source = scaled.data();
    }
    if (scales) {
      scale_all(call.how.dtype, call.how.scalar, call.source, scaled.data(), elements);
      summed.how.op = ReduceOp::sum;
    }
    if (size_ == 1)
      return copy_bytes(call.destination, summed.source, call.count * size_of(call.how.dtype));
    if (!narrow) {
      if (divides) divide_before(call.how.dtype, call.source, scaled.data(), elements, size_);
      return reduce_native(summed);
    }
    // Accumulate in f32 and round once.
    std::vector<float> wide(elements);
    widen_all(call.how.dtype, summed.source, wide.data(), elements);
    auto* data = reinterpret_cast<std::byte*>(wide.data());
    if (divides) divide_before(DType::f32, data, data, elements, size_);
    auto in_f32 = summed;
    in_f32.how.dtype = DType::f32;
    in_f32.source = data;
    in_f32.destination = data;
    if (call.kind == Reduction::scatter)
      in_f32.destination += static_cast<std::size_t>(rank_) * call.count * sizeof(float);
    reduce_native(in_f32);
    if (call.kind == Reduction::root && rank_ != call.root) return;
    narrow_all(call.how.dtype, reinterpret_cast<const float*>(in_f32.destination), call.destination,
               call.count);
  });
}

void Communicator::reduce_native(const ReduceCall& call) {
  const auto combine = combine_function(call.how.dtype, call.how.op);
  if (call.kind == Reduction::scatter) {
    reduce_pairwise(call);
  } else if (call.kind == Reduction::all) {
    with_size(call.how.dtype, [&](auto element) {
      using T = decltype(element);
      gloo::AllreduceOptions options(context_);
      if (call.source != call.destination)
        options.setInput(reinterpret_cast<T*>(call.source), call.count);
      options.setOutput(reinterpret_cast<T*>(call.destination), call.count);
      options.setReduceFunction(combine);
      gloo::allreduce(options);
    });
  } else {
    // Gloo wants room for the result at every rank.
    std::vector<std::byte> room(rank_ == call.root ? 0 : call.count * size_of(call.how.dtype));
    with_size(call.how.dtype, [&](auto element) {
      using T = decltype(element);
      gloo::ReduceOptions options(context_);
      options.setInput(reinterpret_cast<T*>(call.source), call.count);
      options.setOutput(reinterpret_cast<T*>(rank_ == call.root ? call.destination : room.data()),
                        call.count);
      options.setRoot(call.root);
      options.setReduceFunction(combine);
      gloo::reduce(options);
    });
    if (rank_ != call.root) return;
  }
  if (call.how.op == ReduceOp::avg)
    divide_behind(call.how.dtype, call.destination, call.count, size_);
}

/// Reduce-scatter, which this Gloo has only in its old, fixed-buffer form: in step s every rank
/// sends rank + s its part and adds what rank - s sends, while the next part is already on its way.
void Communicator::reduce_pairwise(const ReduceCall& call) {
  const auto combine = combine_function(call.how.dtype, call.how.op);
  const std::size_t bytes = call.count * size_of(call.how.dtype);
  copy_bytes(call.destination, call.source + static_cast<std::size_t>(rank_) * bytes, bytes);
  std::array<std::vector<std::byte>, 2> arrived = {std::vector<std::byte>(bytes),
                                                   std::vector<std::byte>(bytes)};
  auto outgoing =
      context_->createUnboundBuffer(call.source, bytes * static_cast<std::size_t>(size_));
  const std::array incoming = {context_->createUnboundBuffer(arrived[0].data(), bytes),
                               context_->createUnboundBuffer(arrived[1].data(), bytes)};
  const auto post = [&](int step) {
    const int to = (rank_ + step) % size_;
    const int from = (rank_ + size_ - step) % size_;
    incoming[static_cast<std::size_t>(step % 2)]->recv(from, kScatterSlot);
    outgoing->send(to, kScatterSlot, static_cast<std::size_t>(to) * bytes, bytes);
  };
  post(1);
  for (int step = 1; step < size_; ++step) {
    if (step + 1 < size_) post(step + 1);
    const auto current = static_cast<std::size_t>(step % 2);
    incoming[current]->waitRecv();
    combine(call.destination, call.destination, arrived[current].data(), call.count);
  }
  for (int step = 1; step < size_; ++step) outgoing->waitSend();
}

void Communicator::broadcast(int root, std::size_t bytes, std::byte* data) {
  if (size_ == 1 || bytes == 0) return;
  guarded([&] {
    gloo::BroadcastOptions options(context_);
    options.setOutput(data, bytes);
    options.setRoot(root);
    gloo::broadcast(options);
  });
}

void Communicator::all_gather(std::size_t bytes, std::byte* source, std::byte* destination) {
  auto* own = destination + static_cast<std::size_t>(rank_) * bytes;
  if (size_ == 1 || bytes == 0) return copy_bytes(own, source, bytes);
  guarded([&] {
    gloo::AllgatherOptions options(context_);
    if (source != own) options.setInput(source, bytes);
    options.setOutput(destination, bytes * static_cast<std::size_t>(size_));
    gloo::allgather(options);
  });
}

void Communicator::all_to_all(std::size_t bytes, std::byte* source, std::byte* destination) {
  if (size_ == 1 || bytes == 0) return copy_bytes(destination, source, bytes);
  guarded([&] {
    gloo::AlltoallOptions options(context_);
    options.setInput(source, bytes * static_cast<std::size_t>(size_));
    options.setOutput(destination, bytes * static_cast<std::size_t>(size_));
    gloo::alltoall(options);
  });
}

void Communicator::exchange(const std::vector<Message>& messages) {
  std::deque<const Message*> sent, received;
  for (const auto& message : messages) {
    if (message.peer == rank_) (message.receive ? received : sent).push_back(&message);
  }
  for (std::size_t i = 0; i < sent.size(); ++i)
    copy_bytes(received[i]->data, sent[i]->data, sent[i]->bytes);
  if (size_ == 1) return;
  guarded([&] {
    std::vector<std::unique_ptr<gloo::transport::UnboundBuffer>> buffers;
    buffers.reserve(messages.size());
    for (const bool receive : {true, false}) {
      for (const auto& message : messages) {
        if (message.peer == rank_ || message.receive != receive) continue;
        buffers.push_back(context_->createUnboundBuffer(message.data, message.bytes));
        if (receive) {
          buffers.back()->recv(message.peer, kExchangeSlot);
        } else {
          buffers.back()->send(message.peer, kExchangeSlot);
        }
      }
    }
    std::size_t next = 0;
    for (const bool receive : {true, false}) {
      for (const auto& message : messages) {
        if (message.peer == rank_ || message.receive != receive) continue;
        receive ? buffers[next]->waitRecv() : buffers[next]->waitSend();
        ++next;
      }
    }
  });
}

}  // namespace troupe::host::cpu
