#pragma once

#include <string>
#include <utility>
#include <vector>

#include <troupe/lib/kernel.hpp>

#include "conformance.hpp"

namespace troupe::test {

/// For the tests of kernels: compiles for the device of the tests.
inline KernelModule compiled(const std::string& source, std::vector<std::string> names,
                             CompileOptions options = {}) {
  options.names = std::move(names);
  return device().compile(source, std::move(options)).get();
}

}  // namespace troupe::test
