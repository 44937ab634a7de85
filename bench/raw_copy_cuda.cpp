#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

#include "raw_copy.hpp"

namespace troupe::bench {
namespace {

void expect(cudaError_t status, const char* call) {
  if (status != cudaSuccess)
    throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(status));
}

/// From device 1 to device 0, over NVLink where there is one.
class PeerCopy final : public RawCopy {
 public:
  explicit PeerCopy(std::uint64_t bytes) : bytes_(bytes) {
    expect(cudaSetDevice(1), "cudaSetDevice");
    expect(cudaMalloc(&source_, bytes), "cudaMalloc");
    expect(cudaSetDevice(0), "cudaSetDevice");
    expect(cudaMalloc(&destination_, bytes), "cudaMalloc");
    int possible = 0;
    expect(cudaDeviceCanAccessPeer(&possible, 0, 1), "cudaDeviceCanAccessPeer");
    if (possible != 0) enable_peer_access();
    expect(cudaStreamCreate(&stream_), "cudaStreamCreate");
  }
  ~PeerCopy() override {
    (void)cudaStreamDestroy(stream_);
    (void)cudaFree(destination_);
    (void)cudaFree(source_);
  }
  PeerCopy(const PeerCopy&) = delete;
  PeerCopy& operator=(const PeerCopy&) = delete;

  void run() override {
    expect(cudaMemcpyPeerAsync(destination_, 0, source_, 1, bytes_, stream_),
           "cudaMemcpyPeerAsync");
    expect(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  }

 private:
  /// The process has done so already if it has made another one of these.
  static void enable_peer_access() {
    const auto status = cudaDeviceEnablePeerAccess(1, 0);
    if (status == cudaErrorPeerAccessAlreadyEnabled) return (void)cudaGetLastError();
    expect(status, "cudaDeviceEnablePeerAccess");
  }

  std::uint64_t bytes_;
  void* source_ = nullptr;
  void* destination_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

}  // namespace

std::unique_ptr<RawCopy> RawCopy::make(const DeviceInfo& device, std::uint64_t bytes) {
  if (device.engine != "cuda") return make_host_copy(bytes);
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count < 2) return nullptr;
  return std::make_unique<PeerCopy>(bytes);
}

}  // namespace troupe::bench
