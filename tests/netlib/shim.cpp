#include "shim.hpp"

#include <cstdio>

namespace troupe::netlib {
namespace {

/// What the device hosts inherit is not this library: theirs calls its own BLAS.
[[gnu::constructor]] void leave_children_alone() {
  ::unsetenv("LD_PRELOAD");
}

/// Tells at the end how much has gone through it, so that a test can see that anything has.
struct Counted {
  test::DeviceRig rig{{"--standby", "off"}};
  long calls = 0;
  ~Counted() {
    if (const auto error = rig.device().take_error(); !error.ok())
      std::fprintf(stderr, "troupe: %s\n", error.error().message.c_str());
    std::fprintf(stderr, "troupe: %ld calls on %s\n", calls, test::backend().c_str());
  }
};

}  // namespace

Device& device() {
  static Counted counted;
  ++counted.calls;
  return counted.rig.device();
}

}  // namespace troupe::netlib
