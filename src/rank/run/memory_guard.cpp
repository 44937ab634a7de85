#include "rank/run/memory_guard.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <random>
#include <string_view>
#include <utility>

namespace troupe::rank_process {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kPieceBytes = 4u << 20;
constexpr std::int64_t kMostPieces = 4096;  ///< of a look

Operand range_of(const Buffers::State& state, std::uint32_t buffer, std::uint64_t first,
                 std::uint64_t bytes) {
  return {state.region, buffer, state.generation, 0, state.offset + first, bytes};
}

}  // namespace

Result<void> MemoryGuard::look(std::int64_t step) {
  if (auto sound = take_answers(); !sound) return sound;
  ask(step, allowance());
  return {};
}

Result<void> MemoryGuard::look_at_end(std::int64_t step) {
  if (auto sound = take_answers(); !sound) return sound;
  next_ = {0, 0};
  ask(step, ~std::uint64_t{0});
  return take_answers();
}

Result<void> MemoryGuard::take_answers() {
  if (!answered_) return {};
  const auto asked = std::exchange(asked_, {});
  const auto answered = std::exchange(answered_, std::nullopt)->wait();
  // A fault: whatever it has taken is not known any more.
  if (!answered.ok()) return known_.clear(), Result<void>();
  for (std::size_t i = 0; i < asked.size(); ++i) {
    auto now = asked[i];
    now.seen.digest = answers_[i];
    const auto before = known_.find(now.place);
    if (before != known_.end() && before->second.state == now.seen.state &&
        before->second.bytes == now.seen.bytes && before->second.digest != now.seen.digest)
      return changed(now, before->second);
    known_[now.place] = now.seen;
  }
  return {};
}

void MemoryGuard::ask(std::int64_t step, std::uint64_t most_bytes) {
  const Device device(core_->shared_device());
  auto& buffers = core_->device().port().buffers();
  const auto commands = core_->device().flight().recorded();
  const auto own = digests_.length() > 0 ? digests_.operand().buffer : ~0u;
  std::vector<Asked> pieces;
  const auto states = buffers.states();
  // True: there is room for no more.
  const auto add = [&](const Place& from, const Place& end) {
    for (const auto& [buffer, state] : states) {
      if (buffer == own) continue;
      for (std::uint64_t first = 0; first < state.bytes; first += kPieceBytes) {
        const Place place{buffer, first};
        if (place < from || place >= end) continue;
        const auto bytes = std::min(kPieceBytes, state.bytes - first);
        if (bytes > most_bytes || std::ssize(pieces) == kMostPieces) return true;
        most_bytes -= bytes;
        pieces.push_back({place, {state, bytes, 0, step, commands}});
      }
    }
    return false;
  };
  const auto from = std::exchange(next_, {0, 0});
  if (!add(from, {~0u, 0})) (void)add({0, 0}, from);
  if (pieces.empty()) return;
  next_ = {pieces.back().place.buffer, pieces.back().place.first + 1};
  if (digests_.length() == 0) {
    digests_ = device.alloc<std::uint64_t>(kMostPieces, "digests of guarded memory");
    answers_ = device.pinned<std::uint64_t>(kMostPieces);
  }
  if (!digests_.valid()) digests_.renew();
  std::int64_t slot = 0;
  std::vector<Future<void>> all;
  for (const auto& piece : pieces) {
    const auto range =
        range_of(piece.seen.state, piece.place.buffer, piece.place.first, piece.seen.bytes);
    const auto result = digests_.slice(slot++, 1);
    all.push_back(
        detail::submit(device.submitter(), memory::Digest{DType::u8, range, result.operand()}));
  }
  // A buffer that another thread has had written, or freed, meanwhile tells nothing.
  std::map<std::uint32_t, Buffers::State> later;
  for (const auto& [buffer, state] : buffers.states()) later.emplace(buffer, state);
  for (auto& piece : pieces) {
    const auto now = later.find(piece.place.buffer);
    if (now == later.end() || now->second != piece.seen.state) piece.seen.state = {};
  }
  asked_ = std::move(pieces);
  all.push_back(device.copy(digests_.slice(0, slot), answers_));
  answered_ =
      when_all(std::move(all));  // a digest that was refused leaves an older one in its slot
}

std::uint64_t MemoryGuard::allowance() {
  const auto now = Clock::now();
  const auto before = std::exchange(last_look_, now);
  if (bytes_per_second_ == 0) {
    // Once: how fast digests are, of a buffer that is large enough to tell.
    const Device device(core_->shared_device());
    constexpr std::int64_t kBytes = 16 << 20;
    auto room = device.try_alloc<std::uint8_t>(kBytes, "digests of guarded memory");
    if (!room.ok()) return kPieceBytes;
    const auto result = device.alloc<std::uint64_t>(1);
    device.fill(*room, std::uint8_t{0});
    if (!device.digest(*room, result).wait().ok()) return kPieceBytes;
    const auto begin = Clock::now();
    for (int i = 0; i < 4; ++i) (void)device.digest(*room, result);
    if (!device.digest(*room, result).wait().ok()) return kPieceBytes;
    const std::chrono::duration<double> time = Clock::now() - begin;
    bytes_per_second_ = 5 * kBytes / std::max(time.count(), 1e-9);
    return kPieceBytes;
  }
  const std::chrono::duration<double> since = now - before;
  return std::max(kPieceBytes,
                  static_cast<std::uint64_t>(budget_ * since.count() * bytes_per_second_));
}

std::string MemoryGuard::commands_since(std::uint64_t number) const {
  auto& flight = core_->device().flight();
  const auto all = flight.recorded() - number;
  const auto records = flight.records();
  const auto kept = std::min<std::uint64_t>(all, records.size());
  std::map<std::string_view, std::uint64_t> counts;
  for (auto i = records.size() - kept; i < records.size(); ++i) {
    const auto* const info = find_operation(records[i].opcode).info;
    if (info != nullptr && !info->name.starts_with("memory.digest")) ++counts[info->name];
  }
  if (counts.empty()) return {};
  std::vector<std::pair<std::uint64_t, std::string_view>> order;
  for (const auto& [name, count] : counts) order.emplace_back(count, name);
  std::sort(order.begin(), order.end(), std::greater<>());
  std::string text;
  for (const auto& [count, name] : order)
    text += fmt::format("{}{} x {}", text.empty() ? "" : ", ", count, name);
  return fmt::format("; {}commands since: {}", kept < all ? fmt::format("the last {} ", kept) : "",
                     text);
}

Error MemoryGuard::changed(const Asked& now, const Seen& before) const {
  const auto& buffers = core_->device().port().buffers();
  const auto range = range_of(now.seen.state, now.place.buffer, now.place.first, now.seen.bytes);
  return {Errc::corrupt, 0,
          fmt::format("rank {}: {} has changed in its bytes {} to {} between the commits of steps "
                      "{} and {}, and no command was to write it: a kernel or a function has "
                      "written beyond its operands, or the memory is bad{}",
                      core_->mpi().rank(), buffers.describe(range), now.place.first,
                      now.place.first + now.seen.bytes - 1, before.step, now.seen.step,
                      commands_since(before.commands))};
}

bool MemoryGuard::stray(std::int64_t step, const std::vector<std::uint32_t>& but) {
  std::vector<std::pair<Place, Seen>> pieces;
  for (const auto& [buffer, state] : core_->device().port().buffers().states()) {
    if (std::find(but.begin(), but.end(), buffer) != but.end()) continue;
    for (const auto& known : known_)
      if (known.first.buffer == buffer && known.second.state == state) pieces.push_back(known);
  }
  if (pieces.empty()) return false;
  std::mt19937_64 random(static_cast<std::uint64_t>(step) * 1'000'003 +
                         static_cast<std::uint64_t>(core_->mpi().rank()));
  const auto& [place, seen] = pieces[random() % pieces.size()];
  const auto range = range_of(seen.state, place.buffer, place.first, seen.bytes);
  (void)detail::submit(Device(core_->shared_device()).submitter(),
                       memory::StrayWrite{DType::u8, random() % (8 * seen.bytes), range});
  return true;
}

}  // namespace troupe::rank_process
