#include "common/trace/part.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include <nlohmann/json.hpp>

#include "common/ipc/file_size_signal.hpp"
#include "common/ipc/trusted_file.hpp"

namespace troupe::trace {
namespace {

constexpr std::size_t kBuffer = 1u << 18;
/// The longest frame: names of kernels are cut before they are written.
constexpr std::uint32_t kMaxFrame = 1u << 16;

Error cannot_write(const std::string& path, int error) {
  return {Errc::io, error, path + ": cannot be written: " + std::strerror(error)};
}

Error malformed(const std::string& path) {
  return {Errc::invalid, 0, path + ": not a part of a trace"};
}

template <class T>
T taken_from(const std::string& payload) {
  T value;
  std::memcpy(&value, payload.data(), sizeof value);
  return value;
}

std::string_view behind(const std::string& payload, std::size_t fixed) {
  return std::string_view(payload).substr(fixed);
}

std::size_t fixed_bytes(FrameKind kind) {
  switch (kind) {
    case FrameKind::command: return sizeof(Command);
    case FrameKind::name: return sizeof(std::uint32_t);
    case FrameKind::span: return sizeof(Span);
    case FrameKind::activity: return sizeof(Activity);
    case FrameKind::counts: return sizeof(Counts);
    case FrameKind::clock: return sizeof(Clock);
  }
  return kMaxFrame;
}

}  // namespace

// Writing

Result<std::unique_ptr<PartWriter>> PartWriter::create(const std::string& path, const Head& head) {
  std::error_code ignored;  // what is missing shows when the file is opened
  if (const auto folder = std::filesystem::path(path).parent_path(); !folder.empty())
    std::filesystem::create_directories(folder, ignored);
  auto file = ipc::create_trusted(path, 0666);
  if (!file)
    return file.code() == Errc::io ? cannot_write(path, file.error().native) : file.error();
  std::unique_ptr<PartWriter> writer(new PartWriter(path, std::move(*file)));
  const nlohmann::json json{{"troupe_trace", 1},      {"job", head.job},
                            {"host", head.host},      {"rank", head.rank},
                            {"size", head.size},      {"clock_offset_ns", head.clock_offset_ns},
                            {"time_ns", head.time_ns}};
  writer->buffer_ = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
  writer->flush();
  if (auto error = writer->error(); !error) return error.error();
  return writer;
}

void PartWriter::put(FrameKind kind, std::span<const std::byte> fixed, std::string_view text) {
  if (!error_.ok()) return;
  text = text.substr(0, kMaxFrame - fixed.size());
  const FrameHead head{kind, static_cast<std::uint32_t>(fixed.size() + text.size())};
  buffer_.append(reinterpret_cast<const char*>(&head), sizeof head);
  buffer_.append(reinterpret_cast<const char*>(fixed.data()), fixed.size());
  buffer_.append(text);
  if (buffer_.size() >= kBuffer) flush_locked();
}

std::uint32_t PartWriter::name(std::string_view text) {
  const std::lock_guard lock(mutex_);
  const auto known = std::find(names_.begin(), names_.end(), text);
  const auto number = static_cast<std::uint32_t>(known - names_.begin());
  if (known != names_.end()) return number;
  names_.emplace_back(text);
  put(FrameKind::name, std::as_bytes(std::span(&number, 1)), text);
  return number;
}

void PartWriter::add(const Command& command) {
  const std::lock_guard lock(mutex_);
  put(FrameKind::command, std::as_bytes(std::span(&command, 1)));
}
void PartWriter::add(const Span& span, std::string_view text) {
  const std::lock_guard lock(mutex_);
  put(FrameKind::span, std::as_bytes(std::span(&span, 1)), text);
}
void PartWriter::add(const Activity& activity, std::string_view name) {
  const std::lock_guard lock(mutex_);
  put(FrameKind::activity, std::as_bytes(std::span(&activity, 1)), name);
}
void PartWriter::add(const Counts& counts) {
  const std::lock_guard lock(mutex_);
  put(FrameKind::counts, std::as_bytes(std::span(&counts, 1)));
}
void PartWriter::add(const Clock& clock) {
  const std::lock_guard lock(mutex_);
  put(FrameKind::clock, std::as_bytes(std::span(&clock, 1)));
}

void PartWriter::flush() {
  const std::lock_guard lock(mutex_);
  flush_locked();
}

void PartWriter::flush_locked() {
  const ipc::NoFileSizeSignal held_back;
  std::string_view left = buffer_;
  while (!left.empty() && error_.ok()) {
    const auto written = ::write(file_.get(), left.data(), left.size());
    if (written > 0) left.remove_prefix(static_cast<std::size_t>(written));
    if (written < 0 && errno != EINTR) error_ = cannot_write(path_, errno);
  }
  buffer_.clear();
}

Result<void> PartWriter::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

// Reading

Result<PartReader> PartReader::open(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{Errc::io, errno, path + ": cannot be read"};
  std::string line;
  std::getline(file, line);
  const auto json = nlohmann::json::parse(line, nullptr, false);
  if (!json.is_object() || json.value("troupe_trace", nlohmann::json()) != 1)
    return malformed(path);
  PartReader reader;
  reader.path_ = path;
  reader.frames_at_ = static_cast<std::int64_t>(line.size()) + 1;
  try {
    auto& head = reader.head_;
    head.job = json.at("job");
    head.host = json.at("host");
    head.rank = json.at("rank");
    head.size = json.at("size");
    head.clock_offset_ns = json.at("clock_offset_ns");
    head.time_ns = json.at("time_ns");
    if (head.rank < 0 || head.rank >= head.size) return malformed(path);
    reader.last_clock_ = {head.time_ns, head.clock_offset_ns};
  } catch (const nlohmann::json::exception&) {
    return malformed(path);
  }
  return reader;
}

Result<void> PartReader::read(const Visitor& visitor) {
  std::ifstream file(path_, std::ios::binary);
  if (!file.seekg(frames_at_)) return Error{Errc::io, errno, path_ + ": cannot be read"};
  std::vector<std::string> names;
  FrameHead head;
  std::string payload;
  while (file.read(reinterpret_cast<char*>(&head), sizeof head)) {
    const auto fixed = fixed_bytes(head.kind);
    if (head.bytes < fixed || head.bytes > kMaxFrame) return malformed(path_);
    payload.resize(head.bytes);
    if (!file.read(payload.data(), static_cast<std::streamsize>(payload.size()))) break;
    switch (head.kind) {
      case FrameKind::name:
        if (taken_from<std::uint32_t>(payload) != names.size()) return malformed(path_);
        names.emplace_back(behind(payload, fixed));
        break;
      case FrameKind::command: {
        const auto command = taken_from<Command>(payload);
        if (command.name >= names.size()) return malformed(path_);
        if (visitor.command) visitor.command(command, names[command.name]);
        break;
      }
      case FrameKind::span:
        if (visitor.span) visitor.span(taken_from<Span>(payload), behind(payload, fixed));
        break;
      case FrameKind::activity:
        if (visitor.activity)
          visitor.activity(taken_from<Activity>(payload), behind(payload, fixed));
        break;
      case FrameKind::counts: counts_ = taken_from<Counts>(payload); break;
      case FrameKind::clock: last_clock_ = taken_from<Clock>(payload); break;
    }
  }
  return {};
}

std::int64_t on_rank0(const Clock& first, const Clock& last, std::int64_t time_ns) {
  const auto span = last.time_ns - first.time_ns;
  const auto drift = static_cast<double>(last.offset_ns - first.offset_ns);
  const auto share =
      span > 0 ? static_cast<double>(time_ns - first.time_ns) / static_cast<double>(span) : 0.0;
  return time_ns + first.offset_ns + static_cast<std::int64_t>(drift * share);
}

}  // namespace troupe::trace
