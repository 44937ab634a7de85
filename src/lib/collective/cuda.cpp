#include <troupe/lib/collective.hpp>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>

#include <fmt/format.h>

#include "device_host/engine/collective_half.hpp"
#include "device_host/engine/cuda/library.hpp"
#include "lib/collective/nccl/alone_cuda.hpp"
#include "lib/collective/nccl/channel_cuda.hpp"
#include "lib/collective/nccl/communicator_cuda.hpp"
#include "lib/collective/nccl/kernels.cuh"
#include "lib/collective/nccl/launch_times_cuda.hpp"
#include "lib/collective/nccl/operators_cuda.hpp"
#include "lib/collective/peer_memory/direct_cuda.hpp"

namespace troupe::host::cuda {
namespace {

class Collective final : public HalfOf<Collective, CollectiveHalf, collective::Operations> {
 public:
  explicit Collective(Services& services);
  [[nodiscard]] Dependencies stands_on() const override;
  Result<void> open(Queue queue) override;

  Result<void> prepare_connect() override;
  Result<std::vector<std::byte>> contribute(const Place& place) override;
  Result<void> connect(const Place& place,
                       const std::vector<std::vector<std::byte>>& contributions) override;
  void drop(std::uint32_t communicator) override;
  void abort() override;
  Result<std::shared_ptr<ChannelEnd>> make_channel_end(bool receives) override {
    return cuda::make_channel_end(receives, services_);
  }
  bool ends_at_once(const OperationInfo& info, const std::byte* op, const Call& call) override;
  std::vector<Link> new_links(const OperationInfo& info, const std::byte* op,
                              const Call& call) override;
  Result<void> open_links(std::uint32_t communicator, const std::vector<Link>& links) override;
  void slab_mapped(std::byte* base, std::uint64_t bytes) override;
  void slab_unmapped(std::byte* base) override;
  Result<void> health() override;

  /// Queues the operation if it is right for its communicator.
  template <class Op>
  Result<void> run(const Op& op, const Call& call) {
    const auto its = communicator(call.communicator());
    return its->use([&](ncclComm_t comm, int rank, int size) -> Result<void> {
      if (auto right = fits(op, call, rank, size); !right) return right;
      const auto direct = its->direct();
      const On on{comm, rank, size, direct.get()};
      if (size == 1 || services_.records()) return launch(op, call, on);
      TROUPE_CUDA_PROPAGATE(directs_.mark(services_.stream(call.queue())));
      return launch_times_.around(services_.stream(call.queue()), call.communicator(),
                                  [&] { return launch(op, call, on); });
    });
  }
  void measure(wire::HostTimes& times) override { launch_times_.begin(times); }

 private:
  /// The communicator of that number; one that was never formed, or given up, says so itself.
  [[nodiscard]] std::shared_ptr<Communicator> communicator(std::uint32_t number);
  [[nodiscard]] std::vector<std::shared_ptr<Communicator>> communicators();
  /// The communicator that an operation is launched on.
  struct On {
    ncclComm_t comm;
    int rank, size;
    Direct* direct;  ///< nullptr: all goes by NCCL
  };
  Result<void> launch(const collective::AllReduce& op, const Call& call, const On& on);
  Result<void> launch(const collective::Reduce& op, const Call& call, const On& on);
  Result<void> launch(const collective::Broadcast& op, const Call& call, const On& on);
  Result<void> launch(const collective::AllGather& op, const Call& call, const On& on);
  Result<void> launch(const collective::ReduceScatter& op, const Call& call, const On& on);
  Result<void> launch(const collective::AllToAll& op, const Call& call, const On& on);
  Result<void> launch(const collective::Exchange& op, const Call& call, const On& on);
  Result<void> launch(const collective::Gather& op, const Call& call, const On& on);
  Result<void> launch(const collective::Scatter& op, const Call& call, const On& on);
  Result<void> launch(const collective::Bundle& op, const Call& call, const On& on);
  Result<void> launch(const collective::Barrier& op, const Call& call, const On& on);
  /// One collective of a bundle.
  template <class... Ops>
  Result<void> launch_bundled(const collective::Bundled& one, const Call& call, const On& on);

  Services& services_;
  DeviceMemory barrier_cell_;  ///< that barriers of NCCL's sum up
  Directs directs_;
  std::mutex mutex_;
  std::map<std::uint32_t, std::shared_ptr<Communicator>> communicators_;  ///< by number
  std::map<std::byte*, std::uint64_t> slabs_;  ///< to be registered, with their bytes
  LaunchTimes launch_times_;
};

Collective::Collective(Services& services) : services_(services) {
  // NCCL takes buffers of 4 MiB for each channel and connection; over NVLink a quarter is as fast
  // (bench/results), and a standby takes 240 MiB less.
  if (!services.other_hosts()) ::setenv("NCCL_BUFFSIZE", "1048576", 0);
  // NCCL would connect the ranks for each algorithm when a collective first uses it, and block the
  // reactor until all are there (open_links() connects messages). No other thread runs by now.
  ::setenv("NCCL_RUNTIME_CONNECT", "0", 0);
  // For a graph it would register buffers together with all ranks, which may run a list instead.
  ::setenv("NCCL_GRAPH_REGISTER", "0", 0);
}

/// From the sources' NCCL_VERSION macro, for 2.9 and later.
Dependencies Collective::stands_on() const {
  int code = 0;
  (void)ncclGetVersion(&code);
  return {{"NCCL", fmt::format("{}.{}.{}", code / 10000, code % 10000 / 100, code % 100),
           &ncclGetVersion}};
}

Result<void> Collective::open(Queue) {
  TROUPE_CUDA_TRY(kernels::preload_collective());
  TROUPE_CUDA_TRY(kernels::preload_direct());
  if (!barrier_cell_) TROUPE_CUDA_TRY(cudaMalloc(barrier_cell_.out(), sizeof(std::uint32_t)));
  return {};
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
    entry = std::make_shared<Communicator>(
        services_.device(), Communicator::channels_of(number, services_.reproducible()),
        services_.in_process(), &directs_);
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
  const auto its = communicator(place.communicator);
  its->abort();
  TROUPE_CUDA_PROPAGATE(directs_.free_ended());
  std::vector<std::byte> contribution;
  TROUPE_CUDA_PROPAGATE(services_.count_memory("small collectives", [&]() -> Result<void> {
    auto made = its->contribute(place.rank, place.size, [&] { return is_given_up(place); });
    if (!made.ok()) return made.error();
    contribution = std::move(*made);
    return {};
  }));
  return contribution;
}

Result<void> Collective::connect(const Place& place,
                                 const std::vector<std::vector<std::byte>>& contributions) {
  services_.enter();
  const auto its = communicator(place.communicator);
  TROUPE_CUDA_PROPAGATE(services_.count_memory(
      "communicator", [&] { return its->connect(place.rank, place.size, contributions); }));
  launch_times_.forget(place.communicator);
  // One that is mapped from now on is registered by slab_mapped().
  const auto slabs = [&] {
    const std::lock_guard lock(mutex_);
    return slabs_;
  }();
  for (const auto& [base, bytes] : slabs) its->add_memory(base, bytes);
  const std::lock_guard lock(mutex_);
  for (const auto& [base, bytes] : slabs) {
    if (!slabs_.contains(base)) its->remove_memory(base);  // it has gone meanwhile
  }
  return {};
}

void Collective::slab_mapped(std::byte* base, std::uint64_t bytes) {
  services_.enter();
  {
    const std::lock_guard lock(mutex_);
    slabs_[base] = bytes;
  }
  for (const auto& communicator : communicators()) communicator->add_memory(base, bytes);
}

void Collective::slab_unmapped(std::byte* base) {
  services_.enter();
  {
    const std::lock_guard lock(mutex_);
    slabs_.erase(base);
  }
  for (const auto& communicator : communicators()) communicator->remove_memory(base);
}

void Collective::drop(std::uint32_t communicator) {
  services_.enter();
  launch_times_.forget(communicator);
  std::shared_ptr<Communicator> ending;  // waits, unlocked, until NCCL has let go
  const std::lock_guard lock(mutex_);
  const auto entry = communicators_.find(communicator);
  if (entry == communicators_.end()) return;
  ending = std::move(entry->second);
  communicators_.erase(entry);
}

void Collective::abort() {
  note_abort();
  for (const auto& communicator : communicators()) communicator->abort();
}

Result<void> Collective::health() {
  const std::lock_guard lock(mutex_);  // asked often: no list is made
  for (const auto& [number, communicator] : communicators_) {
    if (auto healthy = communicator->health(); !healthy.ok()) return healthy;
  }
  return {};
}

Result<void> Collective::launch(const collective::AllReduce& op, const Call& call, const On& on) {
  const auto type = nccl_type(op.dtype);
  if (!type) return type.error();
  if (on.size == 1) return reduce_alone(services_, AloneReduction::of(op), call);
  if (on.direct != nullptr && Direct::takes(op)) return on.direct->reduce(services_, op, call);
  const auto with = Operator::of(op, *type, call, on.comm);
  if (!with.ok()) return with.error();
  TROUPE_NCCL_TRY(ncclAllReduce(call.at(op.source), call.at(op.destination), op.count, *type,
                                with->get(), on.comm, services_.stream(call.queue())));
  return {};
}

Result<void> Collective::launch(const collective::Reduce& op, const Call& call, const On& on) {
  const auto type = nccl_type(op.dtype);
  if (!type) return type.error();
  if (on.size == 1) return reduce_alone(services_, AloneReduction::of(op), call);
  const auto with = Operator::of(op, *type, call, on.comm);
  if (!with.ok()) return with.error();
  TROUPE_NCCL_TRY(ncclReduce(call.at(op.source), call.at(op.destination), op.count, *type,
                             with->get(), static_cast<int>(op.root), on.comm,
                             services_.stream(call.queue())));
  return {};
}

Result<void> Collective::launch(const collective::Broadcast& op, const Call& call, const On& on) {
  const auto* const source = call.at(op.source.present() ? op.source : op.data);
  TROUPE_NCCL_TRY(ncclBroadcast(source, call.at(op.data), bytes_of(op.count, op.dtype), ncclInt8,
                                static_cast<int>(op.root), on.comm,
                                services_.stream(call.queue())));
  return {};
}

Result<void> Collective::launch(const collective::AllGather& op, const Call& call, const On& on) {
  TROUPE_NCCL_TRY(ncclAllGather(call.at(op.source), call.at(op.destination),
                                bytes_of(op.count, op.dtype), ncclInt8, on.comm,
                                services_.stream(call.queue())));
  return {};
}

Result<void> Collective::launch(const collective::ReduceScatter& op, const Call& call,
                                const On& on) {
  const auto type = nccl_type(op.dtype);
  if (!type) return type.error();
  if (on.size == 1) return reduce_alone(services_, AloneReduction::of(op), call);
  const auto with = Operator::of(op, *type, call, on.comm);
  if (!with.ok()) return with.error();
  TROUPE_NCCL_TRY(ncclReduceScatter(call.at(op.source), call.at(op.destination), op.count, *type,
                                    with->get(), on.comm, services_.stream(call.queue())));
  return {};
}

Result<void> Collective::launch(const collective::AllToAll& op, const Call& call, const On& on) {
  const auto bytes = bytes_of(op.count, op.dtype);
  const auto* source = call.at(op.source);
  auto* destination = call.at(op.destination);
  const auto its_stream = services_.stream(call.queue());
  TROUPE_NCCL_TRY(ncclGroupStart());
  auto status = ncclSuccess;
  for (int peer = 0; peer < on.size && status == ncclSuccess; ++peer) {
    const auto offset = static_cast<std::size_t>(peer) * bytes;
    status = ncclSend(source + offset, bytes, ncclInt8, peer, on.comm, its_stream);
    if (status != ncclSuccess) break;
    status = ncclRecv(destination + offset, bytes, ncclInt8, peer, on.comm, its_stream);
  }
  return end_group(status);
}

Result<void> Collective::launch(const collective::Exchange&, const Call& call, const On& on) {
  const auto its_stream = services_.stream(call.queue());
  TROUPE_NCCL_TRY(ncclGroupStart());
  auto status = ncclSuccess;
  for (const auto& part : call.tail()) {
    const int peer = static_cast<int>(part.tag);
    status =
        part.written()
            ? ncclRecv(call.at(part.range), part.range.bytes, ncclInt8, peer, on.comm, its_stream)
            : ncclSend(call.at(part.range), part.range.bytes, ncclInt8, peer, on.comm, its_stream);
    if (status != ncclSuccess) break;
  }
  return end_group(status);
}

Result<void> Collective::launch(const collective::Gather& op, const Call& call, const On& on) {
  const auto bytes = bytes_of(op.count, op.dtype);
  const auto its_stream = services_.stream(call.queue());
  const int root = static_cast<int>(op.root);
  TROUPE_NCCL_TRY(ncclGroupStart());
  auto status = ncclSend(call.at(op.source), bytes, ncclInt8, root, on.comm, its_stream);
  for (int peer = 0; on.rank == root && peer < on.size && status == ncclSuccess; ++peer)
    status = ncclRecv(call.at(op.destination) + static_cast<std::size_t>(peer) * bytes, bytes,
                      ncclInt8, peer, on.comm, its_stream);
  return end_group(status);
}

Result<void> Collective::launch(const collective::Scatter& op, const Call& call, const On& on) {
  const auto bytes = bytes_of(op.count, op.dtype);
  const auto its_stream = services_.stream(call.queue());
  const int root = static_cast<int>(op.root);
  TROUPE_NCCL_TRY(ncclGroupStart());
  auto status = ncclRecv(call.at(op.destination), bytes, ncclInt8, root, on.comm, its_stream);
  for (int peer = 0; on.rank == root && peer < on.size && status == ncclSuccess; ++peer)
    status = ncclSend(call.at(op.source) + static_cast<std::size_t>(peer) * bytes, bytes, ncclInt8,
                      peer, on.comm, its_stream);
  return end_group(status);
}

template <class... Ops>
Result<void> Collective::launch_bundled(const collective::Bundled& one, const Call& call,
                                        const On& on) {
  Result<void> outcome;
  const auto launch_if = [&]<class Op>(std::type_identity<Op>) {
    if (one.info->opcode != opcode_of<Op>) return false;
    outcome = launch(*reinterpret_cast<const Op*>(one.op()), call, on);
    return true;
  };
  (void)(launch_if(std::type_identity<Ops>{}) || ...);
  return outcome;
}

Result<void> Collective::launch(const collective::Bundle&, const Call& call, const On& on) {
  using namespace collective;
  const auto list = bundled(call.parts());
  if (!list.ok()) return list.error();
  TROUPE_NCCL_TRY(ncclGroupStart());
  Result<void> launched;
  for (const auto& one : *list) {
    if (launched.ok())
      launched = launch_bundled<AllReduce, Reduce, Broadcast, AllGather, ReduceScatter, AllToAll,
                                Gather, Scatter>(one, call, on);
  }
  const auto ended = end_group(ncclSuccess);  // in any case
  return launched.ok() ? ended : launched;
}

Result<void> Collective::launch(const collective::Barrier&, const Call& call, const On& on) {
  if (on.size == 1) return {};
  if (on.direct != nullptr) return on.direct->meet_on_device(services_.launch(call.queue()));
  TROUPE_NCCL_TRY(ncclAllReduce(barrier_cell_.get(), barrier_cell_.get(), 1, ncclUint32, ncclSum,
                                on.comm, services_.stream(call.queue())));
  return {};
}

bool Collective::ends_at_once(const OperationInfo& info, const std::byte* op, const Call& call) {
  const bool is_small = info.opcode == opcode_of<collective::AllReduce> &&
                        Direct::takes(*reinterpret_cast<const collective::AllReduce*>(op));
  if (!is_small && info.opcode != opcode_of<collective::Barrier>) return false;
  return communicator(call.communicator())->direct() != nullptr;
}

std::vector<Link> Collective::new_links(const OperationInfo& info, const std::byte* op,
                                        const Call& call) {
  std::vector<Link> links;
  const auto its = communicator(call.communicator());
  (void)its->use([&](ncclComm_t, int rank, int size) -> Result<void> {
    const bool right = info.check_world != nullptr ? info.check_world(op, rank, size).ok()
                       : info.opcode == opcode_of<collective::Bundle>
                           ? fits(collective::Bundle{}, call, rank, size).ok()
                           : fits(collective::Exchange{}, call, rank, size).ok();
    if (!right) return {};  // run() will say so
    for (const auto& link : links_of(info, op, call, rank, size)) {
      if (!its->is_open(link) && std::find(links.begin(), links.end(), link) == links.end())
        links.push_back(link);
    }
    return {};
  });
  return links;
}

Result<void> Collective::open_links(std::uint32_t communicator, const std::vector<Link>& links) {
  return this->communicator(communicator)->open(links, services_.stream({Lane::collective}));
}

}  // namespace
}  // namespace troupe::host::cuda

TROUPE_MODULE_HALF(troupe::host::cuda::Collective, cuda)
