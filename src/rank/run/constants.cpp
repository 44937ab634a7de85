#include "rank/run/constants.hpp"

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <utility>

#include "rank/run/corruptions.hpp"
#include "rank/store/compare.hpp"

namespace troupe::rank_process {
namespace {

constexpr std::uint64_t kAtOnceBytes = 16u << 20;  ///< bytes that go to the host, and back

/// Calls copy(piece of the range, as many bytes of pinned memory, where that begins in the range)
/// for each piece.
template <class Copy>
void for_each_piece(const Device& device, const Operand& range, Copy&& copy) {
  if (range.bytes == 0) return;
  const auto room =
      device.pinned<std::uint8_t>(static_cast<std::int64_t>(std::min(range.bytes, kAtOnceBytes)));
  for (std::uint64_t first = 0; first < range.bytes; first += kAtOnceBytes) {
    auto piece = range;
    piece.offset += first;
    piece.bytes = std::min(kAtOnceBytes, range.bytes - first);
    copy(piece, room, static_cast<std::ptrdiff_t>(first));
  }
}

void wait_for(const Device& device, const Operand& from, const Operand& to) {
  detail::submit(device.submitter(), memory::Copy{DType::u8, from, to}).get();
}

}  // namespace

struct Constants::Told {
  std::int32_t constant = -1;  ///< -1: none has changed
  std::int32_t reserved = 0;
  std::uint64_t element = 0, count = 0;
  ShortText wrong = {}, right = {};
  Place place = {};
};

std::vector<std::optional<Buffers::State>> Constants::states() const {
  const auto all = core_->device().port().buffers().states();
  std::vector<std::optional<Buffers::State>> mine;
  for (const auto& constant : checkpoint_->guarded()) {
    const auto buffer = constant.range().buffer;
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.first == buffer; });
    mine.push_back(found != all.end() ? std::optional(found->second) : std::nullopt);
  }
  return mine;
}

std::vector<std::uint64_t> Constants::digests() {
  const auto& all = checkpoint_->guarded();
  const Device device(core_->shared_device());
  const auto count = std::ssize(all);
  if (digests_.length() < count)
    digests_ = device.alloc<std::uint64_t>(count, "digests of constants");
  if (!digests_.valid()) digests_.renew();
  device.fill(digests_, std::uint64_t{0});
  for (std::int64_t i = 0; i < count; ++i) {
    const auto range = all[static_cast<std::size_t>(i)].range();
    if (range.bytes == 0) continue;
    (void)detail::submit(device.submitter(),
                         memory::Digest{DType::u8, range, digests_.slice(i, 1).operand()});
  }
  return device.download(digests_.slice(0, count));
}

std::vector<std::byte> Constants::download(const Operand& range) const {
  std::vector<std::byte> bytes(range.bytes);
  const Device device(core_->shared_device());
  for_each_piece(device, range, [&](const Operand& piece, const auto& room, std::ptrdiff_t first) {
    wait_for(device, piece, room.operand(0, piece.bytes));
    std::memcpy(bytes.data() + first, room.data(), piece.bytes);
  });
  return bytes;
}

void Constants::upload(const std::vector<std::byte>& bytes, const Operand& range) const {
  const Device device(core_->shared_device());
  for_each_piece(device, range, [&](const Operand& piece, const auto& room, std::ptrdiff_t first) {
    std::memcpy(room.data(), bytes.data() + first, piece.bytes);
    wait_for(device, room.operand(0, piece.bytes), piece);
  });
}

void Constants::learn() {
  if (!any()) return;
  const auto& all = checkpoint_->guarded();
  if (known_.size() != all.size()) untold_.reset();  // the world has others now
  known_.resize(all.size());
  const auto now = states();
  const auto is_new = [&](std::size_t i) {
    return now[i] && (!known_[i] || (!known_[i]->mending && known_[i]->state != *now[i]));
  };
  std::vector<std::size_t> fresh;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (is_new(i)) fresh.push_back(i);
  if (fresh.empty()) return;
  const auto values = digests();
  for (const auto i : fresh) {
    known_[i] = Known{*now[i], values[i], {}};
    if (!all[i].fill) known_[i]->copy = download(all[i].range());
  }
}

std::vector<Corruption> Constants::mend(std::int64_t first, std::int64_t last) {
  const auto& all = checkpoint_->guarded();
  for (std::size_t i = 0; i < all.size(); ++i)
    if (known_[i] && known_[i]->mending)
      (void)core_->device().port().buffers().restore(all[i].range());
  const auto now = states();
  const auto values = digests();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!known_[i] || known_[i]->mending) continue;
    if (now[i] != known_[i]->state)
      throw Exception({Errc::invalid, 0,
                       "constant " + all[i].name + " of the checkpoint has been written in steps " +
                           std::to_string(first) + " to " + std::to_string(last) +
                           ": what steps write is no constant"});
  }
  for (std::size_t i = 0; i < all.size(); ++i)
    if (known_[i] && (known_[i]->mending || values[i] != known_[i]->digest)) mend_one(i);
  auto mine = untold_ ? *untold_ : Told();
  std::vector<Corruption> found;
  const auto changed = exchange_->gather(static_cast<std::uint8_t>(mine.constant >= 0));
  if (std::find(changed.begin(), changed.end(), 1) == changed.end()) return found;
  mine.place = place_of(*core_);
  const auto told = exchange_->gather(mine);
  untold_.reset();
  for (std::size_t member = 0; member < told.size(); ++member) {
    const auto& one = told[member];
    if (one.constant < 0) continue;
    found.push_back({.found = Corruption::Found::constant,
                     .rank = core_->members().ranks()[member],
                     .gpu = one.place.gpu,
                     .host = one.place.host,
                     .first_step = first,
                     .last_step = last,
                     .entry = all[static_cast<std::size_t>(one.constant)].name,
                     .element = one.element,
                     .count = one.count,
                     .wrong = one.wrong.text,
                     .right = one.right.text});
  }
  return found;
}

void Constants::mend_one(std::size_t index) {
  const auto& constant = checkpoint_->guarded()[index];
  auto& known = *known_[index];
  const auto range = constant.range();
  const auto before = download(range);
  const bool first = !std::exchange(known.mending, true);
  auto told = untold_ ? *untold_ : Told();
  if (told.constant < 0) told.constant = static_cast<std::int32_t>(index);
  untold_ = std::make_shared<Told>(told);
  if (constant.fill) {
    constant.fill();
  } else {
    upload(known.copy, range);
  }
  const auto after = download(constant.range());
  if (digests()[index] != known.digest)
    throw Exception({Errc::corrupt, 0,
                     "constant " + constant.name + " of the checkpoint has changed, and " +
                         (constant.fill ? "its function writes something else than at first"
                                        : "cannot be written anew: the memory is bad")});
  known.state = states()[index].value();
  known.mending = false;
  const auto bytes = size_of(constant.dtype);
  const auto how =
      compare({constant.name, constant.dtype, bytes, range.bytes / bytes}, before, after, 0);
  if (!how || !first || told.constant != static_cast<std::int32_t>(index)) return;
  told.element = how->first;
  told.count = how->count;
  told.wrong.put(how->before);
  told.right.put(how->after);
  untold_ = std::make_shared<Told>(told);
}

std::vector<std::uint32_t> Constants::buffers() const {
  std::vector<std::uint32_t> all;
  for (const auto& constant : checkpoint_->guarded()) all.push_back(constant.range().buffer);
  return all;
}

bool Constants::stray(std::int64_t step) {
  std::vector<Operand> ranges;
  for (const auto& constant : checkpoint_->guarded())
    if (constant.range().bytes > 0) ranges.push_back(constant.range());
  if (ranges.empty()) return false;
  std::mt19937_64 random(static_cast<std::uint64_t>(step) * 1'000'003 +
                         static_cast<std::uint64_t>(core_->mpi().rank()));
  const auto& range = ranges[random() % ranges.size()];
  (void)detail::submit(Device(core_->shared_device()).submitter(),
                       memory::StrayWrite{DType::u8, random() % (8 * range.bytes), range});
  return true;
}

}  // namespace troupe::rank_process
