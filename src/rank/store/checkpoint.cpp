#include <troupe/checkpoint.hpp>

#include <algorithm>

namespace troupe {

void Checkpoint::add_entry(SavedEntry saved, Entry entry) {
  detail::require(!saved.name.empty() && saved.name.size() <= kSavedNameBytes &&
                      saved.name.find('\0') == std::string::npos,
                  "the name of a checkpoint's entry has 1 to " + std::to_string(kSavedNameBytes) +
                      " bytes, none of them 0: \"" + saved.name + "\"");
  detail::require(std::none_of(saved_.begin(), saved_.end(),
                               [&](const SavedEntry& other) { return other.name == saved.name; }),
                  "two entries of a checkpoint have the name " + saved.name);
  saved_.push_back(std::move(saved));
  looks_.emplace_back();
  entries_.push_back(std::move(entry));
}

Future<void> Checkpoint::move_all(Move move, std::size_t half) {
  std::vector<Future<void>> parts;
  for (auto& entry : entries_) parts.push_back(entry(move, half, {}));
  if (move != Move::commit)
    for (const auto& make_valid : scratch_) make_valid();
  return when_all(std::move(parts));
}

Future<void> Checkpoint::move_all(Move move, std::size_t half,
                                  const PinnedBuffer<std::uint8_t>& memory,
                                  std::span<const std::uint64_t> offsets) {
  detail::require(offsets.size() == entries_.size(),
                  "a checkpoint of " + std::to_string(entries_.size()) + " entries, and " +
                      std::to_string(offsets.size()) + " offsets");
  std::vector<Future<void>> parts;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const auto bytes = saved_[i].count * saved_[i].element_bytes;
    if (bytes == 0) continue;
    parts.push_back(entries_[i](
        move, half,
        {.host = memory.data() + offsets[i], .pinned = memory.operand(offsets[i], bytes)}));
  }
  return when_all(std::move(parts));
}

Future<void> Checkpoint::commit(std::int64_t step) {
  current_ = 1 - current_;
  steps_[current_] = step;
  return move_all(Move::commit, current_);
}

void Checkpoint::forget() {
  steps_[0] = steps_[1] = -1;
  for (const auto& make_valid : scratch_) make_valid();
}

void Checkpoint::renew() {
  (void)move_all(Move::renew, 0);
}

void Checkpoint::clear() {
  entries_.clear();
  saved_.clear();
  looks_.clear();
  constants_.clear();
  guarded_.clear();
  scratch_.clear();
  named_.clear();
  steps_[0] = steps_[1] = -1;
}

Result<void> Checkpoint::rollback(std::int64_t step) {
  for (std::size_t half = 0; half < 2; ++half) {
    if (steps_[half] != step || step < 0) continue;
    steps_[1 - half] = -1;
    current_ = half;
    return move_all(Move::rollback, half).wait();
  }
  return Error{Errc::internal, 0, "no commit of step " + std::to_string(step) + " to go back to"};
}

void Checkpoint::prepare(const PinnedBuffer<std::uint8_t>& memory,
                         std::span<const std::uint64_t> offsets) {
  (void)move_all(Move::prepare, 0, memory, offsets);
}

Future<void> Checkpoint::save(std::int64_t step, const PinnedBuffer<std::uint8_t>& memory,
                              std::span<const std::uint64_t> offsets) {
  for (std::size_t half = 0; half < 2; ++half) {
    if (steps_[half] == step && step >= 0) return move_all(Move::save, half, memory, offsets);
  }
  return Future<void>(
      Error{Errc::stale, 0, "the commit of step " + std::to_string(step) + " is gone"});
}

Result<std::vector<Checkpoint::Committed>> Checkpoint::committed(std::int64_t step) {
  auto all = committed_values(step);
  if (!all.ok()) return all;
  for (const auto entry : constants_) {
    auto& host = (*all)[entry].host;
    host.resize(saved_[entry].count * saved_[entry].element_bytes);
    (void)entries_[entry](Move::prepare, 0, {.host = reinterpret_cast<std::uint8_t*>(host.data())});
  }
  return all;
}

Result<std::vector<Checkpoint::Committed>> Checkpoint::committed_values(std::int64_t step) {
  for (std::size_t half = 0; half < 2; ++half) {
    if (steps_[half] != step || step < 0) continue;
    std::vector<Committed> all(entries_.size());
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (saved_[i].dtype) {
        (void)entries_[i](Move::locate, half, {.range = &all[i].device});
        continue;
      }
      if (std::binary_search(constants_.begin(), constants_.end(), i)) continue;
      all[i].host.resize(saved_[i].count * saved_[i].element_bytes);
      auto* const host = reinterpret_cast<std::uint8_t*>(all[i].host.data());
      (void)entries_[i](Move::prepare, half, {.host = host});
      (void)entries_[i](Move::save, half, {.host = host});
    }
    return all;
  }
  return Error{Errc::stale, 0, "the commit of step " + std::to_string(step) + " is gone"};
}

Operand Checkpoint::accept(std::size_t entry) {
  detail::require(entry < saved_.size() && saved_[entry].dtype.has_value(),
                  "Checkpoint::accept: only buffers are loaded in device memory");
  Operand range;
  (void)entries_[entry](Move::accept, 0, {.range = &range});
  return range;
}

Result<void> Checkpoint::set_aside() {
  steps_[1 - current_] = -1;
  return move_all(Move::commit, 1 - current_).wait();
}

Operand Checkpoint::range(std::size_t entry, std::size_t half) {
  Operand range;
  (void)entries_[entry](Move::locate, half, {.range = &range});
  return range;
}

Result<std::vector<std::byte>> Checkpoint::contents(std::size_t entry, std::size_t half) {
  std::vector<std::byte> bytes(saved_[entry].count * saved_[entry].element_bytes);
  if (bytes.empty()) return bytes;
  try {
    auto* const host = reinterpret_cast<std::uint8_t*>(bytes.data());
    if (auto looked = entries_[entry](Move::look, half, {.host = host}).wait(); !looked)
      return looked.error();
  } catch (const Exception& e) {
    return e.error();
  }
  return bytes;
}

std::vector<std::uint32_t> Checkpoint::buffers() const {
  std::vector<std::uint32_t> list;
  for (const auto& name : named_) list.push_back(name());
  return list;
}

Result<void> Checkpoint::load(std::size_t entry, std::span<const std::byte> saved) {
  detail::require(
      entry < saved_.size() && saved.size() == saved_[entry].count * saved_[entry].element_bytes,
      "Checkpoint::load: a saved entry of another size");
  if (saved.empty()) return {};
  return entries_[entry](Move::load, 0, {.saved = saved.data()}).wait();
}

}  // namespace troupe
