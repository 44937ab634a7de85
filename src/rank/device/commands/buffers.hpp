#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <troupe/lib/operation.hpp>

#include "rank/device/commands/port_shared.hpp"

namespace troupe::rank_process {

/// The buffers of a rank, as its program makes, names and frees them. Any thread.
class Buffers {
 public:
  explicit Buffers(PortShared& shared) : shared_(&shared) {}

  /// See BufferTable.
  void begin_with(std::uint32_t generation) noexcept { shared_->buffers.begin_with(generation); }
  Result<std::uint32_t> add(std::uint32_t region, std::uint64_t offset, std::uint64_t bytes,
                            DType dtype = DType::u8);
  /// What messages call the buffer, beside its number.
  void set_name(std::uint32_t buffer, std::string_view name);
  /// Frees the buffer once nothing submitted names it any more: then collect_freed() returns it.
  void drop(std::uint32_t buffer);
  /// Ranges of dropped buffers that are free now: (region, offset) pairs. Their entries are gone.
  std::vector<std::pair<std::uint32_t, std::uint64_t>> collect_freed();
  [[nodiscard]] std::uint32_t generation(std::uint32_t buffer) const {
    return shared_->buffers.at(buffer).generation.load(std::memory_order_acquire);
  }
  /// Whether a reference of this generation to the buffer is valid.
  [[nodiscard]] bool valid(std::uint32_t buffer, std::uint32_t generation) const noexcept {
    return shared_->buffers.valid(buffer, generation);
  }
  /// See detail::BufferLease::restore().
  bool restore(const Operand& where);

  /// The name of the buffer that a range names; empty: it has none.
  [[nodiscard]] std::string name_of(const Operand& range) const;
  /// Describes the buffer that a range names, for messages.
  [[nodiscard]] std::string describe(const Operand& range) const;
  /// What a token's operand names here, see BufferTable::translate().
  Result<Operand> translate(const Operand& named) const;
  /// Keeps the range's buffer from being freed until release(); stale if it is gone.
  Result<void> hold(const Operand& range);
  void release(std::uint32_t buffer);

  // For those who look for memory that nobody should have written.

  /// A buffer, and how often its contents were to change: as long as all of this is the same they
  /// must not.
  struct State {
    std::uint32_t region = 0, generation = 0, first_generation = 0, restores = 0;
    std::uint64_t offset = 0, bytes = 0;
    std::uint64_t writes = 0;  ///< commands that were to write it
    bool operator==(const State&) const = default;
  };
  /// All buffers that are in use and whose contents are there, ascending.
  [[nodiscard]] std::vector<std::pair<std::uint32_t, State>> states() const;

  // For the rehearsal of a run: which buffers its steps write.

  struct Written {
    std::uint32_t index;
    std::string description;  ///< for messages
  };
  /// Nothing counts as written.
  void forget_writes();
  /// From now on what commands write of the buffers that there are now counts. Those made later do
  /// not, until the next call.
  void know();
  /// The buffers of which something counts as written, as far as they are still in use.
  [[nodiscard]] std::vector<Written> writes() const;

 private:
  PortShared* shared_;
  std::vector<std::uint32_t> dropped_;  ///< to free, each once its last ticket is retired
};

}  // namespace troupe::rank_process
