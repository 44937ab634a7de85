#include "common/wire/collective_call.hpp"

#include <algorithm>
#include <map>

#include "common/wire/record.hpp"

namespace troupe::wire {

std::string to_string(const CollectiveCall& call) {
  std::string text(operation_name(call.opcode));
  if (call.dtype < kDTypeCount) {
    text += " of " + std::to_string(call.count) + " " +
            std::string(troupe::to_string(static_cast<DType>(call.dtype)));
  }
  if (call.op < collective::kReduceOpCount)
    text += ", " + std::string(collective::to_string(static_cast<ReduceOp>(call.op)));
  if (call.root != CollectiveCall::kNone) text += ", root " + std::to_string(call.root);
  if (call.refused != 0) text += ", refused there";
  return text;
}

std::string describe_difference(std::vector<std::pair<int, std::string>> calls) {
  std::sort(calls.begin(), calls.end());
  std::map<std::string, std::vector<int>> ranks;
  for (auto& [rank, text] : calls) ranks[text].push_back(rank);
  std::string difference = "the ranks call different collectives";
  char separator = ':';
  for (const auto& [text, callers] : ranks) {
    difference += std::exchange(separator, ';');
    difference += callers.size() > 1 ? " ranks " : " rank ";
    for (std::size_t i = 0; i < callers.size(); ++i)
      difference += (i == 0 ? "" : ", ") + std::to_string(callers[i]);
    difference += ": " + text;
  }
  return difference;
}

}  // namespace troupe::wire
