#include "libraries.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <complex>
#include <map>

#include <troupe/lib/operations.hpp>

namespace troupe::info {
namespace {

/// Why libraries cannot be opened, by name. Commands that have nothing to do open them.
std::map<std::string, std::string> open_all(Device& device) {
  const auto x = device.alloc<double>(0), y = device.alloc<double>(0), z = device.alloc<double>(0);
  const auto index = device.alloc<std::int32_t>(0);
  const auto image = device.alloc<float>(0), result = device.alloc<float>(0);
  const auto spectrum = device.alloc<std::complex<double>>(0);
  std::map<std::string, std::string> errors;
  const auto note = [&errors](const std::string& library, const Result<void>& outcome) {
    if (!outcome.ok()) errors[library] = outcome.error().message;
  };
  note("blas", device.blas().axpy(1.0, x, y).wait());
  note("dnn", dnn::on(device)
                  .convolution(image, device.alloc<float>(1), result,
                               {.batch = 0,
                                .input_channels = 1,
                                .output_channels = 1,
                                .extents = {1, 1},
                                .filter = {1, 1}})
                  .wait());
  note("file", file::on(device).write(x, "/dev/null").then([](const file::Done&) {}).wait());
  note("fft", fft::on(device).forward(spectrum, spectrum, {.extents = {1}, .batch = 0}).wait());
  note("primitives", primitives::on(device).sort(x, y).wait());
  note("rng", device.rng().uniform(x, {.seed = 1}).wait());
  const auto info = device.solver().potrf(blas::Uplo::lower, MatrixRef(x, 0, 0));
  note("solver", info.wait().ok() ? Result<void>() : Result<void>(info.wait().error()));
  note("sparse", device.sparse().gather(x, index, y).wait());
  const auto one = device.alloc<float>(1), other = device.alloc<float>(1);
  device.fill(one, 0.0f);
  const tensor::View<float> from(one, {}), to(other, {});
  note("tensor", tensor::on(device).permute(from(""), to("")).wait());
  note("vector", device.vector().multiply(x, y, z).wait());
  return errors;
}

nlohmann::json to_json(const OpenedLibrary& library) {
  auto stands_on = nlohmann::json::array();
  for (const auto& [name, version, file] : library.stands_on)
    stands_on.push_back({{"name", name}, {"version", version}, {"file", file}});
  return {{"library", library.name}, {"stands_on", stands_on}};
}

std::string library_text(const nlohmann::json& library) {
  const auto name = library["library"].get<std::string>();
  if (library.contains("error"))
    return fmt::format("{:<11} {}\n", name, library["error"].get<std::string>());
  if (library["stands_on"].empty()) return fmt::format("{:<11} own code\n", name);
  std::string text;
  for (const auto& loaded : library["stands_on"]) {
    text += fmt::format("{:<11} {} {}  {}\n", text.empty() ? name : "",
                        loaded["name"].get<std::string>(), loaded["version"].get<std::string>(),
                        loaded["file"].get<std::string>());
  }
  return text;
}

/// `text` with `margin` in front of each line.
std::string indented(const std::string& text, const std::string& margin) {
  std::string all;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = text.find('\n', at) + 1;
    all += margin + text.substr(at, end - at);
    at = end;
  }
  return all;
}

}  // namespace

nlohmann::json open_libraries(Device& device) {
  const auto errors = open_all(device);
  auto all = nlohmann::json::array();
  for (const auto& library : device.libraries()) {
    if (!errors.contains(library.name)) all.push_back(to_json(library));
  }
  for (const auto& [library, error] : errors)
    all.push_back({{"library", library}, {"error", error}});
  return all;
}

std::set<std::string> missing_of(const nlohmann::json& libraries) {
  std::set<std::string> missing;
  for (const auto& library : libraries) {
    if (library.value("error", "").find("not installed") != std::string::npos)
      missing.insert(library["library"].get<std::string>());
  }
  return missing;
}

std::string libraries_text(const nlohmann::json& ranks) {
  std::string text;
  const auto& first = ranks[0]["libraries"];
  for (const auto& library : first) text += indented(library_text(library), "  ");
  for (const auto& rank : ranks) {
    for (const auto& library : rank["libraries"]) {
      if (std::find(first.begin(), first.end(), library) != first.end()) continue;
      text += fmt::format("  on rank {}:\n", rank["rank"].get<int>()) +
              indented(library_text(library), "    ");
    }
  }
  return text;
}

}  // namespace troupe::info
