#include "rank/run/corruptions.hpp"

#include <unistd.h>

#include <utility>

#include "common/core/log.hpp"

namespace troupe {

std::string_view to_string(Corruption::Found found) noexcept {
  switch (found) {
    case Corruption::Found::verified: return "verified";
    case Corruption::Found::replicated: return "replicated";
    case Corruption::Found::constant: break;
  }
  return "constant";
}

std::string in_words(const Corruption& corruption) {
  const auto& c = corruption;
  std::string text =
      c.rank < 0 ? std::string("one of several ranks") : fmt::format("rank {}", c.rank);
  if (c.rank >= 0) text += fmt::format(" ({}host {})", c.gpu.empty() ? "" : c.gpu + ", ", c.host);
  switch (c.found) {
    case Corruption::Found::verified: text += " computed wrong numbers in"; break;
    case Corruption::Found::replicated:
      text += " has an entry that differs from the other ranks' after";
      break;
    case Corruption::Found::constant: text += " has a constant that has changed in"; break;
  }
  text += fmt::format(" steps {} to {}", c.first_step, c.last_step);
  text += c.persistent ? ", again and again" : ", once";
  text += fmt::format(": {} {}", c.found == Corruption::Found::constant ? "constant" : "entry",
                      c.entry);
  if (c.count > 0)
    text += fmt::format(", element {}{}", c.element,
                        c.count > 1 ? fmt::format(" and {} more", c.count - 1) : "");
  if (!c.right.empty()) return text + fmt::format(", was {} instead of {}", c.wrong, c.right);
  return c.wrong.empty() ? text : text + fmt::format(", was {} at first", c.wrong);
}

namespace rank_process {

Place place_of(WorldCore& core) {
  Place place;
  core.device().info().uuid.copy(place.gpu, sizeof place.gpu - 1);
  (void)::gethostname(place.host, sizeof place.host - 1);
  return place;
}

void tell_corruption(WorldCore& core, Corruption found) {
  if (core.members().rank() == 0) log::warn("world", "{}", in_words(found));
  core.status().corruptions().add(std::move(found));
}

}  // namespace rank_process
}  // namespace troupe
