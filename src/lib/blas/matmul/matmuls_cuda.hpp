#pragma once

#include <cublasLt.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <list>
#include <map>
#include <utility>

#include "device_host/engine/cuda/library.hpp"

namespace troupe::host::cuda {

/// What cuBLASLt has been asked for, with the algorithm that it has chosen: to ask takes 0.03 to
/// 0.3 ms. The plans used last, up to kMost. One thread.
class Matmuls {
 public:
  /// Types, extents and whatever else the choice depends on.
  using Key = std::array<std::int64_t, 18>;
  template <class T, cublasStatus_t (*kDestroy)(T)>
  struct Traits {
    using Type = T;
    static constexpr Type invalid() { return nullptr; }
    static void destroy(Type handle) { (void)kDestroy(handle); }
  };
  using Description = Handle<Traits<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>>;
  using Layout = Handle<Traits<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>>;
  using Preference = Handle<Traits<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>>;
  struct Plan {
    Description description;
    Layout a, b, c, d;
    cublasLtMatmulAlgo_t algorithm{};
  };

  /// nullptr: there is none.
  Plan* find(const Key& key) {
    const auto found = places_.find(key);
    if (found == places_.end()) return nullptr;
    plans_.splice(plans_.begin(), plans_, found->second);
    return &plans_.front().second;
  }
  Plan& add(const Key& key, Plan plan) {
    plans_.emplace_front(key, std::move(plan));
    places_[key] = plans_.begin();
    if (plans_.size() > kMost) {
      places_.erase(plans_.back().first);
      plans_.pop_back();
    }
    return plans_.front().second;
  }

  /// An algorithm that a measurement has found, and when.
  struct Choice {
    cublasLtMatmulAlgo_t algorithm{};
    std::int64_t when = 0;
  };
  /// nullptr: nothing was measured.
  const Choice* choice(const Key& key) const {
    const auto found = choices_.find(key);
    return found == choices_.end() ? nullptr : &found->second;
  }
  /// The newest one counts, from the next find() on. Beyond kMost the oldest one goes.
  void choose(const Key& key, const Choice& choice) {
    auto& mine = choices_[key];
    if (mine.when >= choice.when) return;
    mine = choice;
    if (const auto place = places_.find(key); place != places_.end()) {
      plans_.erase(place->second);
      places_.erase(place);
    }
    if (choices_.size() <= kMost) return;
    choices_.erase(std::min_element(
        choices_.begin(), choices_.end(),
        [](const auto& one, const auto& other) { return one.second.when < other.second.when; }));
  }

 private:
  static constexpr std::size_t kMost = 256;
  using List = std::list<std::pair<Key, Plan>>;
  List plans_;  ///< the last used first
  std::map<Key, List::iterator> places_;
  std::map<Key, Choice> choices_;
};

}  // namespace troupe::host::cuda
