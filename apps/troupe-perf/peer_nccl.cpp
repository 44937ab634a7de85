// NCCL as it is, from the rank process, as what troupe's calls on GPUs are compared with.
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstring>
#include <stdexcept>

#include "side.hpp"
#include "values.hpp"

namespace troupe::perf {
namespace {

void must(cudaError_t status) {
  if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
}
void must(ncclResult_t status) {
  if (status != ncclSuccess) throw std::runtime_error(ncclGetErrorString(status));
}

ncclDataType_t datatype(DType dtype) {
  switch (dtype) {
    case DType::i8: return ncclInt8;
    case DType::u8: return ncclUint8;
    case DType::i32: return ncclInt32;
    case DType::u32: return ncclUint32;
    case DType::i64: return ncclInt64;
    case DType::u64: return ncclUint64;
    case DType::f16: return ncclFloat16;
    case DType::f32: return ncclFloat32;
    case DType::f64: return ncclFloat64;
    case DType::bf16: return ncclBfloat16;
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 24, 0)
    case DType::f8e4m3: return ncclFloat8e4m3;
    case DType::f8e5m2: return ncclFloat8e5m2;
#endif
    default: return ncclNumTypes;
  }
}
ncclRedOp_t reduction(Reduction op) {
  switch (op) {
    case Reduction::sum: return ncclSum;
    case Reduction::prod: return ncclProd;
    case Reduction::min: return ncclMin;
    case Reduction::max: return ncclMax;
    case Reduction::avg: return ncclAvg;
    default: return ncclNumOps;
  }
}

/// A blocking communicator and a stream of the highest priority, as troupe's engine has them.
class NcclSide final : public Side {
 public:
  explicit NcclSide(const PeerSetup& setup)
      : rank_(setup.rank), size_(setup.size), first_one_(setup.first_one) {
    int gpus = 0;
    must(cudaGetDeviceCount(&gpus));
    must(cudaSetDevice(setup.local_rank % gpus));
    int least = 0, greatest = 0;
    must(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    must(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, greatest));
    for (auto** buffer : {&a_, &b_}) {
      must(cudaMalloc(buffer, setup.capacity));
      must(cudaMemset(*buffer, 0, setup.capacity));
    }
    must(cudaDeviceSynchronize());
  }
  ~NcclSide() override {
    (void)cudaStreamSynchronize(stream_);
    forget();
    if (communicator_ != nullptr) (void)ncclCommDestroy(communicator_);
    (void)cudaFree(b_);
    (void)cudaFree(a_);
    (void)cudaStreamDestroy(stream_);
  }
  NcclSide(const NcclSide&) = delete;
  NcclSide& operator=(const NcclSide&) = delete;

  [[nodiscard]] std::string lacks(const Call& call) const override {
    if (call.operation == Operation::tell) return "NCCL knows no host memory";
    return datatype(call.dtype) == ncclNumTypes ? "this NCCL has no such type" : "";
  }
  /// Forms the communicator, the first time.
  void prepare(const Call&) override {
    if (communicator_ != nullptr) return;
    ncclUniqueId id{};
    if (rank_ == 0) must(ncclGetUniqueId(&id));
    PeerSetup::Id bytes{};
    static_assert(sizeof id == sizeof bytes);
    std::memcpy(bytes.data(), &id, sizeof id);
    bytes = first_one_(bytes);
    std::memcpy(&id, bytes.data(), sizeof id);
    must(ncclCommInitRank(&communicator_, size_, id, rank_));
  }

  void start(const Call& call, std::int64_t shift) override {
    if (call.count == 0) return;
    const auto at = extents(call, rank_, size_);
    const auto element = size_of(call.dtype);
    const auto* const from = place(call.in_place ? b_ : a_, shift + at.source_offset, element);
    auto* const to = place(b_, shift + at.destination_offset, element);
    const auto count = static_cast<std::size_t>(call.count);
    const auto type = datatype(call.dtype);
    switch (call.operation) {
      case Operation::all_reduce:
        return reduce(call, [&](ncclRedOp_t op) {
          return ncclAllReduce(from, to, count, type, op, communicator_, stream_);
        });
      case Operation::reduce:
        return reduce(call, [&](ncclRedOp_t op) {
          return ncclReduce(from, to, count, type, op, call.root, communicator_, stream_);
        });
      case Operation::reduce_scatter:
        return reduce(call, [&](ncclRedOp_t op) {
          return ncclReduceScatter(from, to, count, type, op, communicator_, stream_);
        });
      case Operation::broadcast:
        return must(ncclBroadcast(from, to, count, type, call.root, communicator_, stream_));
      case Operation::all_gather:
        return must(ncclAllGather(from, to, count, type, communicator_, stream_));
      default: return messages(call, from, to, count * element);
    }
  }
  void wait() override { must(cudaStreamSynchronize(stream_)); }

  void record(const std::function<void()>& starts) override {
    forget();
    must(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
    starts();
    must(cudaStreamEndCapture(stream_, &graph_));
    must(cudaGraphInstantiateWithFlags(&executable_, graph_, 0));
  }
  void replay() override { must(cudaGraphLaunch(executable_, stream_)); }

  void write(const Call& call, std::int64_t first, std::span<const std::byte> source) override {
    const auto at = extents(call, rank_, size_).source_offset + first;
    must(cudaMemcpyAsync(place(call.in_place ? b_ : a_, at, size_of(call.dtype)), source.data(),
                         source.size(), cudaMemcpyHostToDevice, stream_));
    wait();
  }
  std::vector<std::byte> read(const Call& call, std::int64_t first,
                              std::int64_t elements) override {
    const auto at = extents(call, rank_, size_).destination_offset + first;
    std::vector<std::byte> bytes(static_cast<std::size_t>(elements) * size_of(call.dtype));
    must(cudaMemcpyAsync(bytes.data(), place(b_, at, size_of(call.dtype)), bytes.size(),
                         cudaMemcpyDeviceToHost, stream_));
    wait();
    return bytes;
  }

 private:
  static std::byte* place(void* buffer, std::int64_t elements, std::size_t element) {
    return static_cast<std::byte*>(buffer) + static_cast<std::size_t>(elements) * element;
  }

  template <class Launch>
  void reduce(const Call& call, const Launch& launch) {
    if (call.reduction != Reduction::mulsum) return must(launch(reduction(call.reduction)));
    std::uint64_t scalar = bits_of(scalar_of(rank_), call.dtype);
    ncclRedOp_t op{};
    must(ncclRedOpCreatePreMulSum(&op, &scalar, datatype(call.dtype), ncclScalarHostImmediate,
                                  communicator_));
    must(launch(op));
    must(ncclRedOpDestroy(op, communicator_));
  }

  /// What NCCL composes of sends and receives.
  void messages(const Call& call, const std::byte* from, std::byte* to, std::size_t bytes) {
    const auto send = [&](int peer, std::size_t part) {
      must(ncclSend(from + part * bytes, bytes, ncclInt8, peer, communicator_, stream_));
    };
    const auto receive = [&](int peer, std::size_t part) {
      must(ncclRecv(to + part * bytes, bytes, ncclInt8, peer, communicator_, stream_));
    };
    const bool root = rank_ == call.root;
    const int before = (rank_ + size_ - 1) % size_, next = (rank_ + 1) % size_;
    must(ncclGroupStart());
    switch (call.operation) {
      case Operation::fetch: send(before, 0), receive(next, 0); break;
      case Operation::gather:
        send(call.root, 0);
        for (int peer = 0; root && peer < size_; ++peer)
          receive(peer, static_cast<std::size_t>(peer));
        break;
      case Operation::scatter:
        for (int peer = 0; root && peer < size_; ++peer) send(peer, static_cast<std::size_t>(peer));
        receive(call.root, 0);
        break;
      case Operation::all_to_all_v: {
        const auto sent = sent_parts(call, rank_, size_),
                   received = received_parts(call, rank_, size_);
        const auto unit = bytes / static_cast<std::size_t>(call.count);
        for (int peer = 0; peer < size_; ++peer) {
          const auto i = static_cast<std::size_t>(peer);
          const auto out = static_cast<std::size_t>(sent[i]) * unit,
                     in = static_cast<std::size_t>(received[i]) * unit;
          if (out != 0) must(ncclSend(from, out, ncclInt8, peer, communicator_, stream_));
          if (in != 0) must(ncclRecv(to, in, ncclInt8, peer, communicator_, stream_));
          from += out, to += in;
        }
        break;
      }
      case Operation::all_to_all:
        for (int peer = 0; peer < size_; ++peer) {
          send(peer, static_cast<std::size_t>(peer));
          receive(peer, static_cast<std::size_t>(peer));
        }
        break;
      default: send(next, 0), receive(before, 0);
    }
    must(ncclGroupEnd());
  }

  void forget() {
    if (executable_ != nullptr) (void)cudaGraphExecDestroy(executable_);
    if (graph_ != nullptr) (void)cudaGraphDestroy(graph_);
    executable_ = nullptr, graph_ = nullptr;
  }

  const int rank_, size_;
  const std::function<PeerSetup::Id(const PeerSetup::Id&)> first_one_;
  cudaStream_t stream_ = nullptr;
  void* a_ = nullptr;
  void* b_ = nullptr;
  ncclComm_t communicator_ = nullptr;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
};

}  // namespace
}  // namespace troupe::perf

troupe::perf::Side* troupe_perf_make_peer(const troupe::perf::PeerSetup& setup) {
  return new troupe::perf::NcclSide(setup);
}
