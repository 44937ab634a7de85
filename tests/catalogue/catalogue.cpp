#include "catalogue/catalogue.hpp"

#include <algorithm>
#include <vector>

namespace troupe::catalogue {
namespace {

using Part = std::pair<std::string_view, void (*)(Catalogue&)>;
/// By library. Those of one library are in the order in which the program is linked, which all
/// processes of a job share.
std::vector<Part>& parts() {
  static std::vector<Part> all;
  return all;
}

}  // namespace

Subject::Subject(std::string_view library, void (*add)(Catalogue&)) {
  parts().emplace_back(library, add);
}

const Catalogue& Catalogue::all() {
  static const Catalogue catalogue = [] {
    Catalogue made;
    for (const auto& [library, add] : parts()) {
      made.library_ = library;
      add(made);
    }
    return made;
  }();
  return catalogue;
}

void Catalogue::add(const CallName& call, DType dtype, Make make) {
  const auto same = [&](const CallInfo& other) {
    return other.library == library_ && other.name == call.name && other.missing == call.missing;
  };
  auto found = std::find_if(calls_.begin(), calls_.end(), same);
  if (found == calls_.end()) found = calls_.insert(calls_.end(), {call, library_, DTypes{}});
  found->dtypes.bits |= DTypes::of({dtype}).bits;
  check(makes_.try_emplace({&*found, dtype}, std::move(make)).second,
        "a call of the catalogue is added twice");
}

const Catalogue::Make& Catalogue::of(const CallInfo& call, DType dtype) const {
  return makes_.at({&call, dtype});
}

}  // namespace troupe::catalogue
