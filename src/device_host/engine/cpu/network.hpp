#pragma once

#include <sys/socket.h>

#include <string>

#include <troupe/error.hpp>

namespace troupe::host::cpu {

struct SocketAddress {
  ::sockaddr_storage storage{};
  ::socklen_t length = 0;
};

/// The address at which this process's peers reach it, port 0: that of the interface
/// TROUPE_GLOO_INTERFACE names; else what this host's name resolves to, if that is the address of
/// an interface other than loopback (IPv4 first); else 127.0.0.1, which serves a world on one host.
/// May block on name resolution. Errors: invalid for an interface that is not there or has no
/// address.
Result<SocketAddress> local_address();

}  // namespace troupe::host::cpu
