#include "lib/collective/peer_memory/direct_cuda.hpp"

#include <atomic>
#include <cstdlib>
#include <utility>
#include <vector>

#include "lib/collective/nccl/reducible_cuda.hpp"

namespace troupe::host::cuda {
namespace {

kernels::DirectOp direct_op(ReduceOp op) {
  switch (op) {
    case ReduceOp::prod: return kernels::DirectOp::product;
    case ReduceOp::min: return kernels::DirectOp::min;
    case ReduceOp::max: return kernels::DirectOp::max;
    case ReduceOp::avg: return kernels::DirectOp::mean;
    default: return kernels::DirectOp::sum;
  }
}

std::uint32_t calls_before_the_first() {
  const char* const calls = std::getenv("TESTING_TROUPE_DIRECT_CALLS");
  return calls == nullptr ? 0 : static_cast<std::uint32_t>(std::strtoul(calls, nullptr, 10));
}

}  // namespace

Direct::Direct(std::unique_ptr<PeerMemory> memory, std::uint32_t* given_up, int ranks)
    : memory_(std::move(memory)), given_up_(given_up) {
  ranks_.calls = reinterpret_cast<std::uint32_t*>(memory_->own() + kernels::inbox_bytes(ranks));
  ranks_.given_up = given_up;
  ranks_.ranks = ranks;
}

Result<void> Direct::meet(int rank, std::span<const PeerMemory::Card> cards,
                          const std::function<bool()>& given_up) {
  if (auto met = memory_->meet(rank, cards, given_up); !met) return met;
  ranks_.rank = rank;
  for (int peer = 0; peer < ranks_.ranks; ++peer) ranks_.inbox[peer] = memory_->of(peer);
  return {};
}

Result<void> Direct::reduce(const Services& services, const collective::AllReduce& op,
                            const Call& call) {
  const auto launch = services.launch(call.queue());
  // A graph is made while collectives run, which may take until they have ended: those of this host
  // do, for all have launched them.
  const bool may_repeat =
      !services.records() && !services.other_hosts() && op.op != ReduceOp::premul_sum;
  if (!may_repeat) return queue(launch, op, call);
  const auto word = [](const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); };
  const Key key{static_cast<std::uint64_t>(static_cast<DType>(op.dtype)) << 32 |
                    static_cast<std::uint64_t>(op.op),
                op.count, word(call.at(op.source)), word(call.at(op.destination))};
  auto* const repeated = find(key);
  if (repeated == nullptr) return queue(launch, op, call);
  if (!repeated->ready) TROUPE_CUDA_PROPAGATE(make_graph(*repeated, op, call));
  TROUPE_CUDA_TRY(cudaGraphLaunch(repeated->ready.get(), launch.stream));
  return {};
}

Direct::Repeated* Direct::find(const Key& key) {
  for (auto& repeated : repeated_) {
    if (repeated.key == key) return &repeated;
  }
  if (repeated_.size() < kKept) {
    repeated_.push_back({key, {}, {}});
  } else {
    repeated_[next_] = {key, {}, {}};
    next_ = (next_ + 1) % kKept;
  }
  return nullptr;
}

Result<void> Direct::make_graph(Repeated& repeated, const collective::AllReduce& op,
                                const Call& call) {
  if (!capturing_)
    TROUPE_CUDA_TRY(cudaStreamCreateWithFlags(capturing_.out(), cudaStreamNonBlocking));
  TROUPE_CUDA_TRY(cudaStreamBeginCapture(capturing_.get(), cudaStreamCaptureModeRelaxed));
  const auto queued = queue({capturing_.get(), 1}, op, call);
  const auto ended = cudaStreamEndCapture(capturing_.get(), repeated.graph.out());
  if (!queued.ok()) return queued;
  TROUPE_CUDA_TRY(ended);
  TROUPE_CUDA_TRY(cudaGraphInstantiateWithFlags(repeated.ready.out(), repeated.graph.get(), 0));
  return {};
}

Result<void> Direct::queue(const kernels::Launch& launch, const collective::AllReduce& op,
                           const Call& call) const {
  return for_reducible(op.dtype, [&]<class T>(T) -> Result<void> {
    TROUPE_CUDA_TRY(kernels::reduce_directly(
        launch, ranks_, direct_op(op.op), op.count, op.op == ReduceOp::premul_sum,
        reduction_scalar<T>(op.scalar, call), call.at<const T>(op.source),
        call.at<T>(op.destination)));
    return {};
  });
}

Result<void> Direct::meet_on_device(const kernels::Launch& launch) const {
  TROUPE_CUDA_TRY(kernels::meet_directly(launch, ranks_));
  return {};
}

void Direct::give_up() noexcept {
  std::atomic_ref(*given_up_).store(1, std::memory_order_release);
}

Result<std::shared_ptr<Direct>> Directs::make(int device, int ranks) {
  if (ranks < 2 || ranks > kernels::kDirectRanks)
    return Error{Errc::unsupported, 0, "so many ranks do not write to one another's memory"};
  const std::vector<std::uint32_t> calls(kernels::kDirectBlocks, calls_before_the_first());
  auto memory =
      PeerMemory::make(device, kernels::inbox_bytes(ranks), std::as_bytes(std::span(calls)));
  if (!memory.ok()) return memory.error();
  const auto word = take_word();
  if (!word.ok()) return word.error();
  return std::make_shared<Direct>(std::move(*memory), *word, ranks);
}

Result<std::uint32_t*> Directs::take_word() {
  const std::lock_guard lock(mutex_);
  if (free_words_.empty()) {
    HostMemory page;
    TROUPE_CUDA_TRY(cudaHostAlloc(page.out(), kWords * sizeof(std::uint32_t), cudaHostAllocMapped));
    auto* const words = static_cast<std::uint32_t*>(page.get());
    for (std::size_t i = 0; i < kWords; ++i) free_words_.push_back(words + i);
    pages_.push_back(std::move(page));
  }
  auto* const word = free_words_.back();
  free_words_.pop_back();
  *word = 0;
  return word;
}

Result<void> Directs::mark(cudaStream_t stream) {
  const std::lock_guard lock(mutex_);
  for (; !retired_.empty(); retired_.pop_back()) {
    Event end;
    TROUPE_CUDA_TRY(cudaEventCreateWithFlags(end.out(), cudaEventDisableTiming));
    TROUPE_CUDA_TRY(cudaEventRecord(end.get(), stream));
    marked_.push_back({std::move(end), std::move(retired_.back())});
  }
  return {};
}

Result<void> Directs::free_ended() {
  std::vector<Marked> ended;  // unmapped without the lock, which retire() must not wait for
  const std::lock_guard lock(mutex_);
  for (auto i = marked_.begin(); i != marked_.end();) {
    const auto status = cudaEventQuery(i->end.get());
    if (status == cudaErrorNotReady) {
      (void)cudaGetLastError();  // else a later call trips over it
      ++i;
      continue;
    }
    if (status != cudaSuccess) return failure(status, "cudaEventQuery");
    free_words_.push_back(i->direct->given_up());
    ended.push_back(std::move(*i));
    i = marked_.erase(i);
  }
  return {};
}

}  // namespace troupe::host::cuda
