#include <cstdio>

#include "device_rig.hpp"

// A rank that has a device, an active and a standby host, and work under way; says so in one byte
// and waits to be killed. Its arguments are options.
int main(int argc, char** argv) {
  using namespace troupe::test;
  DeviceRig rig({argv + 1, argv + argc});
  const Bystanders bystanders(rig.device(), 1);
  if (!eventually([] { return hosts().size() == 2; })) return 1;
  std::putchar('r');
  std::fflush(stdout);
  for (;;) {
    if (!rig.device().nop().wait().ok()) return 1;
  }
}
