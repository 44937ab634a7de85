#include "rank/device/buffer_table.hpp"

namespace troupe::rank {

Result<std::uint32_t> BufferTable::add(std::uint32_t region, std::uint64_t offset,
                                       std::uint64_t bytes) {
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
  entry.live = true;
  return index;
}

void BufferTable::remove(std::uint32_t buffer) {
  lose(buffer);
  at(buffer).live = false;
  free_.push_back(buffer);
}

}  // namespace troupe::rank
