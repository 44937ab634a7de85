#include "rank/store/memory_state.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "common/core/log.hpp"

namespace troupe::rank_process {

namespace {

/// A rank's request to the holder of a part.
struct Wish {
  std::int64_t part = 0;
  PieceRange range{};
};

}  // namespace

HeldPart HeldPart::in_memory(std::int64_t step, Image image) {
  HeldPart part{.step = step};
  if (image == nullptr) return part;
  if (const auto head = head_bytes(*image); head.ok() && *head <= image->size())
    part.head.assign(image->begin(), image->begin() + static_cast<std::ptrdiff_t>(*head));
  part.bytes = image->size();
  part.image = [image = std::move(image)]() -> Result<Image> {
    const auto table = open_image(*image);
    return table.ok() ? Result<Image>(image) : table.error();
  };
  return part;
}

MemoryState::States MemoryState::gather(const HostGroup& group, const std::vector<HeldPart>& held) {
  // For each part that is held here: its size, the size of its head, its state, and the head.
  std::string mine;
  for (const auto& one : held) {
    if (one.step < 0) continue;
    mine += std::to_string(one.bytes) + " " + std::to_string(one.head.size()) + " " +
            std::to_string(one.state) + " ";
    mine.append(reinterpret_cast<const char*>(one.head.data()), one.head.size());
  }
  States states;
  const auto all = group.gather_text(mine);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    auto rest = std::string_view(all[rank]);
    const auto number = [&rest] {
      const auto value = std::stoull(std::string(rest.substr(0, rest.find(' '))));
      rest.remove_prefix(rest.find(' ') + 1);
      return value;
    };
    while (!rest.empty()) {
      const auto bytes = number(), head_size = number();
      const auto id = static_cast<std::uint32_t>(number());
      const auto head = std::as_bytes(std::span(rest.substr(0, head_size)));
      rest.remove_prefix(head_size);
      auto table = read_table(head, bytes);
      if (!table.ok()) continue;
      auto& state = states[{table->step, table->parts, id}];
      const int part = table->part, holder = static_cast<int>(rank);
      // A rank's own part is best had from itself.
      if (const auto known = state.find(part); known == state.end() || part == holder)
        state.insert_or_assign(part, Part{std::move(*table), holder});
    }
  }
  std::erase_if(states,
                [](const auto& state) { return std::ssize(state.second) != state.first.parts; });
  return states;
}

std::int64_t MemoryState::newest(const HostGroup& group, const std::vector<HeldPart>& held) {
  const auto states = gather(group, held);
  return states.empty() ? -1 : states.rbegin()->first.step;
}

Result<std::shared_ptr<MemoryState>> MemoryState::find(const HostGroup& group,
                                                       std::vector<HeldPart> held) {
  for (;;) {
    auto states = gather(group, held);
    if (states.empty())
      return Error{Errc::invalid, 0, "no state is complete in the memory of partners"};
    auto& [which, found] = *states.rbegin();
    std::map<int, Image> images;
    std::uint8_t damaged = 0;
    for (auto& one : held) {
      if (one.step != which.step || one.state != which.state) continue;
      const auto table = read_table(one.head, one.bytes);
      if (!table.ok() || table->parts != which.parts ||
          found.at(table->part).holder != group.rank() || images.contains(table->part)) {
        continue;
      }
      auto image = one.image();
      if (image.ok()) {
        images[table->part] = std::move(*image);
      } else {
        log::warn("checkpoint", "part {} of the state of step {} is no good: {}", table->part,
                  which.step, image.error().message);
        one.step = -1;
        damaged = 1;
      }
    }
    const auto all = group.gather(damaged);
    if (std::find(all.begin(), all.end(), 1) != all.end()) continue;
    std::vector<Part> parts;
    for (auto& [part, where] : found) parts.push_back(std::move(where));
    return std::shared_ptr<MemoryState>(
        new MemoryState(group, which.state, std::move(images), std::move(parts)));
  }
}

const PartTable* MemoryState::own() const {
  const auto mine = std::find_if(parts_.begin(), parts_.end(),
                                 [&](const Part& part) { return part.holder == group_->rank(); });
  return mine != parts_.end() ? &mine->table : nullptr;
}

std::span<const std::byte> MemoryState::own_image() const {
  return *images_.at(own()->part);
}

bool MemoryState::is_spread() const {
  std::vector<int> holders;
  for (const auto& part : parts_) holders.push_back(part.holder);
  std::sort(holders.begin(), holders.end());
  return std::adjacent_find(holders.begin(), holders.end()) == holders.end();
}

Result<std::vector<SavedEntry>> MemoryState::entries(int part) {
  if (part < 0 || part >= parts())
    return Error{Errc::invalid, 0, "the saved state has no part " + std::to_string(part)};
  std::vector<SavedEntry> entries;
  for (const auto& place : parts_[static_cast<std::size_t>(part)].table.places)
    entries.push_back(place.entry);
  return entries;
}

bool MemoryState::anyone_reads(bool this_one) const {
  const auto all = group_->gather(static_cast<std::uint8_t>(this_one));
  return std::find(all.begin(), all.end(), 1) != all.end();
}

Result<std::vector<std::vector<std::byte>>> MemoryState::read(std::span<const SavedPiece> pieces) {
  (void)anyone_reads(true);
  Result<void> outcome;
  std::vector<std::vector<std::byte>> wishes(static_cast<std::size_t>(group_->size()));
  std::vector<int> holders;
  for (const auto& piece : pieces) {
    const auto range = find_piece(piece);
    if (!range.ok()) outcome = range.error();
    if (!outcome.ok()) break;
    const auto holder = parts_[static_cast<std::size_t>(piece.part)].holder;
    const Wish asked{piece.part, *range};
    const auto bytes = std::as_bytes(std::span(&asked, 1));
    auto& wish = wishes[static_cast<std::size_t>(holder)];
    wish.insert(wish.end(), bytes.begin(), bytes.end());
    holders.push_back(holder);
  }
  const auto answers = group_->all_to_all(answer(group_->all_to_all(wishes)));
  if (!outcome.ok()) return outcome.error();
  std::vector<std::vector<std::byte>> all;
  std::vector<std::size_t> taken(answers.size());
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const auto holder = static_cast<std::size_t>(holders[i]);
    const auto bytes = find_piece(pieces[i])->bytes;
    const auto first = answers[holder].begin() + static_cast<std::ptrdiff_t>(taken[holder]);
    all.emplace_back(first, first + static_cast<std::ptrdiff_t>(bytes));
    taken[holder] += bytes;
  }
  return all;
}

void MemoryState::serve() {
  const std::vector<std::vector<std::byte>> nothing(static_cast<std::size_t>(group_->size()));
  while (anyone_reads(false)) (void)group_->all_to_all(answer(group_->all_to_all(nothing)));
}

Result<PieceRange> MemoryState::find_piece(const SavedPiece& piece) const {
  if (piece.part < 0 || piece.part >= parts())
    return Error{Errc::invalid, 0, "the saved state has no part " + std::to_string(piece.part)};
  return locate(parts_[static_cast<std::size_t>(piece.part)].table, piece);
}

std::vector<std::vector<std::byte>> MemoryState::answer(
    const std::vector<std::vector<std::byte>>& wishes) const {
  std::vector<std::vector<std::byte>> answers(wishes.size());
  for (std::size_t rank = 0; rank < wishes.size(); ++rank) {
    for (std::size_t at = 0; at < wishes[rank].size(); at += sizeof(Wish)) {
      Wish wish;
      std::memcpy(&wish, wishes[rank].data() + at, sizeof wish);
      const auto& image = *images_.at(static_cast<int>(wish.part));
      const auto first = image.begin() + static_cast<std::ptrdiff_t>(wish.range.offset);
      answers[rank].insert(answers[rank].end(), first,
                           first + static_cast<std::ptrdiff_t>(wish.range.bytes));
    }
  }
  return answers;
}

}  // namespace troupe::rank_process
