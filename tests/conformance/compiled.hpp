#pragma once

#include <string>
#include <utility>
#include <vector>

#include <troupe/lib/kernel.hpp>

#include "conformance.hpp"

namespace troupe::test {

/// Tests that need kernels: the cpu engine has none where it was built without Boost.Context.
inline bool has_kernels() {
#ifdef TROUPE_NO_CPU_KERNELS
  return on_cuda();
#else
  return true;
#endif
}
class NeedsKernels : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_kernels()) GTEST_SKIP() << "the cpu engine was built without kernels (Boost.Context)";
  }
};

/// For the tests of kernels: compiles for the device of the tests.
inline KernelModule compiled(const std::string& source, std::vector<std::string> names,
                             CompileOptions options = {}) {
  options.names = std::move(names);
  return device().compile(source, std::move(options)).get();
}

}  // namespace troupe::test
