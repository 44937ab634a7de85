#include "lib/tensor/blocks/cpu.hpp"

#include <complex>
#include <map>
#include <vector>

namespace troupe::tensor {
namespace {

constexpr std::size_t kA = ContractBlockSparse::kA, kB = ContractBlockSparse::kB,
                      kD = ContractBlockSparse::kD;
constexpr std::int32_t kNone = -1;
/// The section of each mode, or kNone.
using Place = std::array<std::int32_t, kMaxModes>;

std::size_t mode_of(const ContractBlockSparse& op, std::size_t tensor, std::size_t dimension) {
  return static_cast<std::size_t>(op.its_modes[tensor][dimension]);
}

/// Where each block of a tensor is.
std::vector<Place> places_of(const ContractBlockSparse& op, const BlockData& blocks,
                             std::size_t tensor) {
  std::vector<Place> all(static_cast<std::size_t>(op.blocks[tensor]));
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto sections = blocks.block(tensor, i);
    all[i].fill(kNone);
    for (std::size_t k = 0; k < sections.size(); ++k) all[i][mode_of(op, tensor, k)] = sections[k];
  }
  return all;
}

/// Brings the sections of a block of A and one of B together; false: they do not meet.
bool join(Place& both, const Place& other) {
  for (std::size_t i = 0; i < both.size(); ++i) {
    if (other[i] == kNone) continue;
    if (both[i] != kNone && both[i] != other[i]) return false;
    both[i] = other[i];
  }
  return true;
}

/// The modes of three blocks as one operation has them.
Loops<3> loops_of(const ContractBlockSparse& op, const BlockData& blocks, const Place& place) {
  Loops<3> loops;
  loops.count = op.modes;
  for (std::size_t i = 0; i < static_cast<std::size_t>(op.modes); ++i)
    loops.extents[i] = place[i] == kNone ? 1 : blocks.extent(i, static_cast<std::size_t>(place[i]));
  for (std::size_t tensor = 0; tensor < ContractBlockSparse::kTensors; ++tensor) {
    std::int64_t stride = 1;
    for (auto i = static_cast<std::size_t>(op.ranks[tensor]); i-- > 0;) {
      const auto mode = mode_of(op, tensor, i);
      loops.strides[tensor][mode] = stride;
      stride *= loops.extents[mode];
    }
  }
  return loops;
}

/// The extents of the modes that D has.
Extents of_result(const Loops<3>& loops) {
  Extents modes(loops);
  for (std::size_t i = 0; i < modes.count; ++i) {
    if (loops.strides[kD][i] == 0) modes.extents[i] = 1;
  }
  return modes;
}

template <class W>
Source<W> source_of(const W* tensor, std::int64_t block, const PerMode& strides, W factor) {
  return {reinterpret_cast<const std::byte*>(tensor + block), dtype_of<W>, strides, Unary::identity,
          factor};
}

}  // namespace

template <class W>
void contract_blocks(const ContractBlockSparse& op, const BlockData& blocks, const W* a, const W* b,
                     W* d) {
  const auto in_a = places_of(op, blocks, kA), in_b = places_of(op, blocks, kB),
             in_d = places_of(op, blocks, kD);
  const auto at_a = blocks.beginnings(op, kA), at_b = blocks.beginnings(op, kB),
             at_d = blocks.beginnings(op, kD);
  const auto alpha = op.alpha.as<W>(), beta = op.beta.as<W>();
  std::array<bool, kMaxModes> kept{};
  for (std::size_t i = 0; i < static_cast<std::size_t>(op.ranks[kD]); ++i)
    kept[mode_of(op, kD, i)] = true;

  const auto target_of = [&](std::int64_t block, const Loops<3>& loops) {
    return Target<W>{reinterpret_cast<std::byte*>(d + block), dtype_of<W>, loops.strides[kD]};
  };
  std::map<Place, std::size_t> results;
  for (std::size_t i = 0; i < in_d.size(); ++i) {
    results.emplace(in_d[i], i);
    if (beta == W(1)) continue;
    const auto loops = loops_of(op, blocks, in_d[i]);
    elementwise(of_result(loops), std::vector{source_of(d, at_d[i], loops.strides[kD], beta)}, {},
                target_of(at_d[i], loops));
  }
  for (std::size_t i = 0; i < in_a.size(); ++i) {
    for (std::size_t k = 0; k < in_b.size(); ++k) {
      auto place = in_a[i];
      if (!join(place, in_b[k])) continue;
      auto of_d = place;
      for (std::size_t mode = 0; mode < of_d.size(); ++mode) {
        if (!kept[mode]) of_d[mode] = kNone;
      }
      const auto found = results.find(of_d);
      if (found == results.end()) continue;
      const auto to = at_d[found->second];
      const auto loops = loops_of(op, blocks, place);
      const auto product = multiply(Extents(loops), source_of(a, at_a[i], loops.strides[kA], W(1)),
                                    source_of(b, at_b[k], loops.strides[kB], W(1)), kept);
      elementwise(of_result(loops),
                  std::vector{product.source(alpha), source_of(d, to, loops.strides[kD], W(1))},
                  {Binary::add, Binary::add}, target_of(to, loops));
    }
  }
}

#define TROUPE_TENSOR_BLOCKS(W)                                                                   \
  template void contract_blocks(const ContractBlockSparse&, const BlockData&, const W*, const W*, \
                                W*);
TROUPE_TENSOR_BLOCKS(float)
TROUPE_TENSOR_BLOCKS(double)
TROUPE_TENSOR_BLOCKS(std::complex<float>)
TROUPE_TENSOR_BLOCKS(std::complex<double>)
#undef TROUPE_TENSOR_BLOCKS

}  // namespace troupe::tensor
