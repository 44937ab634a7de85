#include "rank/store/commit_ledger.hpp"

#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>
#include <type_traits>

#include "rank/store/part_table.hpp"

namespace troupe::rank_process {
namespace {

/// The places of the halves, and behind them that of the constants, in the file, which has holes.
constexpr off_t kPlace = off_t{1} << 36;
constexpr off_t kConstants = 2 * kPlace;
constexpr std::uint64_t kMost = std::uint64_t{1} << 35;

struct Head {
  std::uint64_t counts = 0;  ///< 1: the commit does
  std::uint64_t bytes = 0;   ///< of what follows
  std::uint64_t crc = 0;     ///< of that
};

template <class T>
void put(std::string& text, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  text.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// Takes values from the begin of a text. Once it is too short all that follows is empty.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}
  template <class T>
  T take() {
    T value{};
    const auto bytes = take_bytes(sizeof value);
    if (bytes.size() == sizeof value) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  std::string_view take_bytes(std::uint64_t bytes) {
    if (bytes > text_.size()) {
      good_ = false;
      text_ = {};
      return {};
    }
    const auto taken = text_.substr(0, bytes);
    text_.remove_prefix(bytes);
    return taken;
  }
  [[nodiscard]] bool good() const { return good_; }

 private:
  std::string_view text_;
  bool good_ = true;
};

bool write_at(int file, off_t at, const void* data, std::size_t bytes) {
  return ::pwrite(file, data, bytes, at) == static_cast<ssize_t>(bytes);
}

}  // namespace

void CommitLedger::strike(std::size_t half) {
  if (file_ < 0) return;
  const std::lock_guard lock(mutex_);
  steps_[half] = -1;
  const Head nothing;
  (void)write_at(file_, static_cast<off_t>(half) * kPlace, &nothing, sizeof nothing);
}

void CommitLedger::strike_all() {
  strike(0);
  strike(1);
  const std::lock_guard lock(mutex_);
  has_constants_ = writes_ = false;
  constants_.clear();
}

bool CommitLedger::has_constants() const {
  const std::lock_guard lock(mutex_);
  return has_constants_;
}

void CommitLedger::set_constants(std::span<const std::size_t> which,
                                 std::span<const Checkpoint::Committed> places) {
  if (file_ < 0) return;
  std::map<std::size_t, Constant> constants;
  std::uint64_t at = 0;
  bool written = true;
  for (const auto entry : which) {
    const auto& bytes = places[entry].host;
    written = written && at + bytes.size() < kMost &&
              write_at(file_, kConstants + static_cast<off_t>(at), bytes.data(), bytes.size());
    if (written) constants[entry] = {at, bytes.size(), checksum(bytes)};
    at += bytes.size();
  }
  const std::lock_guard lock(mutex_);
  has_constants_ = true;
  writes_ = written;
  constants_ = std::move(constants);
}

void CommitLedger::enter(std::size_t half, std::int64_t step, int part, int parts,
                         std::span<const SavedEntry> entries,
                         std::span<const Checkpoint::Committed> places) {
  if (file_ < 0) return;
  const std::lock_guard lock(mutex_);
  steps_[half] = -1;
  if (!writes_) return;
  std::string text;
  put(text, incarnation_);
  put(text, step);
  put(text, static_cast<std::int32_t>(part));
  put(text, static_cast<std::int32_t>(parts));
  put(text, static_cast<std::uint64_t>(entries.size()));
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto& entry = entries[i];
    put(text, static_cast<std::uint64_t>(entry.name.size()));
    text += entry.name;
    put(text, entry.dtype ? static_cast<std::int32_t>(*entry.dtype) : -1);
    put(text, entry.element_bytes);
    put(text, entry.count);
    put(text, places[i].device);
    const auto constant = constants_.find(i);
    put(text, static_cast<std::uint32_t>(constant != constants_.end()));
    if (constant != constants_.end()) {
      put(text, constant->second);
      continue;
    }
    put(text, static_cast<std::uint64_t>(places[i].host.size()));
    text.append(reinterpret_cast<const char*>(places[i].host.data()), places[i].host.size());
  }
  const Head head{.bytes = text.size(), .crc = checksum(std::as_bytes(std::span(text)))};
  const auto at = static_cast<off_t>(half) * kPlace;
  if (text.size() < kMost && write_at(file_, at, &head, sizeof head) &&
      write_at(file_, at + static_cast<off_t>(sizeof head), text.data(), text.size()))
    steps_[half] = step;
}

void CommitLedger::complete(std::size_t half, std::int64_t step) {
  const std::lock_guard lock(mutex_);
  if (file_ < 0 || steps_[half] != step) return;
  const std::uint64_t counts = 1;
  (void)write_at(file_, static_cast<off_t>(half) * kPlace, &counts, sizeof counts);
}

/// False: it is damaged.
bool CommitLedger::take_constant(int file, const Constant& constant, std::vector<std::byte>& host) {
  if (constant.bytes >= kMost || constant.offset >= kMost) return false;
  host.resize(constant.bytes);
  return ::pread(file, host.data(), host.size(),
                 kConstants + static_cast<off_t>(constant.offset)) ==
             static_cast<ssize_t>(host.size()) &&
         checksum(host) == constant.crc;
}

std::vector<CommitLedger::Commit> CommitLedger::read(int file) {
  std::vector<Commit> commits;
  for (off_t half = 0; half < 2; ++half) {
    Head head;
    if (::pread(file, &head, sizeof head, half * kPlace) != sizeof head || head.counts != 1 ||
        head.bytes >= kMost) {
      continue;
    }
    std::string text(head.bytes, '\0');
    if (::pread(file, text.data(), text.size(), half * kPlace + static_cast<off_t>(sizeof head)) !=
            static_cast<ssize_t>(text.size()) ||
        checksum(std::as_bytes(std::span(text))) != head.crc) {
      continue;
    }
    Reader reader(text);
    Commit commit;
    commit.incarnation = reader.take<std::uint32_t>();
    commit.step = reader.take<std::int64_t>();
    commit.part = reader.take<std::int32_t>();
    commit.parts = reader.take<std::int32_t>();
    const auto count = reader.take<std::uint64_t>();
    bool whole = true;
    for (std::uint64_t i = 0; i < count && reader.good(); ++i) {
      auto& entry = commit.entries.emplace_back();
      entry.saved.name = reader.take_bytes(reader.take<std::uint64_t>());
      if (const auto dtype = reader.take<std::int32_t>(); dtype >= 0)
        entry.saved.dtype = static_cast<DType>(dtype);
      entry.saved.element_bytes = reader.take<std::uint64_t>();
      entry.saved.count = reader.take<std::uint64_t>();
      entry.where.device = reader.take<Operand>();
      if (reader.take<std::uint32_t>() != 0) {
        whole = whole && take_constant(file, reader.take<Constant>(), entry.where.host);
        continue;
      }
      const auto host = std::as_bytes(std::span(reader.take_bytes(reader.take<std::uint64_t>())));
      entry.where.host.assign(host.begin(), host.end());
    }
    if (reader.good() && whole) commits.push_back(std::move(commit));
  }
  return commits;
}

}  // namespace troupe::rank_process
