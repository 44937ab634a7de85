#include "rank/run/replicas.hpp"

#include <algorithm>
#include <array>

#include "rank/run/corruptions.hpp"

namespace troupe::rank_process {
namespace {

constexpr std::size_t kAtOnce = 32;  ///< entries whose digests the ranks exchange at once

/// Where `digests` has the one that differs from more than half; nullopt: there is no such one, or
/// there are several.
std::optional<std::size_t> odd_one(const std::vector<std::uint64_t>& digests) {
  for (const auto digest : digests) {
    const auto alike = std::count(digests.begin(), digests.end(), digest);
    if (2 * alike <= std::ssize(digests)) continue;
    if (alike + 1 < std::ssize(digests)) return std::nullopt;
    const auto odd = std::find_if(digests.begin(), digests.end(),
                                  [&](const auto other) { return other != digest; });
    return static_cast<std::size_t>(odd - digests.begin());
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::size_t> Replicas::entries() const {
  const auto& all = checkpoint_->saved_entries();
  std::vector<std::size_t> alike;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].dtype && checkpoint_->look(i).replicated) alike.push_back(i);
  return alike;
}

bool Replicas::any() const {
  return core_->members().size() > 1 && !entries().empty();
}

std::optional<Corruption> Replicas::odd() {
  const auto alike = entries();
  const Device device(core_->shared_device());
  const auto count = static_cast<std::int64_t>(alike.size());
  if (digests_.length() < count) digests_ = device.alloc<std::uint64_t>(count, "digests");
  if (!digests_.valid()) digests_.renew();
  for (std::size_t i = 0; i < alike.size(); ++i) {
    const auto slot = digests_.slice(static_cast<std::int64_t>(i), 1);
    (void)detail::submit(device.submitter(),
                         memory::Digest{DType::u8, checkpoint_->range(alike[i]), slot.operand()});
  }
  const auto mine = device.download(digests_.slice(0, count));
  for (std::size_t from = 0; from < mine.size(); from += kAtOnce) {
    std::array<std::uint64_t, kAtOnce> some{};
    const auto these = std::min(kAtOnce, mine.size() - from);
    std::copy_n(mine.begin() + static_cast<std::ptrdiff_t>(from), these, some.begin());
    const auto all = exchange_->gather(some);
    for (std::size_t i = 0; i < these; ++i) {
      std::vector<std::uint64_t> digests;
      for (const auto& rank : all) digests.push_back(rank[i]);
      if (std::count(digests.begin(), digests.end(), digests.front()) == std::ssize(digests))
        continue;
      Corruption found{.found = Corruption::Found::replicated,
                       .entry = checkpoint_->saved_entries()[alike[from + i]].name};
      const auto places = exchange_->gather(place_of(*core_));
      if (const auto odd = odd_one(digests)) {
        found.rank = core_->members().ranks()[*odd];
        found.gpu = places[*odd].gpu;
        found.host = places[*odd].host;
      }
      return found;
    }
  }
  return std::nullopt;
}

}  // namespace troupe::rank_process
