#include "reduce.hpp"

#include <algorithm>

namespace troupe::torture {

/// Delta debugging (Zeller, Hildebrandt, IEEE TSE 28(2), 2002), complements only: leave out ever
/// smaller parts.
std::vector<bool> reduce(std::size_t size,
                         const std::function<bool(const std::vector<bool>&)>& fails) {
  std::vector<bool> left_out(size, false);
  for (auto part = (size + 1) / 2; part > 0; part = part == 1 ? 0 : (part + 1) / 2) {
    for (bool progress = true; progress;) {
      progress = false;
      for (std::size_t first = 0; first < size; first += part) {
        auto candidate = left_out;
        bool changes = false;
        for (auto i = first; i < std::min(size, first + part); ++i) {
          changes = changes || !candidate[i];
          candidate[i] = true;
        }
        if (!changes || !fails(candidate)) continue;
        left_out = std::move(candidate);
        progress = true;
      }
      progress = progress && part == 1;  // larger parts come again as smaller ones
    }
  }
  return left_out;
}

std::string to_ranges(const std::vector<bool>& left_out) {
  std::string text;
  for (std::size_t i = 0; i < left_out.size(); ++i) {
    if (!left_out[i]) continue;
    const auto first = i;
    while (i + 1 < left_out.size() && left_out[i + 1]) ++i;
    text += (text.empty() ? "" : ",") + std::to_string(first);
    if (i > first) text += "-" + std::to_string(i);
  }
  return text;
}

}  // namespace troupe::torture
