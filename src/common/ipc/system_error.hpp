#pragma once

#include <cerrno>
#include <cstring>
#include <string>

#include <troupe/error.hpp>

namespace troupe::ipc {

/// The Error of a failed system call, from errno: "memfd_create: Cannot allocate memory (12)".
inline Error system_error(const std::string& call, int error = errno) {
  const auto code = error == ENOMEM || error == ENOSPC ? Errc::out_of_memory : Errc::io;
  return {code, error, call + ": " + std::strerror(error)};
}

}  // namespace troupe::ipc
