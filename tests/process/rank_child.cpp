#include <fcntl.h>
#include <sys/resource.h>

#include <cstdio>
#include <string_view>

#include "device_rig.hpp"

using namespace troupe::test;

namespace {

constexpr rlim_t kLimit = 128;  ///< of descriptors

/// A rank that may have few descriptors. It takes slabs until one is refused; then a device host is
/// killed. Says what is wrong; status 0 if nothing is.
int run_short_of_descriptors() {
  const auto fails = [](const std::string& why) {
    std::fprintf(stderr, "%s\n", why.c_str());
    return 1;
  };
  const rlimit few{kLimit, kLimit};
  if (::setrlimit(RLIMIT_NOFILE, &few) != 0) return fails("setrlimit");
  DeviceRig rig({"--slab-size", "2MiB"});
  auto& device = rig.device();
  if (!eventually([] { return hosts().size() == 2; })) return fails("there is no standby");
  const auto staging = device.pinned<float>(1);  // what downloads need, ahead of the shortage
  // What a program has open itself; a few slabs are left.
  std::vector<troupe::UniqueFd> files;
  while (files.empty() || files.back().get() < static_cast<int>(kLimit) - 40)
    files.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  std::vector<troupe::GpuRef<float>> slabs;
  std::string refused;
  for (int i = 0; refused.empty() && i < 200; ++i) {
    auto slab = device.try_alloc<float>(2 << 18);
    if (slab.ok()) {
      slabs.push_back(*slab);
      device.fill(slabs.back(), static_cast<float>(i)).get();
    } else {
      refused = slab.error().to_string();
    }
  }
  if (slabs.size() < 2) return fails("slabs: " + std::to_string(slabs.size()) + "; " + refused);
  if (refused.find("RLIMIT_NOFILE") == std::string::npos || !refused.starts_with("out_of_memory"))
    return fails("after " + std::to_string(slabs.size()) + " slabs: '" + refused + "'");
  for (int round = 0; round < 3; ++round) {
    const auto old = active_host();
    if (!kill_active() || !replaced(old)) return fails("the device host is not replaced");
    for (std::size_t i = 0; i < slabs.size(); ++i) {
      if (!slabs[i].valid() || device.download(slabs[i])[7] != static_cast<float>(i))
        return fails("slab " + std::to_string(i) + " is lost");
    }
    if (!eventually([] { return hosts().size() == 2; })) return fails("there is no new standby");
  }
  slabs.pop_back();
  if (const auto wrong = not_working(device); !wrong.empty()) return fails(wrong);
  return 0;
}

}  // namespace

// A rank that has a device, an active and a standby host, and work under way; says so in one byte
// and waits to be killed. Its arguments are options; with the argument `descriptors`: see above.
int main(int argc, char** argv) try {
  if (argc > 1 && std::string_view(argv[1]) == "descriptors") return run_short_of_descriptors();
  DeviceRig rig({argv + 1, argv + argc});
  const Bystanders bystanders(rig.device(), 1);
  if (!eventually([] { return hosts().size() == 2; })) return 1;
  std::putchar('r');
  std::fflush(stdout);
  for (;;) {
    if (!rig.device().nop().wait().ok()) return 1;
  }
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
