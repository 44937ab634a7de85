#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "catalogue/catalogue.hpp"
#include "device_rig.hpp"
#include "observer.hpp"

// observed_calls REQUEST COMMANDS CONTENTS: makes the calls of the catalogue, on a device of the
// engine that TROUPE_TEST_BACKEND names, and writes down their commands. REQUEST is
//
//     {"libraries": ["blas"], "seed": 1, "rounds": 8,
//      "unusual": {"blas.axpy": {"f32": [[0, 0, 192, 127], …]}}}
//
// Each call is made so often in each dtype, and as often again with unusual numbers (see
// Unusual) if an operation of its has some. COMMANDS is a list with an entry for each:
//
//     {"call": "blas.axpy", "dtype": "f32", "seed": 1, "unusual": false, "outcome": "ok",
//      "commands": […]}
//
// and CONTENTS the bytes that the commands (see Observer) refer to.

namespace troupe::judge {
namespace {

using nlohmann::json;

/// The numbers of the first operation of the call that has any.
Unusual unusual_of(const json& all, const catalogue::CallInfo& call, DType dtype) {
  std::istringstream names{std::string(call.operations)};
  for (std::string name; names >> name;) {
    const auto own = all.find(std::string(call.library) + "." + name);
    if (own != all.end() && own->contains(std::string(to_string(dtype))))
      return own->at(std::string(to_string(dtype))).get<Unusual>();
  }
  return {};
}

json observe(Device& device, Observer& observer, const catalogue::CallInfo& call, DType dtype,
             std::uint64_t seed, const Unusual& unusual) {
  json made{{"call", std::string(call.library) + "." + std::string(call.name)},
            {"dtype", to_string(dtype)},
            {"seed", seed},
            {"unusual", !unusual.empty()}};
  observer.disturb(unusual, seed);
  try {
    catalogue::Trial trial(device, seed, catalogue::Breadth::wide, &observer);
    catalogue::Catalogue::all().of(call, dtype)(trial);
    const auto outcome = trial.over().wait();
    made["outcome"] = outcome.ok() ? "ok" : outcome.error().to_string();
  } catch (const Exception& e) {
    made["outcome"] = e.error().to_string();
  }
  made["commands"] = observer.take();
  return made;
}

json observe_all(Device& device, Observer& observer, const json& request) {
  const auto libraries = request.at("libraries").get<std::vector<std::string>>();
  const auto seed = request.at("seed").get<std::uint64_t>(),
             rounds = request.at("rounds").get<std::uint64_t>();
  auto all = json::array();
  for (const auto& call : catalogue::Catalogue::all().calls()) {
    if (std::find(libraries.begin(), libraries.end(), call.library) == libraries.end()) continue;
    for (std::size_t i = 0; i < kDTypeCount; ++i) {
      const auto dtype = static_cast<DType>(i);
      if (!call.dtypes.has(dtype)) continue;
      const auto unusual = unusual_of(request.at("unusual"), call, dtype);
      for (std::uint64_t round = 0; round < (unusual.empty() ? 1 : 2) * rounds; ++round) {
        all.push_back(observe(device, observer, call, dtype, seed * 1000 + round,
                              round < rounds ? Unusual() : unusual));
      }
    }
  }
  return all;
}

int run(const std::vector<std::string>& files) {
  std::ifstream request_file(files[0]);
  const auto request = json::parse(request_file);
  test::DeviceRig rig({"--standby", "off"});
  json all;
  std::vector<std::byte> contents;
  {
    Observer observer(rig.device());
    all = observe_all(rig.device(), observer, request);
    contents = observer.contents();
  }
  static_cast<void>(rig.device().take_error());  // each command's error is its outcome
  std::ofstream commands(files[1]), bytes(files[2], std::ios::binary);
  commands << all.dump() << '\n';
  bytes.write(reinterpret_cast<const char*>(contents.data()),
              static_cast<std::streamsize>(contents.size()));
  commands.close(), bytes.close();
  return commands && bytes ? 0 : 1;
}

}  // namespace
}  // namespace troupe::judge

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fputs("usage: observed_calls REQUEST COMMANDS CONTENTS\n", stderr);
    return 2;
  }
  return troupe::judge::run({argv + 1, argv + argc});
}
