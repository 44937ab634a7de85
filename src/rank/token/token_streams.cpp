#include "rank/token/token_streams.hpp"

#include <cstring>
#include <string>

#include "rank/net/bulk.hpp"

namespace troupe::rank_process {

Result<StreamSlots> StreamSlots::make(DeviceCore& device, std::uint64_t total) {
  constexpr std::uint64_t kAlignment = 256;
  StreamSlots slots;
  slots.piece_ = std::min(kStreamPiece, total);
  slots.stride_ = (slots.piece_ + sizeof(PieceLabel) + kAlignment - 1) / kAlignment * kAlignment;
  auto pin = device.pools().allocate_pinned(slots.stride_ * kStreamPieces, 1);
  if (!pin) return pin.error();
  slots.lease_ = std::move(pin->lease);
  slots.data_ = pin->data;
  slots.where_ = pin->where;
  return slots;
}

Operand StreamSlots::operand(std::uint32_t slot, std::uint64_t bytes) const {
  Operand part = where_;
  part.offset += slot * stride_;
  part.bytes = bytes;
  return part;
}

std::uint32_t StreamSlots::slot_of(const std::byte* where) const {
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(where - data_) / stride_);
}

std::size_t StreamSlots::label(std::uint32_t slot, const PieceLabel& label) const {
  std::memcpy(data(slot) + label.bytes, &label, sizeof label);
  return label.bytes + sizeof label;
}

InStream::InStream(StreamSlots slots, const TransferKey& key, std::uint64_t total)
    : slots_(std::move(slots)),
      key_(key),
      total_(total),
      here_((total + slots_.piece() - 1) / slots_.piece()) {
  for (std::uint32_t slot = 0; slot < kStreamPieces; ++slot) free_.push_back(slot);
}

std::byte* InStream::place(std::size_t bytes) {
  const auto last = length_at((here_.size() - 1) * slots_.piece());
  if (bytes != slots_.piece() + sizeof(PieceLabel) && bytes != last + sizeof(PieceLabel))
    return nullptr;
  const std::lock_guard lock(mutex_);
  if (free_.empty()) return nullptr;
  const auto slot = free_.back();
  free_.pop_back();
  return slots_.data(slot);
}

Result<PieceLabel> InStream::accept(std::uint32_t slot, std::size_t bytes) {
  const auto wrong = [this](const std::string& what) {
    return Error{Errc::invalid, 0,
                 "rank " + std::to_string(key_.requester) + "'s transfer " +
                     std::to_string(key_.number) + " over the network: " + what};
  };
  PieceLabel label;
  std::memcpy(&label, slots_.data(slot) + bytes - sizeof label, sizeof label);
  if (label.key != key_) return wrong("a piece of another one");
  if (label.offset >= total_ || label.offset % slots_.piece() != 0 ||
      label.bytes != length_at(label.offset) || label.bytes + sizeof label != bytes)
    return wrong("bytes from " + std::to_string(label.offset) + " that are no piece of it");
  const auto piece = label.offset / slots_.piece();
  if (here_[piece]) return wrong("the bytes from " + std::to_string(label.offset) + " came twice");
  here_[piece] = true;
  return label;
}

void InStream::release(std::uint32_t slot) {
  const std::lock_guard lock(mutex_);
  free_.push_back(slot);
}

bool InStreams::add(int rank, const std::shared_ptr<InStream>& stream, Arrived arrived) {
  const std::lock_guard lock(mutex_);
  if (entries_.size() + 1 >= Bulk::kStreams) return false;
  while (entries_.contains(next_)) next_ = next_ % (Bulk::kStreams - 1) + 1;
  stream->number = next_;
  entries_.emplace(next_, Entry{rank, stream, std::move(arrived)});
  next_ = next_ % (Bulk::kStreams - 1) + 1;
  return true;
}

void InStreams::remove(std::uint32_t number) {
  const std::lock_guard lock(mutex_);
  const auto it = entries_.find(number);
  if (it == entries_.end()) return;
  it->second.removed = true;
  if (it->second.receiving == 0) entries_.erase(it);
}

InStreams::Entry* InStreams::find(int rank, std::uint32_t number) {
  const auto it = entries_.find(number);
  return it == entries_.end() || it->second.rank != rank ? nullptr : &it->second;
}

std::byte* InStreams::place(int rank, std::uint32_t number, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  auto* const entry = find(rank, number);
  if (entry == nullptr || entry->removed) return nullptr;
  auto* const where = entry->stream->place(bytes);
  if (where != nullptr) ++entry->receiving;
  return where;
}

void InStreams::arrived(int rank, std::uint32_t number, std::byte* where, std::size_t bytes) {
  Arrived call;
  std::uint32_t slot = 0;
  {
    const std::lock_guard lock(mutex_);
    auto* const entry = find(rank, number);
    check(entry != nullptr && entry->receiving > 0, "a piece of a stream that is not there");
    --entry->receiving;
    slot = entry->stream->slots().slot_of(where);
    if (!entry->removed) {
      call = entry->arrived;
    } else if (entry->receiving == 0) {
      entries_.erase(number);
    }
  }
  if (call) call(slot, bytes);
}

}  // namespace troupe::rank_process
