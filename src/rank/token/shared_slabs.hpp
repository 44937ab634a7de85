#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace troupe::rank_process {

/// The slabs of this rank that others may map, by region. A region is used again for another slab
/// once its slab has been dropped, a serial never: an answer about a region counts only if no slab
/// was dropped since the question.
class SharedSlabs {
 public:
  struct Id {
    std::uint64_t serial = 0;  ///< 0: none
    std::uint64_t bytes = 0;
  };

  [[nodiscard]] std::optional<Id> find(std::uint32_t region) const {
    const auto it = known_.find(region);
    return it == known_.end() ? std::nullopt : std::optional(it->second);
  }
  /// When a question is asked; for add().
  [[nodiscard]] std::uint64_t now() const noexcept { return drops_; }
  /// False: the answer is too old, and has to be asked for again.
  [[nodiscard]] bool add(std::uint32_t region, const Id& id, std::uint64_t asked) {
    if (asked != drops_) return false;
    known_[region] = id;
    return true;
  }
  /// The region's slab is no more; what it was known as.
  std::optional<Id> drop(std::uint32_t region) {
    ++drops_;
    const auto known = find(region);
    known_.erase(region);
    return known;
  }

 private:
  std::map<std::uint32_t, Id> known_;
  std::uint64_t drops_ = 0;
};

}  // namespace troupe::rank_process
