#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include <troupe/gpu_ref.hpp>

#include "rank/device/device_core.hpp"
#include "rank/token/token_message.hpp"

namespace troupe::rank_process {

/// A transfer over the network has so many pieces of this size under way at a time, at each end in
/// pinned memory of its own.
inline constexpr std::uint32_t kStreamPieces = 6;
inline constexpr std::uint64_t kStreamPiece = 2u << 20;

/// Follows the bytes of a piece and says which they are: nothing depends on the order in which
/// pieces are read, sent or received.
struct PieceLabel {
  TransferKey key{};
  std::uint64_t offset = 0;  ///< in the transfer
  std::uint64_t bytes = 0;
};
static_assert(std::is_trivially_copyable_v<PieceLabel> &&
              std::has_unique_object_representations_v<PieceLabel>);

/// Pinned memory for the pieces of one end of a stream, each with its label.
class StreamSlots {
 public:
  static Result<StreamSlots> make(DeviceCore& device, std::uint64_t total);

  [[nodiscard]] std::uint64_t piece() const noexcept { return piece_; }
  [[nodiscard]] std::byte* data(std::uint32_t slot) const { return data_ + slot * stride_; }
  /// The first `bytes` of a slot.
  [[nodiscard]] Operand operand(std::uint32_t slot, std::uint64_t bytes) const;
  [[nodiscard]] std::uint32_t slot_of(const std::byte* where) const;
  /// Writes the label behind its bytes; how much there is to send.
  std::size_t label(std::uint32_t slot, const PieceLabel& label) const;

 private:
  std::shared_ptr<void> lease_;
  std::byte* data_ = nullptr;
  Operand where_;
  std::uint64_t piece_ = 0;
  std::uint64_t stride_ = 0;
};

/// The source's end.
struct OutStream {
  StreamSlots slots;
  std::uint32_t number = 0;  ///< the destination's name for it
  std::uint64_t next = 0;    ///< the first byte that is not being read
  std::uint32_t credit = kStreamPieces;
  std::vector<std::uint32_t> free;
};

/// The destination's end. Pieces arrive on the network's thread, into slots that are free; the
/// TokenActor looks at what they are and frees them.
class InStream {
 public:
  InStream(StreamSlots slots, const TransferKey& key, std::uint64_t total);

  [[nodiscard]] const StreamSlots& slots() const noexcept { return slots_; }
  /// The network's thread: a slot for a message of that length; nullptr if none is to come.
  [[nodiscard]] std::byte* place(std::size_t bytes);
  /// What a message of that length in a slot brings. Errors: invalid (it is not of this transfer,
  /// or no piece of it, or one that was here before).
  [[nodiscard]] Result<PieceLabel> accept(std::uint32_t slot, std::size_t bytes);
  void release(std::uint32_t slot);

  std::uint32_t number = 0;  ///< the TokenActor's alone

 private:
  [[nodiscard]] std::uint64_t length_at(std::uint64_t offset) const {
    return std::min(slots_.piece(), total_ - offset);
  }

  StreamSlots slots_;
  TransferKey key_;
  std::uint64_t total_;
  std::vector<bool> here_;  ///< by piece; the TokenActor's alone
  std::mutex mutex_;
  std::vector<std::uint32_t> free_;
};

/// The streams on which something may come, by number. Any thread.
class InStreams {
 public:
  using Arrived = std::function<void(std::uint32_t slot, std::uint64_t bytes)>;

  /// False if all numbers are taken.
  bool add(int rank, const std::shared_ptr<InStream>& stream, Arrived arrived);
  void remove(std::uint32_t number);

  // For Bulk.
  std::byte* place(int rank, std::uint32_t number, std::size_t bytes);
  void arrived(int rank, std::uint32_t number, std::byte* where, std::size_t bytes);

 private:
  struct Entry {
    int rank;
    std::shared_ptr<InStream> stream;
    Arrived arrived;
    /// Pieces that are being received: the memory must stay until they are there.
    std::uint32_t receiving = 0;
    bool removed = false;
  };
  Entry* find(int rank, std::uint32_t number);

  std::mutex mutex_;
  std::map<std::uint32_t, Entry> entries_;
  std::uint32_t next_ = 1;
};

}  // namespace troupe::rank_process
