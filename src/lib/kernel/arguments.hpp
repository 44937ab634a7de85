#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include <troupe/lib/kernel.hpp>

#include "common/core/content_id.hpp"

namespace troupe::kernel {

/// Whether these are arguments of a kernel. Errors: invalid.
inline Result<void> check_arguments(const Inline& given, const Facts& facts) {
  if (std::equal(given.sizes().begin(), given.sizes().end(), facts.size.begin(),
                 facts.size.begin() + facts.parameters))
    return {};
  return Error{Errc::invalid, 0,
               "kernel.launch: " + std::string(given.name()) + " takes other arguments"};
}

/// A module as device hosts know it: two of one image have variables of their own.
struct ModuleKey {
  ContentId image;
  std::uint64_t instance = 0;
  friend bool operator==(const ModuleKey&, const ModuleKey&) = default;
};
/// The key of the module that an operation names.
template <class Op>
ModuleKey key_of(const Op& op) {
  return {{op.image_id[0], op.image_id[1]}, op.instance};
}

/// Encodes a module as its key, then its image, so that a later device host can load it ahead of
/// its first use. Empty if the image is too large for that.
inline std::vector<std::byte> plan_of(const ModuleKey& key, std::span<const std::byte> image) {
  constexpr std::size_t kMaxBytes = std::size_t{4} << 20;
  std::vector<std::byte> plan;
  if (image.size() > kMaxBytes) return plan;
  plan.resize(sizeof key + image.size());
  std::memcpy(plan.data(), &key, sizeof key);
  std::memcpy(plan.data() + sizeof key, image.data(), image.size());
  return plan;
}
/// Calls use(key, image) with what plan_of() has told, if it is whole.
template <class Use>
void with_plan(std::span<const std::byte> plan, Use&& use) {
  ModuleKey key;
  if (plan.size() <= sizeof key) return;
  std::memcpy(&key, plan.data(), sizeof key);
  const auto image = plan.subspan(sizeof key);
  if (content_id(image) == key.image) use(key, image);
}

}  // namespace troupe::kernel
