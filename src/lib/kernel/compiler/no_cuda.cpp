#include "lib/kernel/compiler/compile.hpp"

// In the place of compile_cuda.cpp where troupe is built without CUDA.

namespace troupe::compile {

wire::CompileOutcome for_cuda(const wire::CompileJob&) {
  return failed(Errc::unsupported, "troupe was built without CUDA: there is no NVRTC");
}

}  // namespace troupe::compile
