#include "common/wire/collective_call.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace troupe::wire {

CollectiveCall call_of(const OperationInfo& info, const std::byte* op) {
  return {.opcode = info.opcode, .agreement = info.agreement(op)};
}

std::string to_string(const CollectiveCall& call) {
  std::string text(operation_name(call.opcode));
  const auto* const info = find_operation(call.opcode).info;
  if (info != nullptr && info->describe != nullptr) text += " of " + info->describe(call.agreement);
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
