#include "common/wire/collective_call.hpp"

#include <algorithm>
#include <map>

#include <troupe/lib/collective.hpp>

namespace troupe::wire {

CollectiveCall call_of(const OperationInfo& info, const std::byte* op) {
  return {.opcode = info.opcode, .agreement = info.agreement(op)};
}

std::string to_string(const CollectiveCall& call) {
  const auto& [dtype, reduction, root, count] = call.agreement;
  std::string text(operation_name(call.opcode));
  if (dtype < kDTypeCount) {
    text += " of " + std::to_string(count) + " " +
            std::string(troupe::to_string(static_cast<DType>(dtype)));
  }
  if (reduction < collective::kReduceOpCount)
    text += ", " + std::string(collective::to_string(static_cast<ReduceOp>(reduction)));
  if (root != Agreement::kNone) text += ", root " + std::to_string(root);
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
