#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include <troupe/lib/kernel.hpp>

namespace troupe::kernel {

/// Whether these are arguments of a kernel. Errors: invalid.
inline Result<void> check_arguments(const Inline& given, const Facts& facts) {
  if (std::equal(given.sizes().begin(), given.sizes().end(), facts.size.begin(),
                 facts.size.begin() + facts.parameters))
    return {};
  return Error{Errc::invalid, 0,
               "kernel.launch: " + std::string(given.name()) + " takes other arguments"};
}

/// What a device host tells of an image, so that a later one has it loaded: its id, then its bytes.
/// Empty for one that is too large for that.
inline std::vector<std::byte> plan_of(const std::uint64_t (&id)[2],
                                      std::span<const std::byte> image) {
  constexpr std::size_t kMaxBytes = std::size_t{4} << 20;
  std::vector<std::byte> plan;
  if (image.size() > kMaxBytes) return plan;
  plan.resize(sizeof id + image.size());
  std::memcpy(plan.data(), id, sizeof id);
  std::memcpy(plan.data() + sizeof id, image.data(), image.size());
  return plan;
}

}  // namespace troupe::kernel
