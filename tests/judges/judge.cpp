#include <cstdio>
#include <fstream>
#include <iterator>

#include <nlohmann/json.hpp>

#include "call.hpp"
#include "device_rig.hpp"

// judge REQUESTS OPERANDS RESULTS ANSWERS: runs the calls of a JSON file, whose operands stand in
// another, on a device of the engine that TROUPE_TEST_BACKEND names. RESULTS is what the operands
// are afterwards, ANSWERS a JSON list: "ok", or the error, of each call.

namespace troupe::judge {
namespace {

/// Of which library the call is, as far as two libraries have calls of one name.
const Runs& runs_of(const std::string& library) {
  static const auto all = [] {
    std::map<std::string, Runs> made;
    add_random(made["dense"]);
    add_primitives(made["primitives"]);
    add_sparse(made["sparse"]);
    add_tensors(made["tensor"]);
    add_dnn(made["dnn"]);
    add_dnn_layers(made["dnn"]);
    return made;
  }();
  const auto own = all.find(library);
  return own != all.end() ? own->second : all.at("dense");
}

std::string answer_of(Device& device, const nlohmann::json& request,
                      std::vector<std::byte>& operands) {
  const auto name =
      request.at("call").get<std::string>() + " " + request.at("dtype").get<std::string>();
  const auto& runs = runs_of(request.at("library").get<std::string>());
  const auto run = runs.find(name);
  if (run == runs.end()) return "there is no call " + name;
  try {
    Call call(device, request, operands);
    run->second(call);
    call.download();
    return "ok";
  } catch (const Exception& e) {
    return e.error().to_string();
  }
}

int run(const std::vector<std::string>& files) {
  std::ifstream requests_file(files[0]), operands_file(files[1], std::ios::binary);
  const auto requests = nlohmann::json::parse(requests_file);
  const std::string bytes{std::istreambuf_iterator<char>(operands_file), {}};
  std::vector<std::byte> operands(bytes.size());
  std::memcpy(operands.data(), bytes.data(), bytes.size());

  auto answers = nlohmann::json::array();
  {
    test::DeviceRig rig({"--standby", "off"});
    for (const auto& request : requests)
      answers.push_back(answer_of(rig.device(), request, operands));
    static_cast<void>(rig.device().take_error());  // each call's error is its answer
  }
  std::ofstream results(files[2], std::ios::binary), said(files[3]);
  results.write(reinterpret_cast<const char*>(operands.data()),
                static_cast<std::streamsize>(operands.size()));
  said << answers.dump(1) << '\n';
  results.close(), said.close();
  return results && said ? 0 : 1;
}

}  // namespace
}  // namespace troupe::judge

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fputs("usage: judge REQUESTS OPERANDS RESULTS ANSWERS\n", stderr);
    return 2;
  }
  return troupe::judge::run({argv + 1, argv + argc});
}
