#include "rank/store/generations.hpp"

#include <fcntl.h>
#include <stdio.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <functional>
#include <optional>
#include <sstream>

#include <nlohmann/json.hpp>

#include "common/ipc/unique_fd.hpp"
#include "rank/store/part_file.hpp"
#include "rank/store/part_table.hpp"

namespace troupe::rank_process {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kPrefix = "step-", kRunPrefix = "run-";
constexpr std::string_view kUnfinished = ".tmp";
/// A state that makes room for another of its step, where the two cannot be exchanged at once.
constexpr std::string_view kReplaced = ".old.tmp";
/// A state that is being removed: it goes as a whole, at once.
constexpr std::string_view kRemoved = ".gone.tmp";
constexpr const char* kManifest = "manifest.json";
constexpr std::size_t kMaxManifestBytes = std::size_t{256} << 20;
constexpr std::uint64_t kMaxParts = 1u << 24;
constexpr std::size_t kMaxRuns = 1u << 20;
/// A state of a program's first run tells of no runs before, as states did that knew of one run.
constexpr std::uint64_t kFirstRunFormat = 2, kFormat = 3;

/// The number that a name tells behind `prefix`, not below 0; nullopt: it is none of these names.
std::optional<std::int64_t> number_of(const std::string& name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  std::int64_t number = -1;
  const auto* const end = name.data() + name.size();
  const auto [parsed, error] = std::from_chars(name.data() + prefix.size(), end, number);
  if (error != std::errc{} || parsed != end || number < 0 ||
      name != std::string(prefix) + std::to_string(number)) {
    return std::nullopt;
  }
  return number;
}

/// The steps of which there is a state in a folder, newest first.
std::vector<std::int64_t> steps_in(const fs::path& folder) {
  std::vector<std::int64_t> steps;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (const auto step = number_of(it->path().filename().string(), kPrefix))
      steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end(), std::greater<>());
  return steps;
}

fs::path folder_of_run(const fs::path& base, std::size_t run) {
  return run == 1 ? base : base / (std::string(kRunPrefix) + std::to_string(run));
}

/// The runs behind the first that have a folder.
std::vector<std::size_t> later_runs(const fs::path& base) {
  std::vector<std::size_t> runs;
  std::error_code error;
  for (fs::directory_iterator it(base, error), end; !error && it != end; it.increment(error)) {
    const auto run = number_of(it->path().filename().string(), kRunPrefix);
    if (run && *run > 1) runs.push_back(static_cast<std::size_t>(*run));
  }
  return runs;
}

Result<void> sync_folder(const fs::path& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) return file_error(path);
  return {};
}

Error failed(const fs::path& path, const std::error_code& error) {
  return {Errc::io, error.value(), path.string() + ": " + error.message()};
}

fs::path with(fs::path path, std::string_view suffix) {
  return path += suffix;
}

/// Puts the folder `from` in the place of `to`, which may be there already; what was there is
/// removed. At no time is there neither; see prepare() for file systems that cannot exchange.
Result<void> put_in_place(const fs::path& from, const fs::path& to) {
  std::error_code error;
  if (!fs::exists(to, error)) {
    fs::rename(from, to, error);
    return error ? Result<void>(failed(from, error)) : Result<void>();
  }
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) return {};
  if (errno != EINVAL && errno != ENOSYS) return file_error(to);
  const auto aside = with(to, kReplaced);
  fs::remove_all(aside, error);
  fs::rename(to, aside, error);
  if (error) return failed(to, error);
  fs::rename(from, to, error);
  return error ? Result<void>(failed(from, error)) : Result<void>();
}

}  // namespace

namespace {

/// The checksum of all that a manifest says beside it.
std::uint32_t checksum_of(const nlohmann::ordered_json& json) {
  const auto text = json.dump();
  return checksum(std::as_bytes(std::span(text)));
}

/// All of it but its checksum.
nlohmann::ordered_json body_of(const Manifest& manifest) {
  nlohmann::ordered_json parts = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < manifest.parts.size(); ++i) {
    parts.push_back({{"file", "part-" + std::to_string(i) + ".troupe"},
                     {"bytes", manifest.parts[i].bytes},
                     {"crc32", manifest.parts[i].crc}});
  }
  nlohmann::ordered_json fingerprint = nlohmann::ordered_json::object();
  for (const auto& [name, value] : manifest.fingerprint) fingerprint[name] = value;
  nlohmann::ordered_json body = {{"format", manifest.ends.empty() ? kFirstRunFormat : kFormat},
                                 {"step", manifest.step},
                                 {"ranks", manifest.parts.size()},
                                 {"fingerprint", std::move(fingerprint)}};
  if (!manifest.ends.empty()) body["ends"] = manifest.ends;
  body["parts"] = std::move(parts);
  return body;
}

}  // namespace

std::string to_json(const Manifest& manifest) {
  auto json = body_of(manifest);
  json["crc32"] = checksum_of(json);
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
  const auto format = number(json, "format", kFormat);
  if (format != kFirstRunFormat && format != kFormat) return wrong("its format is not 2 or 3");
  const auto step = number(json, "step", INT64_MAX), ranks = number(json, "ranks", kMaxParts);
  const auto parts = json.find("parts");
  if (!step || !ranks || *ranks < 1 || parts == json.end() || !parts->is_array() ||
      parts->size() != *ranks) {
    return wrong("step, ranks or parts are missing or contradict each other");
  }
  Manifest manifest{static_cast<std::int64_t>(*step), {}, {}, {}};
  const auto fingerprint = json.find("fingerprint");
  if (fingerprint == json.end() || !fingerprint->is_object()) return wrong("it has no fingerprint");
  for (const auto& [name, value] : fingerprint->items()) {
    if (!value.is_string()) return wrong("its fingerprint is malformed");
    manifest.fingerprint.emplace(name, value.get<std::string>());
  }
  if (format == kFormat) {
    const auto ends = json.find("ends");
    if (ends == json.end() || !ends->is_array() || ends->empty() || ends->size() >= kMaxRuns)
      return wrong("it does not tell of the runs before");
    for (const auto& end : *ends) {
      if (!end.is_number_integer() || end.get<std::int64_t>() < kNoEnd)
        return wrong("it does not tell of the runs before");
      manifest.ends.push_back(end.get<std::int64_t>());
    }
  }
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
  if (number(json, "crc32", UINT32_MAX) != checksum_of(body_of(manifest)))
    return wrong("its checksum is wrong");
  return manifest;
}

Generations::Generations(const fs::path& folder, const Fingerprint& fingerprint, Ends ends)
    : base_(folder),
      folder_(folder_of_run(folder, ends.size() + 1)),
      fingerprint_(in_ascii(fingerprint)),
      ends_(std::move(ends)) {}

std::size_t Generations::newest_run(const fs::path& folder) {
  std::size_t newest = 1;
  for (const auto run : later_runs(folder)) {
    if (run > newest && !steps_in(folder_of_run(folder, run)).empty()) newest = run;
  }
  return newest;
}

std::vector<fs::path> Generations::replaced_runs() const {
  std::vector<fs::path> folders;
  if (run() > 1) folders.push_back(base_);
  for (const auto other : later_runs(base_)) {
    if (other < run() || (other > run() && anew_)) folders.push_back(folder_of_run(base_, other));
  }
  return folders;
}

fs::path Generations::part(std::int64_t step, int part) const {
  return folder_ / (std::string(kPrefix) + std::to_string(step)) /
         ("part-" + std::to_string(part) + ".troupe");
}

std::string Generations::copy_name(int part) {
  return "copy-" + std::to_string(part) + ".troupe";
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
    if (error) break;
    const auto name = leftover.string();
    const fs::path replaced = name.substr(0, name.size() - kReplaced.size());
    if (name.ends_with(kReplaced) && !fs::exists(replaced, error)) {
      fs::rename(leftover, replaced, error);  // its successor never came: it still counts
    } else {
      fs::remove_all(leftover, error);
    }
  }
  return error ? Result<void>(failed(folder_, error)) : Result<void>();
}

std::vector<std::int64_t> Generations::steps() const {
  return steps_in(folder_);
}

Result<Manifest> Generations::manifest(std::int64_t step) const {
  const auto path = part(step, 0).parent_path() / kManifest;
  std::error_code error;
  const auto bytes = fs::file_size(path, error);
  if (error) return failed(path, error);
  std::string text(std::min<std::uintmax_t>(bytes, kMaxManifestBytes), '\0');
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file) return file_error(path, errno != 0 ? errno : EIO);
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

Result<void> Generations::publish(Manifest manifest) const {
  manifest.fingerprint = fingerprint_;
  manifest.ends = ends_;
  const auto from = unfinished(manifest.step), to = part(manifest.step, 0).parent_path();
  const auto text = to_json(manifest);
  if (auto done = write_file(from / kManifest, std::as_bytes(std::span(text))); !done) return done;
  if (auto done = sync_folder(from); !done) return done;
  if (auto done = put_in_place(from, to); !done) return done;
  if (auto done = sync_folder(folder_); !done) return done;
  if (auto done = sync_folder(base_); !done) return done;
  // Only now that the newest is there to stay may others go. They disappear as a whole first:
  // removing large files takes a while, and nobody shall find half a state.
  std::error_code ignored;
  std::vector<fs::path> leave{from, with(to, kReplaced)};
  const auto remove = [&](const fs::path& folder, std::int64_t step) {
    const auto state = folder / (std::string(kPrefix) + std::to_string(step));
    fs::rename(state, leave.emplace_back(with(state, kRemoved)), ignored);
  };
  int older = 0;
  for (const auto step : steps()) {
    if (step == manifest.step || (step < manifest.step && older++ == 0)) continue;
    remove(folder_, step);
  }
  for (const auto& folder : replaced_runs()) {
    for (const auto step : steps_in(folder)) remove(folder, step);
  }
  for (const auto& folder : leave) fs::remove_all(folder, ignored);
  return {};
}

void Generations::abandon(std::int64_t step) const {
  std::error_code ignored;
  fs::remove_all(unfinished(step), ignored);
}

void Generations::clear() const {
  std::error_code ignored;
  auto runs = later_runs(base_);
  runs.push_back(1);
  for (const auto run : runs) {
    const auto folder = folder_of_run(base_, run);
    std::vector<fs::path> states;  // those that a death has cut off, too
    for (const auto& entry : fs::directory_iterator(folder, ignored)) {
      if (entry.path().filename().string().starts_with(kPrefix)) states.push_back(entry.path());
    }
    for (const auto& state : states) fs::remove_all(state, ignored);
    if (run != 1) fs::remove(folder, ignored);
  }
  fs::remove(base_ / "lock", ignored);  // see FolderLock
  fs::remove(base_, ignored);
}

}  // namespace troupe::rank_process
