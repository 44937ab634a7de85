#include "device_host/engine/cuda/cuda_engine.hpp"
#include "device_host/engine/cuda/status.hpp"

/// No memory is given back on the way but in the order of the stream: to free it at once would wait
/// for all that runs, such as a collective whose peers have yet to come.
///
/// Libraries load their kernels when these are first launched, which takes milliseconds. So each
/// operation of a queue runs once, on zeros, before the queue is in use.
namespace troupe::host::cuda {
namespace {

constexpr std::uint32_t kScratchRegion = 1;
constexpr std::uint32_t kMatrixRegion = 2;
constexpr std::uint64_t kPartBytes = 8192;
/// Small enough to be quick, large enough that cuBLAS picks the kernels it picks for large
/// matrices.
constexpr std::int64_t kMatrixOrder = 512;
constexpr DType kReals[] = {DType::f32, DType::f64};

/// The i-th part of the scratch memory; part 0 is left to factors.
Operand part(std::uint64_t i, std::uint64_t bytes = kPartBytes) {
  return {kScratchRegion, 0, 0, 0, i * kPartBytes, bytes};
}
static_assert(5 * kPartBytes <= kScratchBytes);

Scalar in_memory(DType dtype) {
  return {part(4, size_of(dtype)), {}};
}

}  // namespace

Result<void> CudaEngine::warm_up(Queue queue) {
  AddressMap addresses;
  auto* const scratch = static_cast<std::byte*>(queues_[queue.index()].scratch.get());
  addresses.set(kScratchRegion, scratch, kScratchBytes);
  const Call call(queue, addresses, {});
  const auto x = part(1), y = part(2), z = part(3);
  switch (queue.lane) {
    case Lane::memory:
      TROUPE_CUDA_PROPAGATE(run(memory::Fill{DType::f64, 64, {}, x}, call));
      return run(memory::Copy{DType::f64, x, y}, call);
    case Lane::host_to_device:
    case Lane::device_to_host: {
      auto& pinned = queues_[queue.index()].pinned;
      TROUPE_CUDA_TRY(cudaMallocHost(pinned.out(), kPartBytes));
      addresses.set(kPinnedRegion | 1, static_cast<std::byte*>(pinned.get()), kPartBytes);
      const Operand host{kPinnedRegion | 1, 0, 0, 0, 0, kPartBytes};
      TROUPE_CUDA_PROPAGATE(run(queue.lane == Lane::host_to_device
                                    ? memory::Copy{DType::f64, host, x}
                                    : memory::Copy{DType::f64, x, host},
                                call));
      return synchronize(queue);
    }
    case Lane::vector:
      for (const auto dtype : kReals) {
        TROUPE_CUDA_PROPAGATE(run(vector::Multiply{dtype, 64, x, y, z}, call));
        TROUPE_CUDA_PROPAGATE(run(vector::Divide{dtype, 64, x, y, z}, call));
        TROUPE_CUDA_PROPAGATE(run(vector::Axpby{dtype, 64, {}, {}, x, y}, call));
      }
      return {};
    case Lane::blas: {
      void* matrix = nullptr;
      constexpr std::uint64_t kBytes = sizeof(double) * kMatrixOrder * kMatrixOrder;
      TROUPE_CUDA_TRY(cudaMallocAsync(&matrix, kBytes, stream(queue)));
      TROUPE_CUDA_TRY(cudaMemsetAsync(matrix, 0, kBytes, stream(queue)));
      addresses.set(kMatrixRegion, static_cast<std::byte*>(matrix), kBytes);
      TROUPE_CUDA_PROPAGATE(warm_up_blas(call));
      TROUPE_CUDA_TRY(cudaFreeAsync(matrix, stream(queue)));
      return {};
    }
    case Lane::sparse: return warm_up_sparse(call);
    case Lane::rng: return warm_up_rng(call);
    case Lane::collective: return {};
  }
  return {};
}

Result<void> CudaEngine::warm_up_blas(const Call& call) {
  const auto x = part(1), y = part(2), result = part(3);
  for (const auto dtype : kReals) {
    for (const auto& factor : {Scalar{}, in_memory(dtype)}) {
      TROUPE_CUDA_PROPAGATE(run(blas::Axpy{dtype, 64, 1, 1, factor, x, y}, call));
      TROUPE_CUDA_PROPAGATE(run(blas::Scal{dtype, 64, 1, factor, x}, call));
    }
    TROUPE_CUDA_PROPAGATE(run(blas::Dot{dtype, 64, 1, 1, x, y, result}, call));
    TROUPE_CUDA_PROPAGATE(run(blas::Nrm2{dtype, 64, 1, x, result}, call));
    TROUPE_CUDA_PROPAGATE(run(blas::Copy{dtype, 64, 1, 1, x, y}, call));

    const auto n = kMatrixOrder;
    const Operand a{kMatrixRegion, 0, 0, 0, 0, static_cast<std::uint64_t>(n * n) * size_of(dtype)};
    for (const auto transpose : {blas::Transpose::no, blas::Transpose::yes}) {
      TROUPE_CUDA_PROPAGATE(
          run(blas::Gemv{dtype, transpose, 0, n, n, n, 1, 1, {}, {}, a, x, y}, call));
    }
    // One matrix of zeros stands for all three: the result is zeros whatever the order of reads and
    // writes.
    TROUPE_CUDA_PROPAGATE(run(
        blas::Gemm{
            dtype, blas::Transpose::no, blas::Transpose::no, n, n, n, n, n, n, {}, {}, a, a, a},
        call));
  }
  return {};
}

/// The matrix is 1 x 1 with one element, 0: row_begin is {0, 1}.
Result<void> CudaEngine::warm_up_sparse(const Call& call) {
  const auto rows = part(1), zeros = part(2), result = part(3);
  memory::Fill one{DType::i32, 1, {1}, rows};
  for (const auto index : {DType::i32, DType::i64}) {
    one.dtype = index;
    one.destination.offset = rows.offset + size_of(index);
    TROUPE_CUDA_PROPAGATE(run(memory::Fill{DType::u8, kPartBytes, {}, rows}, call));
    TROUPE_CUDA_PROPAGATE(run(one, call));
    for (const auto dtype : kReals) {
      TROUPE_CUDA_PROPAGATE(run(
          sparse::Spmv{dtype, index, 1, 1, 1, {}, {}, rows, zeros, zeros, zeros, result}, call));
      TROUPE_CUDA_PROPAGATE(run(
          sparse::SpmvSell{dtype, index, 1, 1, 1, 1, 1, {}, {}, rows, zeros, zeros, zeros, result},
          call));
      TROUPE_CUDA_PROPAGATE(run(sparse::Gather{dtype, index, 1, 1, zeros, zeros, result}, call));
    }
  }
  forget_matrices(call.queue(), 0);
  return {};
}

Result<void> CudaEngine::warm_up_rng(const Call& call) {
  for (const auto dtype : kReals) {
    TROUPE_CUDA_PROPAGATE(run(rng::Uniform{dtype, 64, 0, 0, 0, part(1)}, call));
    TROUPE_CUDA_PROPAGATE(run(rng::Normal{dtype, 64, 0, 0, 0, 0, 1, part(2)}, call));
  }
  return {};
}

}  // namespace troupe::host::cuda
