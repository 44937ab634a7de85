#include "threads.hpp"

#include <utility>

#include "account.hpp"

namespace troupe::torture {

void Threads::start(std::function<void()> body) {
  threads_.emplace_back([this, body = std::move(body)] {
    try {
      body();
    } catch (const Finding&) {
      const std::lock_guard lock(mutex_);
      if (!std::exchange(found_, true)) failure_ = std::current_exception();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
    }
  });
}

void Threads::join() {
  threads_.clear();
  if (const auto failure = std::exchange(failure_, nullptr)) std::rethrow_exception(failure);
}

}  // namespace troupe::torture
