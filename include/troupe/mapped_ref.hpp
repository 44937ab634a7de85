#pragma once

#include <cstdint>
#include <memory>
#include <source_location>
#include <utility>

#include <troupe/dtype.hpp>
#include <troupe/gpu_ref.hpp>
#include <troupe/lib/operation.hpp>

namespace troupe {

namespace detail {

/// A buffer of some rank that this rank's device reaches, and that its owner keeps, while this
/// lives.
class Mapping {
 public:
  virtual ~Mapping() = default;
  /// The epoch that it belongs to.
  [[nodiscard]] virtual std::uint32_t epoch() const noexcept = 0;
  /// False once the program has turned to another epoch.
  [[nodiscard]] virtual bool valid() const noexcept = 0;
};

/// A range of it, as it stands in this rank's commands.
struct MappedRange {
  std::shared_ptr<Mapping> mapping;
  Operand where;
};

}  // namespace detail

/// A range of elements in the memory of another rank of this node, or of this rank, which commands
/// of this rank's device read where it is: what World::map and Collectives::map_all give. A value,
/// sharing a mapping; the owner keeps the buffer, and the device host its mapping, until the last
/// copy is gone and the commands that were submitted until then have ended.
///
/// It can only be read: nobody but its owner ever writes a rank's memory. Its contents are those of
/// the moment at which a command reads them, so the ranks have to order the owner's writes and the
/// others' reads: see Collectives::device_barrier. It belongs to the epoch in which it was made:
/// later uses fail with Errc::stale, and the program maps again. Any thread.
template <Element T>
class MappedRef {
 public:
  using value_type = T;

  MappedRef() = default;

  [[nodiscard]] std::int64_t length() const noexcept {
    return static_cast<std::int64_t>(range_.where.bytes / sizeof(T));
  }
  [[nodiscard]] explicit operator bool() const noexcept { return range_.mapping != nullptr; }
  /// False once the program has turned to another epoch.
  [[nodiscard]] bool valid() const noexcept { return range_.mapping && range_.mapping->valid(); }

  /// `count` elements from `first` on. Throws Exception (invalid) if they do not lie within this
  /// range.
  [[nodiscard]] MappedRef slice(
      std::int64_t first, std::int64_t count,
      const std::source_location& where = std::source_location::current()) const {
    detail::require_slice("slice", first, count, length(), where);
    MappedRef part = *this;
    part.range_.where.offset += static_cast<std::uint64_t>(first) * sizeof(T);
    part.range_.where.bytes = static_cast<std::uint64_t>(count) * sizeof(T);
    return part;
  }

  // For troupe itself.

  explicit MappedRef(detail::MappedRange range) : range_(std::move(range)) {}
  [[nodiscard]] const detail::MappedRange& range() const noexcept { return range_; }

 private:
  detail::MappedRange range_;
};

/// A range that Collectives::device_barrier names: of this rank's memory, or mapped.
class BarrierRange {
 public:
  template <Element T>
  BarrierRange(const GpuRef<T>& own) : operand_{own.operand(), 0, Access::read} {}
  template <Element T>
  BarrierRange(const MappedRef<T>& mapped)
      // Reads do not wait for one another: reads of others' memory are behind what writes it.
      : operand_{mapped.range().where, 0,
                 is_foreign(mapped.range().where.region) ? Access::write : Access::read},
        mapping_(mapped.range().mapping),
        is_mapped_(true) {}

  // For troupe itself.

  [[nodiscard]] const TailOperand& operand() const noexcept { return operand_; }
  [[nodiscard]] const std::shared_ptr<detail::Mapping>& mapping() const noexcept {
    return mapping_;
  }
  /// False if it is of a mapping that is no more.
  [[nodiscard]] bool valid() const noexcept {
    return !is_mapped_ || (mapping_ && mapping_->valid());
  }

 private:
  TailOperand operand_;
  std::shared_ptr<detail::Mapping> mapping_;  ///< of a mapped range
  bool is_mapped_ = false;
};

}  // namespace troupe
