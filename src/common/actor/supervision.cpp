#include <troupe/actor/supervision.hpp>

namespace troupe {

Directive default_decider(const Error& error) {
  switch (error.code) {
    case Errc::ok:
    case Errc::invalid:
    case Errc::unsupported:
    case Errc::out_of_memory:
    case Errc::library:
    case Errc::numeric:
    case Errc::stale:
    case Errc::timeout:
    case Errc::would_block:
    case Errc::stopped:
    case Errc::world_reformed:
    case Errc::peer_lost:
    case Errc::io:
    case Errc::corrupt: return Directive::resume;
    case Errc::device_lost: return Directive::restart;
    case Errc::device_failed: return Directive::stop;
    case Errc::budget_exhausted:
    case Errc::requeue:
    case Errc::internal: return Directive::escalate;
  }
  return Directive::escalate;
}

std::string_view to_string(Directive directive) noexcept {
  switch (directive) {
    case Directive::resume: return "resume";
    case Directive::restart: return "restart";
    case Directive::stop: return "stop";
    case Directive::escalate: return "escalate";
  }
  return "unknown";
}

}  // namespace troupe
