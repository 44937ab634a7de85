#include <troupe/error.hpp>

#include <cstdio>
#include <cstdlib>

namespace troupe {

std::string_view to_string(Errc code) noexcept {
  switch (code) {
    case Errc::ok: return "ok";
    case Errc::invalid: return "invalid";
    case Errc::unsupported: return "unsupported";
    case Errc::out_of_memory: return "out_of_memory";
    case Errc::library: return "library";
    case Errc::numeric: return "numeric";
    case Errc::stale: return "stale";
    case Errc::timeout: return "timeout";
    case Errc::would_block: return "would_block";
    case Errc::stopped: return "stopped";
    case Errc::device_lost: return "device_lost";
    case Errc::device_failed: return "device_failed";
    case Errc::world_reformed: return "world_reformed";
    case Errc::peer_lost: return "peer_lost";
    case Errc::budget_exhausted: return "budget_exhausted";
    case Errc::requeue: return "requeue";
    case Errc::io: return "io";
    case Errc::corrupt: return "corrupt";
    case Errc::internal: return "internal";
  }
  return "unknown";
}

std::string Error::to_string() const {
  std::string text{troupe::to_string(code)};
  if (!message.empty()) text += ": " + message;
  if (native != 0) text += " (" + std::to_string(native) + ")";
  return text;
}

Exception::Exception(Error error)
    : std::runtime_error(error.to_string()), error_(std::move(error)) {}

namespace detail {
void refuse_argument(std::string_view what) {
  throw Exception({Errc::invalid, 0, std::string(what)});
}

void check_failed(std::string_view what, const std::source_location& where) {
  std::fprintf(stderr, "troupe: %s:%u: check failed: %.*s\n", where.file_name(),
               static_cast<unsigned>(where.line()), static_cast<int>(what.size()), what.data());
  std::abort();
}
}  // namespace detail

}  // namespace troupe
