#include "rank/store/generations.hpp"

#include <fcntl.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <functional>
#include <optional>
#include <sstream>

#include <nlohmann/json.hpp>

#include "common/ipc/system_error.hpp"
#include "common/ipc/unique_fd.hpp"
#include "rank/store/part_file.hpp"

namespace troupe::rank {

namespace fs = std::filesystem;
using ipc::system_error;

namespace {

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kUnfinished = ".tmp";
constexpr const char* kManifest = "manifest.json";
constexpr std::size_t kMaxManifestBytes = std::size_t{256} << 20;
constexpr std::uint64_t kMaxParts = 1u << 24;

/// The step that a folder's name tells; nullopt: it is no saved state's.
std::optional<std::int64_t> step_of(const std::string& name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  std::int64_t step = -1;
  const auto* const end = name.data() + name.size();
  const auto [parsed, error] = std::from_chars(name.data() + kPrefix.size(), end, step);
  if (error != std::errc{} || parsed != end || step < 0 ||
      name != std::string(kPrefix) + std::to_string(step)) {
    return std::nullopt;
  }
  return step;
}

Result<void> sync_folder(const fs::path& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) return system_error(path.string());
  return {};
}

Error failed(const fs::path& path, const std::error_code& error) {
  return {Errc::io, error.value(), path.string() + ": " + error.message()};
}

}  // namespace

std::string to_json(const Manifest& manifest) {
  nlohmann::ordered_json parts = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < manifest.parts.size(); ++i) {
    parts.push_back({{"file", "part-" + std::to_string(i) + ".troupe"},
                     {"bytes", manifest.parts[i].bytes},
                     {"crc32", manifest.parts[i].crc}});
  }
  const nlohmann::ordered_json json = {{"format", 1},
                                       {"step", manifest.step},
                                       {"ranks", manifest.parts.size()},
                                       {"parts", std::move(parts)}};
  return json.dump(1) + "\n";
}

Result<Manifest> parse_manifest(const std::string& text) {
  const auto wrong = [](const std::string& what) { return Error{Errc::invalid, 0, what}; };
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return wrong("it is no JSON object");
  const auto number = [](const nlohmann::json& object, const char* key,
                         std::uint64_t limit) -> std::optional<std::uint64_t> {
    const auto it = object.find(key);
    if (it == object.end() || !it->is_number_unsigned()) return std::nullopt;
    const auto value = it->get<std::uint64_t>();
    return value <= limit ? std::optional(value) : std::nullopt;
  };
  if (number(json, "format", 1) != 1u) return wrong("its format is not 1");
  const auto step = number(json, "step", INT64_MAX), ranks = number(json, "ranks", kMaxParts);
  const auto parts = json.find("parts");
  if (!step || !ranks || *ranks < 1 || parts == json.end() || !parts->is_array() ||
      parts->size() != *ranks) {
    return wrong("step, ranks or parts are missing or contradict each other");
  }
  Manifest manifest{static_cast<std::int64_t>(*step), {}};
  for (const auto& part : *parts) {
    if (!part.is_object()) return wrong("a part is no object");
    const auto bytes = number(part, "bytes", INT64_MAX), crc = number(part, "crc32", UINT32_MAX);
    const auto name = part.find("file");
    if (!bytes || !crc || name == part.end() ||
        *name != "part-" + std::to_string(manifest.parts.size()) + ".troupe") {
      return wrong("part " + std::to_string(manifest.parts.size()) + " is malformed");
    }
    manifest.parts.push_back({*bytes, static_cast<std::uint32_t>(*crc)});
  }
  return manifest;
}

fs::path Generations::part(std::int64_t step, int part) const {
  return folder_ / (std::string(kPrefix) + std::to_string(step)) /
         ("part-" + std::to_string(part) + ".troupe");
}

fs::path Generations::unfinished(std::int64_t step) const {
  return folder_ / (std::string(kPrefix) + std::to_string(step) + std::string(kUnfinished));
}

Result<void> Generations::prepare() const {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) return failed(folder_, error);
  std::vector<fs::path> leftovers;
  for (fs::directory_iterator it(folder_, error), end; !error && it != end; it.increment(error)) {
    const auto name = it->path().filename().string();
    if (name.starts_with(kPrefix) && name.ends_with(kUnfinished)) leftovers.push_back(it->path());
  }
  for (const auto& leftover : leftovers) {
    if (!error) fs::remove_all(leftover, error);
  }
  return error ? Result<void>(failed(folder_, error)) : Result<void>();
}

std::vector<std::int64_t> Generations::steps() const {
  std::vector<std::int64_t> steps;
  std::error_code error;
  for (fs::directory_iterator it(folder_, error), end; !error && it != end; it.increment(error)) {
    if (const auto step = step_of(it->path().filename().string())) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end(), std::greater<>());
  return steps;
}

Result<Manifest> Generations::manifest(std::int64_t step) const {
  const auto path = part(step, 0).parent_path() / kManifest;
  std::error_code error;
  const auto bytes = fs::file_size(path, error);
  if (error) return failed(path, error);
  std::string text(std::min<std::uintmax_t>(bytes, kMaxManifestBytes), '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file) return system_error(path.string());
  auto manifest = parse_manifest(text);
  if (!manifest) return Error{Errc::invalid, 0, path.string() + ": " + manifest.error().message};
  if (manifest->step != step)
    return Error{Errc::invalid, 0, path.string() + ": it is of another step than its folder"};
  return manifest;
}

Result<fs::path> Generations::begin(std::int64_t step, int part) const {
  std::error_code error;
  fs::create_directory(unfinished(step), error);
  if (error) return failed(unfinished(step), error);
  return unfinished(step) / this->part(step, part).filename();
}

Result<void> Generations::publish(const Manifest& manifest) const {
  const auto from = unfinished(manifest.step), to = part(manifest.step, 0).parent_path();
  const auto text = to_json(manifest);
  if (auto done = write_file(from / kManifest, std::as_bytes(std::span(text))); !done) return done;
  if (auto done = sync_folder(from); !done) return done;
  std::error_code error;
  if (fs::exists(to, error)) {
    // From a run that this one has not continued. A folder cannot replace one that is not empty.
    const auto aside = fs::path(to) += std::string(".old") + std::string(kUnfinished);
    fs::remove_all(aside, error);
    fs::rename(to, aside, error);
    if (error) return failed(to, error);
  }
  fs::rename(from, to, error);
  if (error) return failed(from, error);
  if (auto done = sync_folder(folder_); !done) return done;
  // Only now that the newest is there to stay may others go.
  std::vector<std::int64_t> keep{manifest.step};
  for (const auto step : steps()) {
    if (step >= manifest.step || keep.size() > 1) {
      if (step != manifest.step) fs::remove_all(part(step, 0).parent_path(), error);
    } else {
      keep.push_back(step);
    }
  }
  fs::remove_all(fs::path(to) += std::string(".old") + std::string(kUnfinished), error);
  return {};
}

void Generations::abandon(std::int64_t step) const {
  std::error_code ignored;
  fs::remove_all(unfinished(step), ignored);
}

}  // namespace troupe::rank
