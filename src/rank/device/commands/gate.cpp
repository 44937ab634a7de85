#include "rank/device/commands/gate.hpp"

namespace troupe::rank_process {

thread_local int Gate::Passage::depth_ = 0;

void Gate::close(const Error& error) {
  const std::lock_guard lock(shared_->submissions);
  shut_ = error;
}

void Gate::open() {
  const std::lock_guard lock(shared_->submissions);
  shut_.reset();
}

bool Gate::closed() const {
  const std::lock_guard lock(shared_->submissions);
  return shut_ || ended_;
}

void Gate::set_epoch(Epoch epoch) {
  const std::lock_guard lock(shared_->submissions);
  passage_waits_ = false;
  shared_->epoch.store(epoch.value, std::memory_order_release);
}

}  // namespace troupe::rank_process
