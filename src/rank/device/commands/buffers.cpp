#include "rank/device/commands/buffers.hpp"

namespace troupe::rank_process {

Result<std::uint32_t> Buffers::add(std::uint32_t region, std::uint64_t offset, std::uint64_t bytes,
                                   DType dtype) {
  const std::lock_guard lock(shared_->submissions);
  return shared_->buffers.add(region, offset, bytes, dtype);
}

void Buffers::set_name(std::uint32_t buffer, std::string_view name) {
  const std::lock_guard lock(shared_->submissions);
  shared_->buffers.at(buffer).name = name;
}

void Buffers::drop(std::uint32_t buffer) {
  const std::lock_guard lock(shared_->submissions);
  shared_->buffers.at(buffer).dropped = true;
  dropped_.push_back(buffer);
}

std::vector<std::pair<std::uint32_t, std::uint64_t>> Buffers::collect_freed() {
  std::vector<std::pair<std::uint32_t, std::uint64_t>> freed;
  const std::lock_guard lock(shared_->submissions);
  std::erase_if(dropped_, [&](std::uint32_t buffer) {
    const auto& entry = shared_->buffers.at(buffer);
    if (entry.holds != 0 || entry.uses.value() != 0) return false;
    freed.emplace_back(entry.region, entry.offset);
    shared_->buffers.remove(buffer);
    return true;
  });
  return freed;
}

bool Buffers::restore(const Operand& where) {
  const std::lock_guard lock(shared_->submissions);
  const auto& entry = shared_->buffers.at(where.buffer);
  if (where.offset != entry.offset || where.bytes != entry.bytes) return false;
  shared_->buffers.restore(where.buffer);
  return true;
}

std::string Buffers::name_of(const Operand& range) const {
  const std::lock_guard lock(shared_->submissions);
  if (in_no_table(range) || range.buffer >= shared_->buffers.size()) return {};
  return shared_->buffers.at(range.buffer).name;
}

std::string Buffers::describe(const Operand& range) const {
  const std::lock_guard lock(shared_->submissions);
  return shared_->buffers.describe(range);
}

Result<Operand> Buffers::translate(const Operand& named) const {
  const std::lock_guard lock(shared_->submissions);
  return shared_->buffers.translate(named);
}

Result<void> Buffers::hold(const Operand& range) {
  const std::lock_guard lock(shared_->submissions);
  if (!shared_->buffers.current(range))
    return Error{Errc::stale, 0, shared_->buffers.explain(range)};
  ++shared_->buffers.at(range.buffer).holds;
  return {};
}

void Buffers::release(std::uint32_t buffer) {
  const std::lock_guard lock(shared_->submissions);
  --shared_->buffers.at(buffer).holds;
}

std::vector<std::pair<std::uint32_t, Buffers::State>> Buffers::states() const {
  std::vector<std::pair<std::uint32_t, State>> list;
  const std::lock_guard lock(shared_->submissions);
  for (std::uint32_t i = 0; i < shared_->buffers.size(); ++i) {
    const auto& entry = shared_->buffers.at(i);
    const auto generation = entry.generation.load(std::memory_order_acquire);
    if (!entry.live || entry.dropped || !shared_->buffers.valid(i, generation)) continue;
    list.emplace_back(i, State{entry.region, generation, entry.first_generation, entry.restores,
                               entry.offset, entry.bytes, entry.writes});
  }
  return list;
}

void Buffers::forget_writes() {
  const std::lock_guard lock(shared_->submissions);
  for (std::uint32_t i = 0; i < shared_->buffers.size(); ++i) {
    auto& entry = shared_->buffers.at(i);
    entry.written = entry.known = false;
  }
}

void Buffers::know() {
  const std::lock_guard lock(shared_->submissions);
  for (std::uint32_t i = 0; i < shared_->buffers.size(); ++i) {
    auto& entry = shared_->buffers.at(i);
    entry.known = entry.live;
  }
}

std::vector<Buffers::Written> Buffers::writes() const {
  std::vector<Written> list;
  const std::lock_guard lock(shared_->submissions);
  for (std::uint32_t i = 0; i < shared_->buffers.size(); ++i) {
    const auto& entry = shared_->buffers.at(i);
    if (entry.written && entry.live && !entry.dropped)
      list.push_back({i, shared_->buffers.describe({.buffer = i})});
  }
  return list;
}

}  // namespace troupe::rank_process
