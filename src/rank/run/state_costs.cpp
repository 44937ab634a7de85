#include "rank/run/state_costs.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "rank/store/part_table.hpp"
#include "rank/store/state_folder.hpp"

namespace troupe::rank_process {

StateCosts measure_costs(const HostGroup& group, const Checkpoint& checkpoint) {
  StateCosts mine{.part = lay_out(checkpoint.saved_entries()).bytes};
  for (const auto& entry : checkpoint.saved_entries()) {
    if (entry.dtype) mine.buffers += entry.count * entry.element_bytes;
  }
  StateCosts costs{.ranks = group.size()};
  for (const auto& rank : group.gather(mine)) {
    costs.whole += rank.part;
    costs.part = std::max(costs.part, rank.part);
    costs.buffers = std::max(costs.buffers, rank.buffers);
  }
  return costs;
}

std::string describe(const StateCosts& costs, const SaveOptions& save, bool apart) {
  auto text = fmt::format(
      "the state takes {} on {} rank{}; its last two commits take {} more device memory on a rank",
      in_words(costs.whole), costs.ranks, costs.ranks == 1 ? "" : "s", in_words(2 * costs.buffers));
  if (apart) text += fmt::format(", {} of pinned host memory", in_words(costs.part));
  if (save.partner && costs.ranks > 1)
    text += fmt::format(", {} of host memory for copies",
                        in_words((save.every_copy ? 2 : 3) * costs.part));
  if (!save.directory.empty())
    text += fmt::format("; on disk at most {}", in_words(3 * costs.whole));
  if (!save.local.empty())
    text += fmt::format(", and {} of a rank's node",
                        in_words((save.partner && costs.ranks > 1 ? 6 : 3) * costs.part));
  return text;
}

}  // namespace troupe::rank_process
