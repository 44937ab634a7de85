#include "lib/tensor/blocks/view.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include <troupe/lib/tensor.hpp>

#include "common/wire/checker.hpp"

namespace troupe::tensor {
namespace {

constexpr std::array<const char*, BlockData::kTensors> kNames{"a", "b", "d"};

Error not_blocks(const std::string& what) {
  return {Errc::invalid, 0, std::string(ContractBlockSparse::kName) + ": " + what};
}
std::size_t rounded(std::size_t bytes) {
  return (bytes + 7) / 8 * 8;
}
std::size_t size(std::int64_t number) {
  return static_cast<std::size_t>(number);
}

/// Whether two blocks of a tensor are in one place.
bool any_twice(const BlockData& data, std::size_t tensor, std::size_t blocks) {
  std::vector<std::string_view> all(blocks);
  for (std::size_t i = 0; i < blocks; ++i) {
    const auto places = data.block(tensor, i);
    all[i] = {reinterpret_cast<const char*>(places.data()), places.size_bytes()};
  }
  std::sort(all.begin(), all.end());
  return std::adjacent_find(all.begin(), all.end()) != all.end();
}

/// Brings the modes of the three tensors together.
class Cuts {
 public:
  /// The modes of a tensor, which has to be cut as those before it.
  Result<void> add(std::size_t tensor, const BlockTerm& term, ContractBlockSparse& op) {
    const std::string name = kNames[tensor];
    const auto rank = term.modes.count;
    if (rank != term.sections->size() || rank > kMaxModes)
      return not_blocks(name + " has " + std::to_string(term.sections->size()) +
                        " dimensions and " + std::to_string(rank) + " modes, of 16 at most");
    for (std::size_t i = 0; i < rank; ++i) {
      const auto mode = term.modes.name[i];
      const auto& cut = (*term.sections)[i];
      const auto known = std::find(names_.begin(), names_.end(), mode);
      const auto at = known - names_.begin();
      if (known == names_.end()) {
        if (names_.size() == kMaxModes) return not_blocks("more than 16 modes");
        names_.push_back(mode), cuts_.push_back(&cut);
      } else if (*cuts_[size(at)] != cut) {
        return not_blocks(name + " has a mode with other sections than a tensor before it");
      }
      op.its_modes[tensor][i] = static_cast<std::int32_t>(at);
    }
    for (const auto& block : *term.blocks) {
      if (block.size() != rank)
        return not_blocks(name + " has a block with " + std::to_string(block.size()) +
                          " places, not " + std::to_string(rank));
      for (const auto place : block) {
        if (place < 0 || place >= ContractBlockSparse::kMostSections)
          return not_blocks(name + " has a block outside of its sections");
      }
    }
    op.ranks[tensor] = static_cast<std::int64_t>(rank);
    op.blocks[tensor] = std::ssize(*term.blocks);
    op.elements[tensor] = block_elements(*term.sections, *term.blocks);
    return {};
  }
  [[nodiscard]] const std::vector<const std::vector<std::int64_t>*>& all() const { return cuts_; }

 private:
  std::vector<std::int32_t> names_;
  std::vector<const std::vector<std::int64_t>*> cuts_;
};

}  // namespace

std::int64_t block_elements(const Sections& sections, const BlockPlaces& blocks) noexcept {
  std::int64_t all = 0;
  for (const auto& block : blocks) {
    std::int64_t volume = 1;
    if (block.size() != sections.size()) return 0;
    for (std::size_t i = 0; i < block.size(); ++i) {
      if (block[i] < 0 || block[i] >= std::ssize(sections[i]) ||
          __builtin_mul_overflow(volume, sections[i][size(block[i])], &volume))
        return 0;
    }
    if (__builtin_add_overflow(all, volume, &all)) return 0;
  }
  return all;
}

std::size_t BlockData::bytes_of(const ContractBlockSparse& op) noexcept {
  std::size_t sections = 0, places = 0;
  for (std::size_t i = 0; i < size(op.modes); ++i) sections += size(op.sections[i]);
  for (std::size_t i = 0; i < kTensors; ++i) places += size(op.blocks[i]) * size(op.ranks[i]);
  return sections * sizeof(std::int64_t) + rounded(places * sizeof(std::uint16_t));
}

BlockData::BlockData(const ContractBlockSparse& op, std::span<const std::byte> data) {
  std::size_t sections = 0;
  for (std::size_t i = 0; i < size(op.modes); ++i) {
    first_[i] = sections;
    sections += size(op.sections[i]);
  }
  extents_ = {reinterpret_cast<const std::int64_t*>(data.data()), sections};
  const auto* place = reinterpret_cast<const std::uint16_t*>(extents_.data() + sections);
  for (std::size_t i = 0; i < kTensors; ++i) {
    ranks_[i] = size(op.ranks[i]);
    places_[i] = {place, size(op.blocks[i]) * ranks_[i]};
    place += places_[i].size();
  }
}

std::int64_t BlockData::volume(const ContractBlockSparse& op, std::size_t tensor,
                               std::size_t block) const noexcept {
  std::int64_t elements = 1;
  const auto places = this->block(tensor, block);
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (__builtin_mul_overflow(elements, extent(size(op.its_modes[tensor][i]), places[i]),
                               &elements))
      return -1;
  }
  return elements;
}

std::vector<std::int64_t> BlockData::beginnings(const ContractBlockSparse& op,
                                                std::size_t tensor) const {
  std::vector<std::int64_t> all;
  std::int64_t next = 0;
  for (std::size_t i = 0; i < size(op.blocks[tensor]); ++i) {
    all.push_back(next);
    next += volume(op, tensor, i);
  }
  return all;
}

Result<void> ContractBlockSparse::check() const {
  auto checks = wire::checker(*this);
  checks.require(modes >= 0 && size(modes) <= kMaxModes, "more than 16 modes");
  for (std::size_t i = 0; i < kMaxModes && checks.ok(); ++i) {
    const bool there = i < size(modes);
    checks.require(there ? sections[i] >= 1 && sections[i] <= kMostSections : sections[i] == 0,
                   "a mode has 1 to 4096 sections");
  }
  std::array<std::array<bool, kTensors>, kMaxModes> has{};
  for (std::size_t tensor = 0; tensor < kTensors && checks.ok(); ++tensor) {
    checks.require(ranks[tensor] >= 0 && ranks[tensor] <= modes, "a tensor has too many modes")
        .require(blocks[tensor] >= 1 && blocks[tensor] <= kData,
                 "a tensor has too many blocks or none");
    for (std::size_t i = 0; i < kMaxModes && checks.ok(); ++i) {
      const auto mode = its_modes[tensor][i];
      const bool there = i < size(ranks[tensor]);
      checks.require(there ? mode >= 0 && mode < modes : mode == 0, "a mode that there is not");
      if (!checks.ok() || !there) continue;
      checks.require(!has[size(mode)][tensor], "a tensor has a mode twice");
      has[size(mode)][tensor] = true;
    }
  }
  for (std::size_t i = 0; checks.ok() && i < size(modes); ++i) {
    const auto [in_a, in_b, in_d] = has[i];
    checks.require(in_a || in_b, "a mode of d is in neither a nor b")
        .require(in_d || (in_a && in_b), "a mode that d does not have is not in both a and b");
  }
  checks.require(!alpha.device.present() && !beta.device.present(),
                 "a factor is an element of device memory: the host must know it");
  if (!checks.ok()) return checks.result();
  checks.holds("a", a, elements[kA], size_of(dtype))
      .holds("b", b, elements[kB], size_of(dtype))
      .holds("d", d, elements[kD], size_of(dtype));
  return checks.result();
}

Result<void> ContractBlockSparse::check_parts(const Parts& parts) const {
  auto checks = wire::checker(*this);
  checks.require(parts.tail.empty(), "it has no further operands")
      .require(parts.data.size() == BlockData::bytes_of(*this),
               "the inline bytes are not those of its sections and blocks");
  if (!checks.ok()) return checks.result();
  const BlockData data(*this, parts.data);
  for (const auto extent : data.extents())
    checks.require(extent >= 1 && extent <= wire::Checker::kMaxCount,
                   "the extent of a section is not positive, or too large");
  for (std::size_t tensor = 0; tensor < kTensors; ++tensor) {
    std::int64_t all = 0;
    for (std::size_t i = 0; i < size(blocks[tensor]) && checks.ok(); ++i) {
      const auto places = data.block(tensor, i);
      for (std::size_t k = 0; k < places.size(); ++k)
        checks.require(places[k] < sections[size(its_modes[tensor][k])],
                       "a block is outside of its sections");
      if (!checks.ok()) break;
      const auto volume = data.volume(*this, tensor, i);
      checks.require(volume >= 0 && volume <= wire::Checker::kMaxCount - all, "it is too large");
      all += checks.ok() ? volume : 0;
    }
    if (!checks.ok()) break;
    checks.require(all == elements[tensor], "its blocks have another number of elements")
        .require(!any_twice(data, tensor, size(blocks[tensor])), "a block stands twice");
  }
  return checks.result();
}

Result<BlockProduct> contraction(const BlockTerm& a, const BlockTerm& b, const BlockTerm& d) {
  BlockProduct product;
  auto& op = product.op;
  op.dtype = d.dtype;
  Cuts cuts;
  const std::array<const BlockTerm*, BlockData::kTensors> terms{&a, &b, &d};
  for (std::size_t i = 0; i < terms.size(); ++i) {
    if (auto added = cuts.add(i, *terms[i], op); !added.ok()) return added.error();
  }
  std::vector<std::int64_t> extents;
  for (const auto* const cut : cuts.all()) {
    op.sections[size(op.modes++)] = std::ssize(*cut);
    extents.insert(extents.end(), cut->begin(), cut->end());
  }
  std::vector<std::uint16_t> places;
  for (const auto* const term : terms) {
    for (const auto& block : *term->blocks) {
      for (const auto place : block) places.push_back(static_cast<std::uint16_t>(place));
    }
  }
  product.data.resize(BlockData::bytes_of(op));
  const auto head = extents.size() * sizeof(std::int64_t);
  if (!extents.empty()) std::memcpy(product.data.data(), extents.data(), head);
  if (!places.empty())
    std::memcpy(product.data.data() + head, places.data(), places.size() * sizeof places[0]);
  op.a = a.data, op.b = b.data, op.d = d.data;
  return product;
}

}  // namespace troupe::tensor
