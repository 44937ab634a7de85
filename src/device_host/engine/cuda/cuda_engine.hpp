#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <list>
#include <optional>

#include <troupe/lib/operations.hpp>

#include "device_host/engine/cuda/communicator.hpp"
#include "device_host/engine/cuda/devices.hpp"
#include "device_host/engine/cuda/handles.hpp"
#include "device_host/engine/cuda/kernels.hpp"
#include "device_host/engine/cuda/marks.hpp"
#include "device_host/engine/engine.hpp"

namespace troupe::host::cuda {

/// What every queue has: a stream, some zeroed device memory for factors and for warming up, and
/// for the latter some pinned memory where it copies from or to it.
struct QueueState {
  cudaStream_t stream = nullptr;  ///< nullptr: not open
  DeviceMemory scratch;
  HostMemory pinned;
};
inline constexpr std::size_t kScratchBytes = std::size_t{64} << 10;

/// Where a library looks for alpha and beta. Setting it costs a call, so it is remembered.
enum class ScalarsAt : std::uint8_t { host, device };

struct BlasState {
  DeviceMemory workspace;
  BlasHandle handle;
  ScalarsAt scalars = ScalarsAt::host;
};

/// What cuSPARSE has prepared for one matrix, and everything that it depends on. Buffer and
/// generation stand for the contents: another matrix at the same address is another matrix.
struct PreparedMatrix {
  struct Key {
    const void *offsets, *column, *value;  ///< offsets: of the rows in CSR, of the slices in ELL
    std::int64_t rows, columns, nonzeros;
    std::int64_t stored, slice_rows;  ///< see sparse::SpmvSell; slice_rows is 0 for CSR
    std::uint64_t offsets_contents, column_contents;
    DType dtype, index_dtype;
    bool operator==(const Key&) const = default;
  };
  Key key;
  std::array<Operand, 2> structure;  ///< offsets and columns: written anew they are another matrix
  Matrix matrix;
  DenseVector x, y;
  void* workspace = nullptr;  ///< from the stream's pool, given back in stream order
};

struct SparseState {
  SparseHandle handle;
  ScalarsAt scalars = ScalarsAt::host;
  std::list<PreparedMatrix> prepared;  ///< the most recently used first
};

/// The engine on one CUDA device: the primary context, a stream per queue, and one handle of each
/// library per queue of its lane. See Engine for who may call what.
class CudaEngine final : public Engine {
 public:
  CudaEngine(const EngineOptions& options, const Driver& api, DeviceDescription description,
             const DeviceFacts& facts);
  ~CudaEngine() override;
  /// Makes the context and what all lanes share.
  Result<void> start();

  [[nodiscard]] const DeviceDescription& description() const override { return description_; }

  // memory.cpp
  std::uint64_t free_memory() override;
  Result<Slab> make_slab(std::uint64_t bytes) override;
  Result<std::byte*> map_slab(int fd, std::uint64_t bytes) override;
  void unmap_slab(std::byte* base, std::uint64_t bytes) override;
  Result<std::byte*> map_foreign(int fd, std::uint64_t bytes) override;
  void unmap_foreign(std::byte* base, std::uint64_t bytes) override;
  Result<std::byte*> map_pinned(int fd, std::uint64_t bytes) override;
  void unmap_pinned(std::byte* base, std::uint64_t bytes) override;

  // cuda_engine.cpp
  Result<void> open_queue(Queue queue) override;
  void overwrites(const Operand& range) override;
  Result<Mark> mark(Queue queue) override;
  Result<void> wait(Queue queue, Mark mark) override;
  Result<bool> reached(Mark mark) override;
  void release(Mark mark) override;
  Result<void> call_when_reached(Queue queue, void (*done)(void*), void* argument) override;
  Result<void> synchronize(Queue queue) override;
  [[nodiscard]] int completion_fd() const override { return -1; }
  void arm() override {}
  Result<void> suffer(memory::FaultKind kind, Queue queue) override;

  Result<void> prepare_connect() override;
  Result<std::vector<std::byte>> contribute(int rank, int size) override;
  Result<void> connect(int rank, int size,
                       const std::vector<std::vector<std::byte>>& contributions) override;
  void abort_communicator() override { communicator_.abort(); }
  std::vector<Link> new_links(const OperationInfo& info, const std::byte* op,
                              const Call& call) override;
  Result<void> open_links(const std::vector<Link>& links) override;

  Result<void> run(const OperationInfo& info, const std::byte* op, const Call& call) override;
  // vector.cpp
  Result<void> run(const memory::Fill& op, const Call& call);
  Result<void> run(const memory::Copy& op, const Call& call);
  Result<void> run(const vector::Multiply& op, const Call& call);
  Result<void> run(const vector::Divide& op, const Call& call);
  Result<void> run(const vector::Axpby& op, const Call& call);
  // blas.cpp
  Result<void> run(const blas::Axpy& op, const Call& call);
  Result<void> run(const blas::Dot& op, const Call& call);
  Result<void> run(const blas::Nrm2& op, const Call& call);
  Result<void> run(const blas::Scal& op, const Call& call);
  Result<void> run(const blas::Copy& op, const Call& call);
  Result<void> run(const blas::Gemv& op, const Call& call);
  Result<void> run(const blas::Gemm& op, const Call& call);
  // sparse.cpp
  Result<void> run(const sparse::Spmv& op, const Call& call);
  Result<void> run(const sparse::SpmvSell& op, const Call& call);
  Result<void> run(const sparse::Gather& op, const Call& call);
  // rng.cpp
  Result<void> run(const rng::Uniform& op, const Call& call);
  Result<void> run(const rng::Normal& op, const Call& call);
  // collective.cpp
  Result<void> run(const collective::AllReduce& op, const Call& call);
  Result<void> run(const collective::Reduce& op, const Call& call);
  Result<void> run(const collective::Broadcast& op, const Call& call);
  Result<void> run(const collective::AllGather& op, const Call& call);
  Result<void> run(const collective::ReduceScatter& op, const Call& call);
  Result<void> run(const collective::AllToAll& op, const Call& call);
  Result<void> run(const collective::Exchange& op, const Call& call);

 private:
  /// Makes the device current on the calling thread, which costs nothing if it is.
  void enter() const;
  /// The stream of an open queue.
  [[nodiscard]] cudaStream_t stream(Queue queue) const;
  [[nodiscard]] kernels::Launch launch(Queue queue) const {
    return {stream(queue), facts_.multiprocessors};
  }

  // Makes a library's handle on the queue's stream, then runs each operation once on the queue's
  // scratch memory.
  Result<void> open_blas(Queue queue);
  Result<void> open_sparse(Queue queue);
  /// Device memory of an open queue's own.
  cudaError_t reserve(Queue queue, DeviceMemory& memory, std::size_t bytes) const;
  Result<void> warm_up(Queue queue);
  Result<void> warm_up_blas(const Call& call);
  Result<void> warm_up_sparse(const Call& call);
  Result<void> warm_up_rng(const Call& call);

  /// Maps `handle` into new address space, readable and writable by the device.
  Result<std::byte*> map(CUmemGenericAllocationHandle handle, std::uint64_t bytes);
  Result<CUmemGenericAllocationHandle> allocate(std::uint64_t bytes);
  Result<void> reserve_budget(std::uint64_t bytes);

  [[nodiscard]] BlasState& blas(Queue queue) { return blas_[queue.detour ? 1 : 0]; }
  [[nodiscard]] SparseState& sparse(Queue queue) { return sparse_[queue.detour ? 1 : 0]; }
  /// The handle of an open queue, told where the factors of the next call are.
  Result<cublasHandle_t> blas_at(Queue queue, ScalarsAt where);
  Result<void> point_sparse_at(Queue queue, ScalarsAt where);
  Result<PreparedMatrix*> prepare(Queue queue, const PreparedMatrix::Key& key, const void* alpha,
                                  const void* beta, void* x, void* y);
  /// One product, with the matrix in any form; `op` gives factors and vectors.
  template <class Op>
  Result<void> multiply(const Op& op, const PreparedMatrix::Key& key, const Call& call);
  void add_if_closed(std::vector<Link>& links, const Link& link) const;
  template <class Op>
  Result<void> copy_alone(const Op& op, const Call& call);
  void forget_matrices(Queue queue, std::size_t keep);

  template <class T>
  friend class Factors;

  const int device_;
  const std::uint64_t memory_limit_;
  const Driver& api_;
  const DeviceDescription description_;
  const DeviceFacts facts_;

  std::atomic<std::uint64_t> slab_bytes_{0};
  std::atomic<bool> rdma_;  ///< cleared if slabs cannot be made for GPUDirect RDMA after all

  /// All detours share one: what takes a detour waits for nobody for long.
  Stream detour_;
  std::array<Stream, kLaneCount> streams_;  ///< the lanes' own
  std::array<QueueState, kQueueCount> queues_;
  MarkPool marks_;
  // The lane's own queue, its detour.
  std::array<BlasState, 2> blas_;
  std::array<SparseState, 2> sparse_;
  Communicator communicator_;  ///< last: it ends first, and with it what streams may wait for
};

}  // namespace troupe::host::cuda
