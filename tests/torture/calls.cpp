#include "calls.hpp"

#include <map>

#include <fmt/format.h>

#include "account.hpp"

namespace troupe::torture {

Calls::Calls(Device& device) {
  std::map<std::string_view, bool> libraries;  // whether they are there
  for (const auto& info : Catalogue::all().calls()) {
    if (info.missing == Missing::never) continue;
    for (std::size_t i = 0; i < kDTypeCount; ++i) {
      const auto dtype = static_cast<DType>(i);
      if (!info.dtypes.has(dtype)) continue;
      const auto known = libraries.find(info.library);
      if (info.missing == Missing::library && known != libraries.end()) {
        if (!known->second) missing_.insert({&info, dtype});
        continue;
      }
      Trial trial(device, 1);
      Catalogue::all().of(info, dtype)(trial);
      const auto outcome = trial.over().wait();
      if (info.missing == Missing::library)
        libraries[info.library] = outcome.code() != Errc::unsupported;
      if (outcome.code() == Errc::unsupported) {
        missing_.insert({&info, dtype});
        continue;
      }
      if (!outcome.ok()) throw Exception(outcome.error());
      if (const auto wrong = trial.judge(); !wrong.empty())
        throw Finding(fmt::format("{} {}, in quiet: {}", info.name, to_string(dtype), wrong));
    }
  }
  (void)device.take_error();  // what is not supported was looked at
}

std::shared_ptr<Trial> Calls::begin(const Operation& op, Device& device) const {
  if (missing_.contains({op.call, op.dtype})) return nullptr;
  auto trial = std::make_shared<Trial>(device, op.data);
  Catalogue::all().of(*op.call, op.dtype)(*trial);
  return trial;
}

}  // namespace troupe::torture
