#pragma once

#include <string>

#include "common/wire/compile_job.hpp"

/// The parts of troupe-compile. It is a process of its own for each job.
namespace troupe::compile {

/// The outcome of a job that fails without a compiler's words.
inline wire::CompileOutcome failed(Errc code, std::string why) {
  wire::CompileOutcome outcome;
  outcome.code = code;
  outcome.log = std::move(why);
  return outcome;
}

/// By NVRTC: a cubin; PTX for a device that is newer than NVRTC.
wire::CompileOutcome for_cuda(const wire::CompileJob& job);
/// By the host's compiler: a shared object with a troupe_kernel::Table, in two steps. What is
/// compiled in the second is the text that the first has made, whatever happens to files meanwhile.
wire::CompileOutcome for_cpu(const wire::CompileJob& job);

/// What for_cpu() has the compiler compile instead of a source: dynamic shared memory has another
/// declaration. Lines stay where they are.
std::string rewritten(const std::string& source);

}  // namespace troupe::compile
