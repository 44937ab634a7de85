#include "rank/net/links/parting.hpp"

namespace troupe::rank_process {

bool Parting::advance(Links& links) {
  under_way_ = true;
  for (;;) {
    const std::int64_t distance = std::int64_t{1} << round_;
    if (distance >= size_) break;
    if (!said_) {
      if (!links.delivered()) return false;
      links.send(static_cast<int>((rank_ + distance) % size_),
                 {.tag = kTag, .slot = round_, .sequence = number_}, std::vector<std::byte>());
      said_ = true;
    }
    const auto told = heard_.find({number_, round_});
    if (told == heard_.end()) return false;
    heard_.erase(told);
    ++round_;
    said_ = false;
  }
  if (!links.delivered()) return false;
  ++number_;
  round_ = 0;
  under_way_ = false;
  return true;
}

}  // namespace troupe::rank_process
