#include "rank/world/collective_digests.hpp"

#include <algorithm>

namespace troupe::rank_process {

void CollectiveDigests::begin(int pass) {
  auto& digests = digests_[pass];
  if (digests.length() == 0)
    digests = device_.alloc<std::uint64_t>(kMost, "digests of collectives");
  if (!digests.valid()) digests.renew();
  counts_[pass] = 0;
  pass_ = pass;
  noting_ = true;
}

Future<void> CollectiveDigests::submit(const detail::CommandView& command) {
  if (noting_ && command.info->traits.collective) {
    for (const auto& use : command.uses())
      if (use.access != Access::write) note(*use.range);
    for (const auto& operand : command.tail)
      if (operand.access != Access::write) note(operand.range);
  }
  return to_->submit(command);
}

void CollectiveDigests::note(const Operand& range) {
  if ((range.region & kPinnedRegion) != 0) return;
  const auto pass = pass_.load();
  const auto place = counts_[pass].fetch_add(1);
  if (place >= kMost) return;
  const auto slot = digests_[pass].slice(static_cast<std::int64_t>(place), 1);
  (void)detail::submit(device_.submitter(), memory::Digest{DType::u8, range, slot.operand()});
}

std::uint64_t CollectiveDigests::first_difference() {
  noting_ = false;
  const auto count = [&](int pass) {
    return static_cast<std::int64_t>(std::min(counts_[pass].load(), kMost));
  };
  const auto both = std::min(count(0), count(1));
  if (both > 0) {
    const auto first = device_.download(digests_[0].slice(0, both)),
               second = device_.download(digests_[1].slice(0, both));
    const auto at = std::mismatch(first.begin(), first.end(), second.begin()).first;
    if (at != first.end()) return static_cast<std::uint64_t>(at - first.begin());
  }
  return count(0) != count(1) ? static_cast<std::uint64_t>(both) : kNone;
}

}  // namespace troupe::rank_process
