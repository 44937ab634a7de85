#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "raw_launches.hpp"

namespace troupe::bench {
namespace {

void must(cudaError_t status) {
  if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
}

/// The driver's library is not linked: the runtime loads it, and here it is found.
template <class Function>
Function* driver_function(const char* name) {
  void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW);
  void* const found = driver != nullptr ? ::dlsym(driver, name) : nullptr;
  if (found == nullptr) throw std::runtime_error("the driver has no " + std::string(name));
  return reinterpret_cast<Function*>(found);
}

class Launcher final : public RawLaunches {
 public:
  Launcher(std::span<const std::byte> image, const char* kernel, int elements)
      : launch_(driver_function<decltype(cuLaunchKernelEx)>("cuLaunchKernelEx")) {
    must(cudaSetDevice(0));
    must(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    must(cudaLibraryLoadData(&library_, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
    must(cudaLibraryGetKernel(&kernel_, library_, kernel));
    for (auto& buffer : buffers_) {
      must(cudaMalloc(&buffer, static_cast<std::size_t>(elements) * sizeof(float)));
      must(cudaMemset(buffer, 0, static_cast<std::size_t>(elements) * sizeof(float)));
    }
  }
  ~Launcher() override {
    (void)cudaDeviceSynchronize();
    if (graph_ != nullptr) (void)cudaGraphExecDestroy(graph_);
    for (auto* buffer : buffers_) (void)cudaFree(buffer);
    (void)cudaLibraryUnload(library_);
    (void)cudaStreamDestroy(stream_);
  }
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  void launch(int n, float factor, int count, int buffers) override {
    queue(n, factor, count, buffers);
    must(cudaStreamSynchronize(stream_));
  }

  void run_graph(int n, float factor, int count, int runs) override {
    if (graph_ == nullptr) {
      cudaGraph_t captured = nullptr;
      must(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
      queue(n, factor, count, 1);
      must(cudaStreamEndCapture(stream_, &captured));
      must(cudaGraphInstantiateWithFlags(&graph_, captured, 0));
      must(cudaGraphDestroy(captured));
    }
    for (int i = 0; i < runs; ++i) must(cudaGraphLaunch(graph_, stream_));
    must(cudaStreamSynchronize(stream_));
  }

 private:
  void queue(int n, float factor, int count, int buffers) {
    CUlaunchConfig config{};
    config.gridDimX = config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = static_cast<unsigned>(n), config.blockDimY = config.blockDimZ = 1;
    config.hStream = stream_;
    for (int i = 0; i < count; ++i) {
      void* arguments[] = {&n, &factor, &buffers_[i % buffers]};
      // A CUkernel, which is what a cudaKernel_t is, may stand for a CUfunction.
      if (launch_(&config, reinterpret_cast<CUfunction>(kernel_), arguments, nullptr) !=
          CUDA_SUCCESS)
        throw std::runtime_error("cuLaunchKernelEx has failed");
    }
  }

  decltype(&cuLaunchKernelEx) launch_;
  cudaStream_t stream_ = nullptr;
  cudaLibrary_t library_ = nullptr;
  cudaKernel_t kernel_ = nullptr;
  cudaGraphExec_t graph_ = nullptr;
  void* buffers_[4] = {};
};

}  // namespace

std::unique_ptr<RawLaunches> RawLaunches::create(std::span<const std::byte> image,
                                                 const char* kernel, int elements) {
  return std::make_unique<Launcher>(image, kernel, elements);
}

}  // namespace troupe::bench
