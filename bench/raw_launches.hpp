#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace troupe::bench {

/// Launches of a kernel (int n, float factor, float* x) by the driver's cuLaunchKernelEx, on one
/// stream of this process's. One thread.
class RawLaunches {
 public:
  /// `image`: a cubin. Throws std::runtime_error; in a build without CUDA always.
  static std::unique_ptr<RawLaunches> create(std::span<const std::byte> image, const char* kernel,
                                             int elements);
  virtual ~RawLaunches() = default;
  /// So many launches, on `buffers` (at most 4) buffers in turn, and waits for them.
  virtual void launch(int n, float factor, int count, int buffers) = 0;
  /// Captures `count` launches on one buffer as a CUDA graph, the first time; launches that so many
  /// times and waits.
  virtual void run_graph(int n, float factor, int count, int runs) = 0;
};

}  // namespace troupe::bench
