#include <unistd.h>

#include <cstring>

#include <troupe/function.hpp>

// Functions that the tests call on the cpu engine; test_functions.cu has them for GPUs.

static int scale(void*, const float* x, float* y, int n, float factor) {
  for (int i = 0; i < n; ++i) y[i] = factor * x[i];
  return 0;
}
TROUPE_FUNCTION(scale)

static void increment(void*, double* x, long long n) {
  for (long long i = 0; i < n; ++i) x[i] += 1;
}
TROUPE_FUNCTION(increment)

static int fail(void*, double* x, int status) {
  x[0] = -1;
  return status;
}
TROUPE_FUNCTION(fail)

/// Leaves a process behind, and its number. Device memory is shared with it: only one writes.
static int leave_child(void*, long long* pid) {
  const auto child = ::fork();
  while (child == 0) ::pause();
  *pid = child;
  return child > 0 ? 0 : 1;
}
TROUPE_FUNCTION(leave_child)
