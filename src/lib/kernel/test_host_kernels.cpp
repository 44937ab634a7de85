#include <troupe/function.hpp>

// What the tests have in the place of a kernel that uses warps.

extern "C" {
__attribute__((visibility("default"))) float bias[2] = {};
}

static void warp_sums(const troupe::HostLaunch& how, const float* x, float* sums) {
  for (unsigned block = 0; block < how.grid[0]; ++block) {
    sums[block] = bias[0];
    for (unsigned i = 0; i < how.block[0]; ++i) sums[block] += x[block * how.block[0] + i];
  }
}

template <class T>
static void doubled(const troupe::HostLaunch& how, T* x) {
  for (unsigned i = 0; i < how.block[0]; ++i) x[i] *= 2;
}

TROUPE_HOST_KERNELS(troupe::host_kernel<&warp_sums>("warp_sums"),
                    troupe::host_kernel<&doubled<double>>("doubled<double>"))
