#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <troupe/lib/tensor/blocks.hpp>

namespace troupe::tensor {

/// The inline bytes of a ContractBlockSparse. They must outlive it.
class BlockData {
 public:
  static constexpr std::size_t kTensors = ContractBlockSparse::kTensors;

  /// What the bytes of an operation that check() lets pass must be.
  static std::size_t bytes_of(const ContractBlockSparse& op) noexcept;

  BlockData(const ContractBlockSparse& op, std::span<const std::byte> data);

  /// The extent of a section of a mode.
  [[nodiscard]] std::int64_t extent(std::size_t mode, std::size_t section) const noexcept {
    return extents_[first_[mode] + section];
  }
  /// All extents, mode by mode, and where those of a mode begin.
  [[nodiscard]] std::span<const std::int64_t> extents() const noexcept { return extents_; }
  [[nodiscard]] std::size_t first(std::size_t mode) const noexcept { return first_[mode]; }
  /// The sections of a block, for each mode of its tensor.
  [[nodiscard]] std::span<const std::uint16_t> block(std::size_t tensor,
                                                     std::size_t block) const noexcept {
    return places_[tensor].subspan(block * ranks_[tensor], ranks_[tensor]);
  }
  /// Elements of a block; -1: too many.
  [[nodiscard]] std::int64_t volume(const ContractBlockSparse& op, std::size_t tensor,
                                    std::size_t block) const noexcept;
  /// The element that each block begins at.
  [[nodiscard]] std::vector<std::int64_t> beginnings(const ContractBlockSparse& op,
                                                     std::size_t tensor) const;

 private:
  std::array<std::size_t, kMaxModes> first_{};
  std::array<std::size_t, kTensors> ranks_{};
  std::span<const std::int64_t> extents_;
  std::array<std::span<const std::uint16_t>, kTensors> places_;
};

}  // namespace troupe::tensor
