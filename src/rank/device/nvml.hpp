#pragma once

#include <string>

#include <troupe/error.hpp>
#include <troupe/gpu_health.hpp>

namespace troupe::rank_process {

/// NVIDIA's management library, which comes with the driver. It is loaded at run time and opens no
/// CUDA context. Any thread.
class Nvml {
 public:
  /// `file`: of the library. Errors: unsupported, if it is not there or the driver does not answer.
  static Result<Nvml> load(const char* file);
  /// The driver's, loaded when it is first asked for.
  static const Result<Nvml>& driver();

  /// Of the GPU with this UUID ("GPU-xxxxxxxx-…"). Takes some milliseconds. Errors: library, with
  /// NVML's text.
  [[nodiscard]] Result<GpuHealth> health(const std::string& uuid) const;

 private:
  explicit Nvml(void* library) : library_(library) {}
  /// nullptr: this driver does not have it.
  [[nodiscard]] void* find(const char* name) const;
  template <class... Arguments>
  [[nodiscard]] bool call(const char* name, Arguments... arguments) const;
  void read_memory_errors(void* gpu, GpuHealth& health) const;
  void read_links(void* gpu, GpuHealth& health) const;

  void* library_;  // stays loaded: other threads may be in it
};

}  // namespace troupe::rank_process
