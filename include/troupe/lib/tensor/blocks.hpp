#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include <troupe/lib/tensor/types.hpp>

/// Tensors of which only some blocks are stored; the others are zero.
namespace troupe::tensor {

/// D = alpha A B + beta D, summed over the modes that D does not have: both A and B have these.
/// Each mode of D is in A or B. Each mode is cut into sections, in the same way in all tensors; one
/// section of each of a tensor's modes make a block. Of D only the stored blocks are computed.
///
/// The blocks of a tensor lie one behind another, each row-major without gaps. The inline bytes are
/// the extents of all sections (std::int64_t, mode by mode), and for each block of A, of B and of D
/// the numbers of its sections (std::uint16_t, mode by mode), filled up to a multiple of 8 bytes.
struct ContractBlockSparse {
  static constexpr std::string_view kName = "tensor.contract_block_sparse";
  static constexpr DTypes kDTypes = DTypes::of({DType::f32, DType::f64, DType::c64, DType::c128});
  static constexpr Traits kTraits{.repeatable = true, .remote = true, .blocking = true};
  static constexpr std::uint32_t kData = 32768;
  static constexpr std::size_t kA = 0, kB = 1, kD = 2, kTensors = 3;
  static constexpr std::int64_t kMostSections = 4096;  ///< of a mode
  template <class N>
  using PerTensor = std::array<N, kTensors>;

  OpDType dtype;
  std::int64_t modes = 0;  ///< of all tensors together
  PerMode sections{};      ///< how many, of each mode
  PerTensor<std::int64_t> blocks{}, elements{};
  PerTensor<std::int64_t> ranks{};                             ///< how many modes it has
  PerTensor<std::array<std::int32_t, kMaxModes>> its_modes{};  ///< by number, the last one fastest
  Scalar alpha, beta;
  Operand a, b, d;

  static constexpr std::array kOperands{
      read("alpha", &ContractBlockSparse::alpha), read("beta", &ContractBlockSparse::beta),
      read("a", &ContractBlockSparse::a), read("b", &ContractBlockSparse::b),
      update("d", &ContractBlockSparse::d)};
  Result<void> check() const;
  Result<void> check_parts(const Parts& parts) const;
  [[nodiscard]] Access access(const Operand& range, Access declared) const noexcept {
    return written(range) > 0 ? Access::write : declared;
  }
  /// All of D, unless it is added to.
  [[nodiscard]] std::uint64_t written(const Operand& range) const noexcept {
    return &range == &d && beta.is_zero(dtype)
               ? static_cast<std::uint64_t>(elements[kD]) * size_of(dtype)
               : 0;
  }
};

/// The extents of a tensor's sections, for each of its dimensions.
using Sections = std::vector<std::vector<std::int64_t>>;
/// Which blocks a tensor has: for each of them the number of its section, for each dimension.
using BlockPlaces = std::vector<std::vector<std::int64_t>>;
/// The elements of all blocks together; 0 where a block names no section.
std::int64_t block_elements(const Sections& sections, const BlockPlaces& blocks) noexcept;

/// Such a tensor in a call.
struct BlockTerm {
  Operand data{};
  DType dtype{};
  const Sections* sections = nullptr;
  const BlockPlaces* blocks = nullptr;
  Modes modes;
};
template <class T>
struct BlockTermOf : BlockTerm {};

/// A tensor whose blocks lie in a buffer, one behind another in the order of `blocks`, each
/// row-major without gaps; block_elements() says how many elements it needs.
template <class T>
struct BlockView {
  GpuRef<T> buffer;
  Sections sections;
  BlockPlaces blocks;

  /// The tensor with names for its modes, for one call. The view is to live until the call has been
  /// made.
  [[nodiscard]] BlockTermOf<T> operator()(const Modes& modes) const {
    return {{buffer.operand(), dtype_of<T>, &sections, &blocks, modes}};
  }
};

/// An operation with its inline bytes.
struct BlockProduct {
  ContractBlockSparse op;
  std::vector<std::byte> data;
};
/// Errors: invalid, with the name of the operation.
Result<BlockProduct> contraction(const BlockTerm& a, const BlockTerm& b, const BlockTerm& d);

}  // namespace troupe::tensor
