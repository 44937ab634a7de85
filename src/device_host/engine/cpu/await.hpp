#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <utility>

#include "device_host/engine/cpu/library.hpp"

/// For operations that block: work that is queued, and waited for.
namespace troupe::host::cpu {

/// Queues work on the call's queue however full that is.
inline Result<void> submit_in_time(Services& services, const Call& call,
                                   const std::function<void()>& work) {
  auto submitted = services.submit(call, work);
  while (submitted.code() == Errc::would_block) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    submitted = services.submit(call, work);
  }
  return submitted;
}

/// Has the queue carry out `work()`, waits for it and returns its value. Errors: stopped if the
/// engine ends before.
template <class Work>
auto submit_and_wait(Services& services, const Call& call, Work work) -> Result<decltype(work())> {
  using Value = decltype(work());
  auto promise = std::make_shared<std::promise<Value>>();
  auto value = promise->get_future();
  const auto submitted = submit_in_time(
      services, call, [promise = std::move(promise), work = std::move(work)]() mutable {
        promise->set_value(work());
      });
  if (!submitted.ok()) return submitted.error();
  try {
    return value.get();
  } catch (const std::future_error&) {
    return Error{Errc::stopped, 0, "the engine ends"};
  }
}

}  // namespace troupe::host::cpu
