#include "common/wire/library_stamps.hpp"

#include <algorithm>
#include <cstring>

#include <troupe/lib/operation_info.hpp>

namespace troupe::wire {

Result<LibraryStamps> library_stamps() {
  LibraryStamps stamps{};
  const auto libraries = library_fingerprints();
  if (libraries.size() > stamps.size()) {
    return Error{Errc::invalid, 0,
                 std::to_string(libraries.size()) + " libraries of operations, more than " +
                     std::to_string(stamps.size())};
  }
  for (std::size_t i = 0; i < libraries.size(); ++i) {
    const auto& [name, fingerprint] = libraries[i];
    if (name.size() >= stamps[i].name.size()) {
      return Error{Errc::invalid, 0,
                   "the library's name " + std::string(name) + " is longer than " +
                       std::to_string(stamps[i].name.size() - 1) + " characters"};
    }
    std::copy(name.begin(), name.end(), stamps[i].name.begin());
    stamps[i].fingerprint = fingerprint;
    if (const auto lane = known_library_lane(name))
      stamps[i].lane = static_cast<std::uint32_t>(*lane);
  }
  return stamps;
}

Result<void> compare_stamps(const LibraryStamps& stamps, const std::string& self,
                            const std::string& other) {
  const auto libraries = library_fingerprints();
  for (const auto& stamp : stamps) {
    const auto name = stamp.library();
    if (name.empty()) break;
    const auto own = std::find_if(libraries.begin(), libraries.end(),
                                  [&](const auto& library) { return library.library == name; });
    if (own == libraries.end() || own->value == stamp.fingerprint) continue;
    return Error{Errc::invalid, 0,
                 self + " and " + other + " know different operations of library " +
                     std::string(name) +
                     ": they are of different versions of troupe, or of the program"};
  }
  return {};
}

}  // namespace troupe::wire
