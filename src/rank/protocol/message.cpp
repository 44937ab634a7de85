#include "rank/protocol/message.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace troupe::rank_process {
namespace {

class Writer {
 public:
  template <class T>
  void put(const T& value) requires std::is_trivially_copyable_v<T> {
    raw(&value, sizeof value);
  }
  void put(const std::string& text) {
    put(static_cast<std::uint64_t>(text.size()));
    raw(text.data(), text.size());
  }
  void put(const std::vector<std::byte>& bytes) {
    put(static_cast<std::uint64_t>(bytes.size()));
    raw(bytes.data(), bytes.size());
  }
  void put(const std::vector<RankPart>& parts) {
    put(static_cast<std::uint64_t>(parts.size()));
    for (const auto& part : parts) put(part.rank), put(part.iteration), put(part.contribution);
  }
  void put(const std::vector<std::int32_t>& ranks) {
    put(static_cast<std::uint64_t>(ranks.size()));
    raw(ranks.data(), ranks.size() * sizeof(std::int32_t));
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  void raw(const void* data, std::size_t size) {
    const auto* first = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), first, first + size);
  }
  std::vector<std::byte> bytes_;
};

/// Reads what Writer wrote; after the first thing that does not fit, everything reads as zero and
/// ok() is false.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <class T>
  void get(T& value) requires std::is_trivially_copyable_v<T> {
    value = T{};
    if (!has(sizeof value)) return;
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_ = rest_.subspan(sizeof value);
  }
  void get(std::string& text) {
    const auto part = take();
    text.assign(reinterpret_cast<const char*>(part.data()), part.size());
  }
  void get(std::vector<std::byte>& bytes) {
    const auto part = take();
    bytes.assign(part.begin(), part.end());
  }
  void get(std::vector<RankPart>& parts) {
    std::uint64_t count = 0;
    get(count);
    for (parts.clear(); parts.size() < count && ok_;) {
      auto& part = parts.emplace_back();
      get(part.rank), get(part.iteration), get(part.contribution);
    }
  }
  void get(std::vector<std::int32_t>& ranks) {
    std::uint64_t count = 0;
    get(count);
    if (!has(count) || !has(count * sizeof(std::int32_t))) return;
    ranks.resize(count);
    if (count > 0) std::memcpy(ranks.data(), rest_.data(), count * sizeof(std::int32_t));
    rest_ = rest_.subspan(count * sizeof(std::int32_t));
  }
  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] bool complete() const { return ok_ && rest_.empty(); }
  [[nodiscard]] std::size_t left() const { return rest_.size(); }

 private:
  bool has(std::uint64_t size) {
    ok_ = ok_ && size <= rest_.size();
    return ok_;
  }
  std::span<const std::byte> take() {
    std::uint64_t size = 0;
    get(size);
    if (!has(size)) return {};
    const auto part = rest_.first(size);
    rest_ = rest_.subspan(size);
    return part;
  }
  std::span<const std::byte> rest_;
  bool ok_ = true;
};

/// One list of fields serves both directions.
template <class Archive, class Message>
void fields(Archive&& field, Message& m) {
  field(m.kind), field(m.phase), field(m.round), field(m.epoch), field(m.rank), field(m.covered),
      field(m.code), field(m.native);
  field(m.lost_buffers), field(m.formation), field(m.step), field(m.repeated), field(m.detect_us),
      field(m.end_us), field(m.stopping);
  field(m.text), field(m.payload), field(m.parts), field(m.excluded);
}

template <class Archive, class Report>
void report_fields(Archive&& field, Report& r) {
  field(r.rank), field(r.kind), field(r.iteration), field(r.epoch);
  field(r.detect_ms), field(r.quiesce_ms), field(r.replace_ms), field(r.end_ms), field(r.form_ms),
      field(r.verify_ms);
  field(r.restore_ms), field(r.total_ms), field(r.lost_buffers), field(r.repeated_iterations);
}

Error malformed(const char* what) {
  return {Errc::invalid, 0, std::string("malformed ") + what};
}

}  // namespace

bool is_echo(std::string_view fault_kind) noexcept {
  constexpr std::string_view kEchoes[] = {"communicator", "timeout", "contribute", "promote",
                                          "form",         "verify",  "restore",    kKindError};
  return std::find(std::begin(kEchoes), std::end(kEchoes), fault_kind) != std::end(kEchoes);
}

std::string_view to_string(Phase phase) noexcept {
  constexpr std::string_view kNames[kPhaseCount] = {"active", "halt",   "quiesce", "replace",
                                                    "form",   "verify", "restore"};
  return static_cast<std::size_t>(phase) < kPhaseCount ? kNames[static_cast<std::size_t>(phase)]
                                                       : "unknown";
}

std::vector<std::byte> encode(const WorldMessage& message) {
  Writer writer;
  fields([&](const auto& value) { writer.put(value); }, message);
  return writer.take();
}

Result<WorldMessage> decode_world_message(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  WorldMessage message;
  fields([&](auto& value) { reader.get(value); }, message);
  if (!reader.complete() || message.kind > WorldMessage::Kind::stop ||
      message.phase > Phase::restore) {
    return malformed("control message");
  }
  return message;
}

std::vector<std::byte> encode(const HostCall& call) {
  Writer writer;
  writer.put(call.communicator), writer.put(call.number), writer.put(call.ranks),
      writer.put(call.name), writer.put(call.kind);
  return writer.take();
}

Result<HostCall> decode_host_call(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  HostCall call;
  reader.get(call.communicator), reader.get(call.number), reader.get(call.ranks),
      reader.get(call.name), reader.get(call.kind);
  if (!reader.complete()) return malformed("host collective");
  return call;
}

std::vector<std::byte> encode(const std::vector<Recovery>& reports) {
  Writer writer;
  writer.put(static_cast<std::uint64_t>(reports.size()));
  for (const auto& report : reports)
    report_fields([&](const auto& value) { writer.put(value); }, report);
  return writer.take();
}

Result<std::vector<Recovery>> decode_reports(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  std::uint64_t count = 0;
  reader.get(count);
  std::vector<Recovery> reports;
  for (std::uint64_t i = 0; i < count && reader.ok(); ++i) {
    report_fields([&](auto& value) { reader.get(value); }, reports.emplace_back());
  }
  if (!reader.complete()) return malformed("recovery reports");
  return reports;
}

std::vector<std::byte> encode(const std::vector<std::vector<std::byte>>& blobs) {
  Writer writer;
  const auto empty = std::count_if(blobs.begin(), blobs.end(), [](auto& b) { return b.empty(); });
  writer.put(static_cast<std::uint64_t>(blobs.size()));
  writer.put(static_cast<std::uint64_t>(blobs.size()) - static_cast<std::uint64_t>(empty));
  for (std::size_t i = 0; i < blobs.size(); ++i) {
    if (!blobs[i].empty()) writer.put(static_cast<std::uint64_t>(i)), writer.put(blobs[i]);
  }
  return writer.take();
}

Result<std::vector<std::vector<std::byte>>> decode_blobs(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  std::uint64_t size = 0, count = 0;
  reader.get(size), reader.get(count);
  if (!reader.ok() || size > kMaxRanks || count > size) return malformed("contributions");
  std::vector<std::vector<std::byte>> blobs(size);
  for (std::uint64_t i = 0, after = 0; i < count; ++i) {
    std::uint64_t index = 0;
    std::vector<std::byte> blob;
    reader.get(index), reader.get(blob);
    if (index < after || index >= size || blob.empty()) return malformed("contributions");
    blobs[index] = std::move(blob);
    after = index + 1;
  }
  if (!reader.complete()) return malformed("contributions");
  return blobs;
}

}  // namespace troupe::rank_process
