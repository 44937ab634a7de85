#include <cuda_runtime_api.h>
#include <nccl.h>

#include <stdexcept>

#include "raw_collectives.hpp"

namespace troupe::bench {
namespace {

void must(cudaError_t status) {
  if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
}
void must(ncclResult_t status) {
  if (status != ncclSuccess) throw std::runtime_error(ncclGetErrorString(status));
}

/// NCCL with a blocking communicator, as in troupe's engine.
class NcclCollectives final : public RawCollectives {
 public:
  NcclCollectives(World& world, std::int64_t largest) {
    int gpus = 0;
    must(cudaGetDeviceCount(&gpus));
    must(cudaSetDevice(world.local_rank() % gpus));
    int least = 0, greatest = 0;
    must(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    must(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, greatest));
    const auto bytes = static_cast<std::size_t>(largest) * sizeof(double);
    must(cudaMalloc(&data_, bytes));
    must(cudaMemset(data_, 0, bytes));
    ncclUniqueId id{};
    if (world.rank() == 0) must(ncclGetUniqueId(&id));
    must(ncclCommInitRank(&communicator_, world.size(), world.gather_values(id).front(),
                          world.rank()));
  }
  ~NcclCollectives() override {
    (void)cudaStreamSynchronize(stream_);
    (void)ncclCommDestroy(communicator_);
    (void)cudaFree(data_);
    (void)cudaStreamDestroy(stream_);
  }
  NcclCollectives(const NcclCollectives&) = delete;
  NcclCollectives& operator=(const NcclCollectives&) = delete;

  void all_reduce(std::int64_t count) override {
    must(ncclAllReduce(data_, data_, static_cast<std::size_t>(count), ncclFloat64, ncclSum,
                       communicator_, stream_));
  }
  void wait() override { must(cudaStreamSynchronize(stream_)); }

 private:
  cudaStream_t stream_ = nullptr;
  void* data_ = nullptr;
  ncclComm_t communicator_ = nullptr;
};

}  // namespace

std::unique_ptr<RawCollectives> RawCollectives::make(World& world, const DeviceInfo& device,
                                                     std::int64_t largest) {
  if (device.engine != "cuda") return nullptr;
  return std::make_unique<NcclCollectives>(world, largest);
}

}  // namespace troupe::bench
