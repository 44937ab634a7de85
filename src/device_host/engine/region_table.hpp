#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <troupe/lib/operation.hpp>

namespace troupe::host {

/// Something for each region, found in one step. The two upper bits of a region's id say of which
/// kind it is; ids of each kind begin at 0 and are dense.
template <class T>
class RegionTable {
 public:
  /// nullptr: nothing was ever put there.
  [[nodiscard]] const T* find(std::uint32_t region) const noexcept {
    const auto& list = lists_[region >> kShift];
    const auto index = index_of(region);
    return index < list.size() ? &list[index] : nullptr;
  }
  /// Makes room for it.
  T& operator[](std::uint32_t region) {
    auto& list = lists_[region >> kShift];
    const auto index = index_of(region);
    if (index >= list.size()) list.resize(index + 1);
    return list[index];
  }
  /// `visit(region, T&)`, those that were never put anything to included.
  template <class Visit>
  void for_each(Visit&& visit) {
    visit_all(*this, visit);
  }
  template <class Visit>
  void for_each(Visit&& visit) const {
    visit_all(*this, visit);
  }
  void clear() noexcept {
    for (auto& list : lists_) list.clear();
  }

 private:
  static constexpr std::uint32_t kShift = 30, kKinds = 4;
  static_assert(kPinnedRegion == 2u << kShift && kApartRegion == 1u << kShift);
  static std::size_t index_of(std::uint32_t region) noexcept {
    return region & ~(kPinnedRegion | kApartRegion);
  }
  template <class Table, class Visit>
  static void visit_all(Table& table, Visit& visit) {
    for (std::uint32_t kind = 0; kind < kKinds; ++kind) {
      auto& list = table.lists_[kind];
      for (std::uint32_t i = 0; i < list.size(); ++i) visit(i | kind << kShift, list[i]);
    }
  }

  std::array<std::vector<T>, kKinds> lists_;
};

}  // namespace troupe::host
