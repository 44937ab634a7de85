#include <dlfcn.h>
#include <sys/socket.h>

#include <cerrno>
#include <string_view>

// Preloaded, keeps device hosts from reaching one another over the network.

extern "C" int connect(int fd, const sockaddr* address, socklen_t bytes) {
  const bool network = address->sa_family == AF_INET || address->sa_family == AF_INET6;
  if (network && std::string_view(program_invocation_short_name) == "troupe-device-host") {
    errno = ECONNREFUSED;
    return -1;
  }
  static const auto real = reinterpret_cast<decltype(&connect)>(::dlsym(RTLD_NEXT, "connect"));
  return real(fd, address, bytes);
}
