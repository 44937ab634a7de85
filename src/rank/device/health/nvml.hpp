#pragma once

#include <dlfcn.h>

#include <optional>
#include <string>

#include <troupe/error.hpp>
#include <troupe/gpu_health.hpp>

#include "common/core/foreign.hpp"

namespace troupe::rank_process {

/// NVIDIA's management library, which comes with the driver. It is loaded at run time and opens no
/// CUDA context. Any thread.
class Nvml {
 public:
  /// Of NVML's interface (nvml.h): functions return 0 where they succeed; a GPU is a pointer.
  using Status = int;
  static constexpr Status kGpuIsLost = 15;
  static constexpr Status kMissing = -1;  ///< no status of NVML's: the driver lacks the function
  struct Gpu {
    std::string uuid;  ///< "GPU-xxxxxxxx-…"; empty: it is named by its number
    unsigned index = 0;
  };

  /// `file`: of the library. Errors: unsupported, if it is not there or the driver does not answer.
  static Result<Nvml> load(const char* file);

  /// Takes some milliseconds. Errors: library, with NVML's status.
  [[nodiscard]] Result<GpuHealth> health(const Gpu& gpu) const;
  /// NVML's own handle. Errors: library.
  [[nodiscard]] Result<void*> find(const Gpu& gpu) const;
  /// The number of processes that compute on the GPU of this handle; nullopt: NVML does not say.
  [[nodiscard]] std::optional<unsigned> processes(void* gpu) const;

  /// What the function answers to these arguments; kMissing: this driver does not have it.
  template <class... Arguments>
  [[nodiscard]] Status status_of(const char* name, Arguments... arguments) const {
    auto* const function = ::dlsym(library_, name);
    if (function == nullptr) return kMissing;
    return call_foreign<Status (*)(Arguments...)>(function, arguments...);
  }
  /// Whether it is there and succeeds.
  template <class... Arguments>
  [[nodiscard]] bool call(const char* name, Arguments... arguments) const {
    return status_of(name, arguments...) == 0;
  }

 private:
  explicit Nvml(void* library) : library_(library) {}
  void read_memory(void* gpu, GpuHealth& health) const;
  void read_recovery_action(void* gpu, GpuHealth& health) const;
  void read_links(void* gpu, GpuHealth& health) const;

  void* library_;  // stays loaded: other threads may be in it
};

}  // namespace troupe::rank_process
