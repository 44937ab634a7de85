#include "rank/device/buffer_table.hpp"

namespace troupe::rank {

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
  }
  auto& entry = at(index);
  entry.region = region;
  entry.offset = offset;
  entry.bytes = bytes;
  entry.last_ticket = 0;
  entry.dtype = dtype;
  entry.dropped = false;
  entry.written = entry.known = false;
  entry.live = true;
  return index;
}

void BufferTable::remove(std::uint32_t buffer) {
  lose(buffer);
  at(buffer).live = false;
  free_.push_back(buffer);
}

Result<Operand> BufferTable::translate(const Operand& named) const {
  const Error stale{Errc::stale, 0, "the token's buffer is gone"};
  if (named.buffer >= size_) return stale;
  const auto& entry = at(named.buffer);
  if (!entry.live || (entry.dropped && entry.holds == 0) ||
      entry.generation.load(std::memory_order_relaxed) != named.generation) {
    return stale;
  }
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

}  // namespace troupe::rank
