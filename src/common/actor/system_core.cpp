#include <troupe/actor/system_core.hpp>

namespace troupe::detail {

void SystemCore::enter(Phase phase) {
  const std::scoped_lock lock(mutex_);  // so that no admit() is under way with the old phase
  phase_.store(phase, std::memory_order_relaxed);
}

bool SystemCore::launch(const CellPtr<Cell>& cell, bool is_root) {
  if (auto admitted = admit(cell, is_root); !admitted.ok()) {
    cell->refuse(admitted.error());
    return false;
  }
  cell->start();
  return true;
}

Result<void> SystemCore::admit(const CellPtr<Cell>& cell, bool is_root) {
  const std::scoped_lock lock(mutex_);
  const auto phase = phase_.load(std::memory_order_relaxed);
  if (phase == Phase::closing || (phase == Phase::draining && is_root)) {
    return Error{Errc::stopped, 0, "the actor system is shutting down"};
  }
  if (cells_.size() >= options_.max_actors) {
    return Error{Errc::would_block, 0, "the actor system has max_actors actors"};
  }
  cells_.emplace(cell->id(), Entry{cell, is_root});
  return {};
}

void SystemCore::retire(ActorId id) {
  Entry last_reference;  // dropped after the lock
  const std::scoped_lock lock(mutex_);
  const auto found = cells_.find(id);
  if (found == cells_.end()) return;
  last_reference = std::move(found->second);
  cells_.erase(found);
}

std::size_t SystemCore::living() const {
  const std::scoped_lock lock(mutex_);
  return cells_.size();
}

std::vector<CellPtr<Cell>> SystemCore::roots() const {
  const std::scoped_lock lock(mutex_);
  std::vector<CellPtr<Cell>> found;
  for (const auto& [id, entry] : cells_) {
    if (entry.is_root) found.push_back(entry.cell);
  }
  return found;
}

}  // namespace troupe::detail
