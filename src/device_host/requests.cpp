#include "device_host/requests.hpp"

#include <string>
#include <utility>

namespace troupe::host {

namespace from_host = wire::from_host;

void Requests::answer(std::uint64_t request, const Result<void>& outcome) {
  core_->life.lose_if_dead(outcome);
  if (request == 0) return;
  if (outcome.ok()) return core_->rank.send(from_host::Done{}, request);
  core_->rank.send(from_host::Failed{with_memory_use(outcome.error())}, request);
}

void Requests::answer_with(std::uint64_t request, const wire::FromHost& message) {
  if (const auto sent = core_->rank.try_send(message, request); !sent.ok()) answer(request, sent);
}

bool Requests::on_helper(std::uint64_t request, Helpers::Job job) {
  if (core_->helpers.start(std::move(job))) return true;
  answer(request, Error{Errc::would_block, 0, "the device host has too many requests under way"});
  return false;
}

Error Requests::with_memory_use(Error error) const {
  if (error.code != Errc::out_of_memory) return error;
  std::string text;
  for (const auto& [cause, bytes] : core_->engine->memory().use()) {
    if (bytes >> 20 != 0)
      text += (text.empty() ? "" : ", ") + cause + " " + std::to_string(bytes >> 20) + " MiB";
  }
  if (!text.empty()) error.message += " (taken by this device host: " + text + ")";
  return error;
}

void Requests::on(std::uint64_t request, const wire::to_host::TellMemoryUse&) {
  on_helper(request, [this, request]() -> Helpers::Finish {
    from_host::MemoryUse use;
    for (auto& [cause, bytes] : core_->engine->memory().use())
      use.parts.push_back({std::move(cause), bytes});
    use.free = core_->engine->memory().free();
    return [this, request, use = std::move(use)] { answer_with(request, use); };
  });
}

}  // namespace troupe::host
