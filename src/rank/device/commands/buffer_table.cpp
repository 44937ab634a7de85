#include "rank/device/commands/buffer_table.hpp"

namespace troupe::rank_process {

Result<std::uint32_t> BufferTable::add(std::uint32_t region, std::uint64_t offset,
                                       std::uint64_t bytes, DType dtype) {
  std::uint32_t index = 0;
  if (!free_.empty()) {
    index = free_.back();
    free_.pop_back();
  } else {
    if (size_ == kMaxBuffers) return Error{Errc::out_of_memory, 0, "too many buffers"};
    if (size_ % kChunk == 0) chunks_[size_ / kChunk] = std::make_unique<Entry[]>(kChunk);
    index = size_++;
    at(index).generation = first_generation_;
    at(index).valid_since = first_generation_;
  }
  auto& entry = at(index);
  entry.region = region;
  entry.offset = offset;
  entry.bytes = bytes;
  entry.dtype = dtype;
  entry.dropped = false;
  entry.written = entry.known = entry.of_run = false;
  entry.live = true;
  entry.first_generation = entry.generation.load(std::memory_order_relaxed);
  entry.name.clear();
  return index;
}

void BufferTable::lose(std::uint32_t buffer, Errc by) {
  auto& entry = at(buffer);
  entry.lost_generation = entry.generation.fetch_add(1, std::memory_order_relaxed);
  entry.valid_since.store(entry.lost_generation + 1, std::memory_order_release);
  entry.lost_by = by;
}

void BufferTable::restore(std::uint32_t buffer) {
  auto& entry = at(buffer);
  ++entry.restores;
  entry.valid_since.store(entry.first_generation, std::memory_order_release);
}

void BufferTable::remove(std::uint32_t buffer) {
  lose(buffer, Errc::ok);
  at(buffer).live = false;
  free_.push_back(buffer);
}

std::string BufferTable::describe(const Operand& operand) const {
  auto text = "buffer " + std::to_string(operand.buffer);
  if (operand.buffer >= size_ || !at(operand.buffer).live) return text;
  const auto& entry = at(operand.buffer);
  return text + " (" + (entry.name.empty() ? "" : entry.name + ", ") +
         std::to_string(entry.bytes / size_of(entry.dtype)) + " of " +
         std::string(to_string(entry.dtype)) + ")";
}

std::string BufferTable::explain(const Operand& operand) const {
  const bool known = operand.buffer < size_;
  if (!known || !at(operand.buffer).live ||
      operand.generation < at(operand.buffer).first_generation ||
      operand.generation > at(operand.buffer).generation.load(std::memory_order_relaxed)) {
    // The entry has the name of its last buffer, until there is another one.
    const bool same = known && operand.generation >= at(operand.buffer).first_generation;
    return "buffer " + std::to_string(operand.buffer) +
           (same && !at(operand.buffer).name.empty() ? " (" + at(operand.buffer).name + ")" : "") +
           " was freed";
  }
  const auto what = describe(operand);
  if (valid(operand.buffer, operand.generation)) return "the range does not lie within " + what;
  const auto& entry = at(operand.buffer);
  const auto* const how = entry.lost_by == Errc::device_lost      ? "were lost with a device host"
                          : entry.lost_by == Errc::world_reformed ? "were lost with an epoch"
                          : entry.lost_by == Errc::numeric || entry.lost_by == Errc::library
                              ? "were spoilt by a command that failed"
                              : "were lost";
  return "the contents of " + what + " " + how +
         ": in World::run, was it left out of the checkpoint (add, add_scratch)? Elsewhere renew() "
         "the reference and write it again";
}

Result<Operand> BufferTable::translate(const Operand& named) const {
  const Error stale{Errc::stale, 0, "the token's buffer is gone"};
  if (named.generation != 0 && named.generation < first_generation_)
    return Error{Errc::peer_lost, 0, "the process that had the token's buffer has died"};
  if (named.buffer >= size_) return stale;
  const auto& entry = at(named.buffer);
  if (!entry.live || (entry.dropped && entry.holds == 0) || !valid(named.buffer, named.generation))
    return stale;
  if (named.reserved != static_cast<std::uint32_t>(entry.dtype))
    return Error{Errc::invalid, 0, "the token is of another dtype than its buffer"};
  if (named.bytes > entry.bytes || named.offset > entry.bytes - named.bytes)
    return Error{Errc::invalid, 0, "the token's range does not lie within its buffer"};
  return Operand{.region = entry.region,
                 .buffer = named.buffer,
                 .generation = named.generation,
                 .offset = entry.offset + named.offset,
                 .bytes = named.bytes};
}

}  // namespace troupe::rank_process
