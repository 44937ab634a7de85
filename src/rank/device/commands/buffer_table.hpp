#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <troupe/error.hpp>
#include <troupe/lib/operation.hpp>

#include "common/core/two_sided_count.hpp"

namespace troupe::rank_process {

/// Every buffer of a rank: where it lies, the generation of its contents, how many unanswered
/// commands name it.
///
/// Generations only grow, over the reuse of an entry too, so a reference that outlived its buffer
/// never matches a later one. A reference is valid from the buffer's oldest valid generation on:
/// that is its newest after a loss, and its first again when the whole of it has been restored.
/// Entries have stable addresses; the generations may be read without the owner's lock.
class BufferTable {
 public:
  static constexpr std::uint32_t kMaxBuffers = 1u << 22;

  struct Entry {
    std::atomic<std::uint32_t> generation{1};   ///< the newest
    std::atomic<std::uint32_t> valid_since{1};  ///< the oldest that references may have
    std::uint32_t first_generation = 1;         ///< of this buffer
    std::uint32_t region = 0;
    bool live = false;
    bool dropped = false;         ///< no reference is left in this rank's program
    bool known = false;           ///< see Buffers::know()
    bool written = false;         ///< by a command submitted since then
    std::uint64_t writes = 0;     ///< commands submitted that write it
    bool of_run = false;          ///< it belongs to the checkpoint of the run that is under way
    DType dtype = DType::u8;      ///< of its elements
    std::uint32_t holds = 0;      ///< leases and transfers that keep it from being freed
    std::uint32_t transfers = 0;  ///< ranges of it that are lent out or expected
    std::uint32_t restores = 0;   ///< how often its contents were
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    /// Times that unanswered commands name it: counted up by who submits, down by who answers.
    TwoSidedCount uses;
    std::string name;                   ///< the program's; may be empty
    std::uint32_t lost_generation = 0;  ///< the newest one that is gone, and by what
    Errc lost_by = Errc::ok;            ///< ok: it was freed
  };

  /// References to buffers that are made from now on have this generation, or a later one: those of
  /// another process, which had the rank before, match none of them. Before there are any.
  void begin_with(std::uint32_t generation) noexcept { first_generation_ = generation; }
  /// Makes an entry; out_of_memory at kMaxBuffers. The caller serialises all non-const functions.
  Result<std::uint32_t> add(std::uint32_t region, std::uint64_t offset, std::uint64_t bytes,
                            DType dtype = DType::u8);
  /// The contents are gone, by an error of this class: references to them go stale.
  void lose(std::uint32_t buffer, Errc by);
  /// All of the contents are there again, or count as such: so are all references to the buffer.
  void restore(std::uint32_t buffer);
  /// The entry may be used again; references still around go stale.
  void remove(std::uint32_t buffer);

  [[nodiscard]] Entry& at(std::uint32_t buffer) {
    return chunks_[buffer / kChunk][buffer % kChunk];
  }
  [[nodiscard]] const Entry& at(std::uint32_t buffer) const {
    return chunks_[buffer / kChunk][buffer % kChunk];
  }
  /// Whether a reference of this generation to an entry is valid.
  [[nodiscard]] bool valid(std::uint32_t buffer, std::uint32_t generation) const noexcept {
    const auto& entry = at(buffer);
    return generation >= entry.valid_since.load(std::memory_order_acquire) &&
           generation <= entry.generation.load(std::memory_order_relaxed);
  }
  /// Whether a range names an existing buffer whose contents it has seen, and lies within it.
  [[nodiscard]] bool current(const Operand& operand) const noexcept {
    if (operand.buffer >= size_) return false;
    const auto& entry = at(operand.buffer);
    return entry.live && valid(operand.buffer, operand.generation) &&
           entry.region == operand.region && operand.offset >= entry.offset &&
           operand.bytes <= entry.bytes &&
           operand.offset - entry.offset <= entry.bytes - operand.bytes;
  }
  /// Which buffer a range names, for messages: "buffer 7 (x, 1000 of f64)".
  [[nodiscard]] std::string describe(const Operand& operand) const;
  /// Why a range is not current(), and what to do.
  [[nodiscard]] std::string explain(const Operand& operand) const;
  /// The range that a token's operand names, as it stands in this rank's own records. Errors: stale
  /// (no such buffer, or other contents), invalid (not within it, or of another dtype).
  [[nodiscard]] Result<Operand> translate(const Operand& named) const;
  [[nodiscard]] std::uint32_t size() const noexcept { return size_; }

 private:
  static constexpr std::uint32_t kChunk = 1024;
  std::array<std::unique_ptr<Entry[]>, kMaxBuffers / kChunk> chunks_;
  std::vector<std::uint32_t> free_;
  std::uint32_t first_generation_ = 1;
  std::uint32_t size_ = 0;
};

}  // namespace troupe::rank_process
