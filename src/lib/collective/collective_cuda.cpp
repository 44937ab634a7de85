#include <troupe/lib/collective.hpp>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>

#include "device_host/engine/collective_half.hpp"
#include "device_host/engine/cuda/library.hpp"
#include "lib/collective/communicator_cuda.hpp"
#include "lib/collective/status_cuda.hpp"

namespace troupe::host::cuda {
namespace {

/// NCCL's name for a type it reduces.
Result<ncclDataType_t> nccl_type(DType dtype) {
  switch (dtype) {
    case DType::f16: return ncclFloat16;
    case DType::bf16: return ncclBfloat16;
    case DType::f32: return ncclFloat32;
    case DType::f64: return ncclFloat64;
    case DType::f8e4m3: return ncclFloat8e4m3;
    case DType::f8e5m2: return ncclFloat8e5m2;
    case DType::i8: return ncclInt8;
    case DType::u8: return ncclUint8;
    case DType::i32: return ncclInt32;
    case DType::u32: return ncclUint32;
    case DType::i64: return ncclInt64;
    case DType::u64: return ncclUint64;
    default:
      return Error{Errc::unsupported, 0, "NCCL does not reduce " + std::string(to_string(dtype))};
  }
}

ncclRedOp_t nccl_op(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum: return ncclSum;
    case ReduceOp::prod: return ncclProd;
    case ReduceOp::min: return ncclMin;
    case ReduceOp::max: return ncclMax;
    case ReduceOp::avg: return ncclAvg;
  }
  return ncclNumOps;  // which NCCL refuses
}

/// What is only moved is moved as bytes, whatever its type.
std::size_t bytes_of(std::uint64_t count, DType dtype) {
  return count * size_of(dtype);
}

/// Ends a group of sends and receives, in any case: an open group belongs to the thread. `queued`
/// is what queueing them said.
Result<void> end_group(ncclResult_t queued) {
  const auto ended = ncclGroupEnd();
  if (queued != ncclSuccess) return failure(queued, "ncclSend/ncclRecv", classify_call(queued));
  if (ended != ncclSuccess) return failure(ended, "ncclGroupEnd", classify_noticed(ended));
  return {};
}

class Collective final
    : public HalfOf<Collective, CollectiveHalf, collective::AllReduce, collective::Reduce,
                    collective::Broadcast, collective::AllGather, collective::ReduceScatter,
                    collective::AllToAll, collective::Exchange> {
 public:
  explicit Collective(Services& services);
  [[nodiscard]] Dependencies stands_on() const override;

  Result<void> prepare_connect() override;
  Result<std::vector<std::byte>> contribute(const Place& place) override;
  Result<void> connect(const Place& place,
                       const std::vector<std::vector<std::byte>>& contributions) override;
  void drop(std::uint32_t communicator) override;
  void abort() override;
  std::vector<Link> new_links(const OperationInfo& info, const std::byte* op,
                              const Call& call) override;
  Result<void> open_links(std::uint32_t communicator, const std::vector<Link>& links) override;
  Result<void> health() override;

  Result<void> run(const collective::AllReduce& op, const Call& call);
  Result<void> run(const collective::Reduce& op, const Call& call);
  Result<void> run(const collective::Broadcast& op, const Call& call);
  Result<void> run(const collective::AllGather& op, const Call& call);
  Result<void> run(const collective::ReduceScatter& op, const Call& call);
  Result<void> run(const collective::AllToAll& op, const Call& call);
  Result<void> run(const collective::Exchange& op, const Call& call);

 private:
  [[nodiscard]] cudaStream_t stream(Queue queue) const { return services_.stream(queue); }
  template <class Op>
  Result<void> copy_alone(const Op& op, const Call& call);
  /// Of that number; one that was never formed, or given up, says so itself.
  [[nodiscard]] std::shared_ptr<Communicator> communicator(std::uint32_t number);
  [[nodiscard]] std::vector<std::shared_ptr<Communicator>> communicators();
  /// As Communicator::use(), on that of the call.
  template <class Work>
  Result<void> use(const Call& call, Work&& work) {
    return communicator(call.communicator())->use(std::forward<Work>(work));
  }

  Services& services_;
  std::mutex mutex_;
  std::map<std::uint32_t, std::shared_ptr<Communicator>> communicators_;  ///< by number
};

Collective::Collective(Services& services) : services_(services) {
  // NCCL takes buffers of 4 MiB for each channel and connection; over NVLink a quarter is as fast
  // (bench/results), and a standby takes 240 MiB less.
  if (!services.other_hosts()) ::setenv("NCCL_BUFFSIZE", "1048576", 0);
  // NCCL would connect the ranks for each algorithm when a collective first uses it, and block the
  // reactor until all have got there. (Messages are connected by open_links().) Safe while the
  // process has no other threads, as when the engine is made.
  ::setenv("NCCL_RUNTIME_CONNECT", "0", 0);
}

/// From the sources' NCCL_VERSION macro, for 2.9 and later.
Dependencies Collective::stands_on() const {
  int code = 0;
  (void)ncclGetVersion(&code);
  return {{"NCCL",
           std::to_string(code / 10000) + "." + std::to_string(code % 10000 / 100) + "." +
               std::to_string(code % 100),
           &ncclGetVersion}};
}

Result<void> Collective::prepare_connect() {
  services_.enter();
  return services_.count_memory("NCCL",
                                [this] { return Communicator::rehearse(services_.device()); });
}

std::shared_ptr<Communicator> Collective::communicator(std::uint32_t number) {
  const std::lock_guard lock(mutex_);
  auto& entry = communicators_[number];
  if (!entry) {
    entry = std::make_shared<Communicator>(services_.device(),
                                           number == 0 ? 0 : Communicator::kGroupChannels);
  }
  return entry;
}

std::vector<std::shared_ptr<Communicator>> Collective::communicators() {
  std::vector<std::shared_ptr<Communicator>> all;
  const std::lock_guard lock(mutex_);
  for (const auto& [number, communicator] : communicators_) all.push_back(communicator);
  return all;
}

Result<std::vector<std::byte>> Collective::contribute(const Place& place) {
  if (place.rank < 0 || place.rank >= place.size)
    return Error{Errc::invalid, 0, "rank outside of the communicator"};
  services_.enter();
  communicator(place.communicator)->abort();
  return Communicator::contribute(place.rank);
}

Result<void> Collective::connect(const Place& place,
                                 const std::vector<std::vector<std::byte>>& contributions) {
  services_.enter();
  return services_.count_memory("communicator", [&] {
    return communicator(place.communicator)->connect(place.rank, place.size, contributions);
  });
}

void Collective::drop(std::uint32_t communicator) {
  services_.enter();
  std::shared_ptr<Communicator> ending;  // waits, unlocked, until NCCL has let go
  const std::lock_guard lock(mutex_);
  const auto entry = communicators_.find(communicator);
  if (entry == communicators_.end()) return;
  ending = std::move(entry->second);
  communicators_.erase(entry);
}

void Collective::abort() {
  for (const auto& communicator : communicators()) communicator->abort();
}

Result<void> Collective::health() {
  for (const auto& communicator : communicators()) {
    if (auto healthy = communicator->health(); !healthy.ok()) return healthy;
  }
  return {};
}

/// A reduction over one rank is a copy. NCCL 2.28 refuses an average of integers over one rank.
template <class Op>
Result<void> Collective::copy_alone(const Op& op, const Call& call) {
  const auto* const source = call.at(op.source);
  auto* const destination = call.at(op.destination);
  if (source == destination) return {};
  TROUPE_CUDA_TRY(cudaMemcpyAsync(destination, source, bytes_of(op.count, op.dtype),
                                  cudaMemcpyDeviceToDevice, stream(call.queue())));
  return {};
}

Result<void> Collective::run(const collective::AllReduce& op, const Call& call) {
  const auto type = nccl_type(op.dtype);
  if (!type) return type.error();
  return use(call, [&](ncclComm_t comm, int rank, int size) -> Result<void> {
    if (auto fits = op.check_world(rank, size); !fits) return fits;
    if (size == 1) return copy_alone(op, call);
    TROUPE_NCCL_TRY(ncclAllReduce(call.at(op.source), call.at(op.destination), op.count, *type,
                                  nccl_op(op.op), comm, stream(call.queue())));
    return {};
  });
}

Result<void> Collective::run(const collective::Reduce& op, const Call& call) {
  const auto type = nccl_type(op.dtype);
  if (!type) return type.error();
  return use(call, [&](ncclComm_t comm, int rank, int size) -> Result<void> {
    if (auto fits = op.check_world(rank, size); !fits) return fits;
    if (size == 1) return copy_alone(op, call);
    TROUPE_NCCL_TRY(ncclReduce(call.at(op.source), call.at(op.destination), op.count, *type,
                               nccl_op(op.op), static_cast<int>(op.root), comm,
                               stream(call.queue())));
    return {};
  });
}

Result<void> Collective::run(const collective::Broadcast& op, const Call& call) {
  return use(call, [&](ncclComm_t comm, int rank, int size) -> Result<void> {
    if (auto fits = op.check_world(rank, size); !fits) return fits;
    TROUPE_NCCL_TRY(ncclBroadcast(call.at(op.data), call.at(op.data), bytes_of(op.count, op.dtype),
                                  ncclInt8, static_cast<int>(op.root), comm, stream(call.queue())));
    return {};
  });
}

Result<void> Collective::run(const collective::AllGather& op, const Call& call) {
  return use(call, [&](ncclComm_t comm, int rank, int size) -> Result<void> {
    if (auto fits = op.check_world(rank, size); !fits) return fits;
    TROUPE_NCCL_TRY(ncclAllGather(call.at(op.source), call.at(op.destination),
                                  bytes_of(op.count, op.dtype), ncclInt8, comm,
                                  stream(call.queue())));
    return {};
  });
}

Result<void> Collective::run(const collective::ReduceScatter& op, const Call& call) {
  const auto type = nccl_type(op.dtype);
  if (!type) return type.error();
  return use(call, [&](ncclComm_t comm, int rank, int size) -> Result<void> {
    if (auto fits = op.check_world(rank, size); !fits) return fits;
    if (size == 1) return copy_alone(op, call);
    TROUPE_NCCL_TRY(ncclReduceScatter(call.at(op.source), call.at(op.destination), op.count, *type,
                                      nccl_op(op.op), comm, stream(call.queue())));
    return {};
  });
}

Result<void> Collective::run(const collective::AllToAll& op, const Call& call) {
  const auto bytes = bytes_of(op.count, op.dtype);
  const auto* source = call.at(op.source);
  auto* destination = call.at(op.destination);
  const auto its_stream = stream(call.queue());
  return use(call, [&](ncclComm_t comm, int rank, int size) -> Result<void> {
    if (auto fits = op.check_world(rank, size); !fits) return fits;
    TROUPE_NCCL_TRY(ncclGroupStart());
    auto status = ncclSuccess;
    for (int peer = 0; peer < size && status == ncclSuccess; ++peer) {
      const auto offset = static_cast<std::size_t>(peer) * bytes;
      status = ncclSend(source + offset, bytes, ncclInt8, peer, comm, its_stream);
      if (status != ncclSuccess) break;
      status = ncclRecv(destination + offset, bytes, ncclInt8, peer, comm, its_stream);
    }
    return end_group(status);
  });
}

Result<void> Collective::run(const collective::Exchange&, const Call& call) {
  const auto its_stream = stream(call.queue());
  return use(call, [&](ncclComm_t comm, int rank, int size) -> Result<void> {
    if (auto fits = collective::check_world(call.tail(), rank, size); !fits) return fits;
    TROUPE_NCCL_TRY(ncclGroupStart());
    auto status = ncclSuccess;
    for (const auto& part : call.tail()) {
      const int peer = static_cast<int>(part.tag);
      status =
          part.written()
              ? ncclRecv(call.at(part.range), part.range.bytes, ncclInt8, peer, comm, its_stream)
              : ncclSend(call.at(part.range), part.range.bytes, ncclInt8, peer, comm, its_stream);
      if (status != ncclSuccess) break;
    }
    return end_group(status);
  });
}

std::vector<Link> Collective::new_links(const OperationInfo& info, const std::byte* op,
                                        const Call& call) {
  const bool to_all = info.opcode == opcode_of<collective::AllToAll>;
  if (!to_all && info.opcode != opcode_of<collective::Exchange>) return {};
  std::vector<Link> links;
  const auto its = communicator(call.communicator());
  const auto add_if_closed = [&](const Link& link) {
    if (!its->is_open(link) && std::find(links.begin(), links.end(), link) == links.end())
      links.push_back(link);
  };
  (void)its->use([&](ncclComm_t, int rank, int size) -> Result<void> {
    const auto fits = to_all ? info.check_world(op, rank, size)
                             : collective::check_world(call.tail(), rank, size);
    if (!fits.ok()) return {};  // run() will say so
    for (int peer = 0; to_all && peer < size; ++peer) {
      if (peer != rank) add_if_closed({static_cast<std::uint32_t>(peer), false});
      if (peer != rank) add_if_closed({static_cast<std::uint32_t>(peer), true});
    }
    for (const auto& part : call.tail()) {
      if (part.tag != static_cast<std::uint32_t>(rank)) add_if_closed({part.tag, part.written()});
    }
    return {};
  });
  return links;
}

Result<void> Collective::open_links(std::uint32_t communicator, const std::vector<Link>& links) {
  return this->communicator(communicator)->open(links, stream({Lane::collective}));
}

}  // namespace
}  // namespace troupe::host::cuda

extern "C" __attribute__((visibility("default"))) troupe::host::LibraryHalf* troupe_library_make(
    troupe::host::cuda::Services& services) {
  return new troupe::host::cuda::Collective(services);
}
