#include "shim.hpp"

#include <cstdio>
#include <map>
#include <string>

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
  std::map<std::string, long, std::less<>> of_routines;
  ~Counted() {
    if (const auto error = rig.device().take_error(); !error.ok())
      std::fprintf(stderr, "troupe: %s\n", error.error().message.c_str());
    for (const auto& [routine, count] : of_routines)
      std::fprintf(stderr, "troupe: %ld calls of %s\n", count, routine.c_str());
    std::fprintf(stderr, "troupe: %ld calls on %s\n", calls, test::engine().c_str());
  }
};

}  // namespace

Device& device(std::string_view routine) {
  static Counted counted;
  ++counted.calls;
  if (!routine.empty()) ++counted.of_routines[std::string(routine)];
  return counted.rig.device();
}

}  // namespace troupe::netlib
