#pragma once

#include <set>
#include <string>

#include <troupe/actor.hpp>
#include <troupe/lib/function.hpp>
#include <troupe/lib/kernel.hpp>
#include <troupe/troupe.hpp>

#include "program.hpp"

namespace troupe::torture {

/// Kernels and functions of this program's own, made once for all programs of seeds. Read by any
/// thread.
class OwnCode {
 public:
  /// Compiles them and calls each once. Throws Exception if that fails, but not where there is no
  /// compiler or no such library.
  explicit OwnCode(Device& device);

  /// Kinds of operations that cannot be had here.
  [[nodiscard]] const std::set<Kind>& missing() const { return missing_; }
  /// "combine", "smooth": for float or double; "tally".
  [[nodiscard]] Kernel kernel(Kind kind, DType dtype) const;
  [[nodiscard]] const Function& accumulate(DType dtype) const {
    return dtype == DType::f32 ? narrow_accumulate_ : accumulate_;
  }

 private:
  KernelModule kernels_;
  Function accumulate_, narrow_accumulate_;
  std::set<Kind> missing_;
};

/// A question to a Carrier: to copy from any rank's buffer into one of its own rank's.
struct Carry {
  using Reply = void;
  GpuToken from, to;
};

/// Copies on its own rank's device what others name by tokens. It knows neither of programs nor of
/// rounds: what it does comes between the commands of its rank's program.
class Carrier : public Actor<Carrier, Carry> {
 public:
  static constexpr const char* kName = "carrier";
  explicit Carrier(Runtime* runtime) : world_(&runtime->world()), device_(&runtime->device()) {}
  Future<void> on(const Carry& carry);

 private:
  World* world_;
  Device* device_;
};

}  // namespace troupe::torture
