#include <cstdio>

#include "device_rig.hpp"

// A rank that has a device, an active and a standby host, and work under way; says so in one byte
// and waits to be killed.
int main() {
  using namespace troupe::test;
  DeviceRig rig;
  const Bystanders bystanders(rig.device(), 1);
  if (!eventually([] { return hosts().size() == 2; })) return 1;
  std::putchar('r');
  std::fflush(stdout);
  for (;;) {
    if (!rig.device().nop().wait().ok()) return 1;
  }
}
