#include "rank/world/restart.hpp"

#include <algorithm>
#include <cstring>
#include <map>

#include "common/core/log.hpp"
#include "rank/store/disk_state.hpp"

namespace troupe::rank {
namespace {

/// The steps to try and their manifests as rank 0 sees them, newest first: a folder on a network
/// may look different from another node for a while. A manifest that cannot be read is one problem.
struct Candidate {
  std::int64_t step;
  std::optional<Manifest> manifest;
  std::string problem;
};

std::vector<Candidate> candidates(MpiSession& mpi, const Generations& generations,
                                  std::int64_t wanted) {
  std::vector<std::int64_t> steps;
  if (mpi.rank() == 0) steps = generations.steps();
  if (wanted >= 0) std::erase_if(steps, [&](std::int64_t step) { return step != wanted; });
  std::string list;
  for (const auto step : steps) list += std::to_string(step) + " ";
  list = mpi.gather_text(list)[0];
  std::vector<Candidate> found;
  for (std::size_t at = 0; at < list.size(); at = list.find(' ', at) + 1) {
    Candidate candidate{std::stoll(list.substr(at)), {}, {}};
    Result<Manifest> manifest = Error{};
    if (mpi.rank() == 0) manifest = generations.manifest(candidate.step);
    const auto bad = mpi.rank() == 0 && !manifest.ok() ? manifest.error().message : std::string();
    candidate.problem = mpi.gather_text(bad)[0];
    const auto text = mpi.gather_text(manifest.ok() ? to_json(*manifest) : "")[0];
    if (candidate.problem.empty()) candidate.manifest = parse_manifest(text).take();
    found.push_back(std::move(candidate));
  }
  return found;
}

/// What is wrong with the files of a state, over all ranks; empty: nothing.
std::vector<std::string> problems(MpiSession& mpi, DiskState& state) {
  std::string mine;
  for (int part = mpi.rank(); part < state.parts(); part += mpi.size()) {
    const auto verified = state.verify(part);
    if (!verified.ok()) mine += (mine.empty() ? "" : "; ") + verified.error().message;
  }
  auto all = mpi.gather_text(mine);
  std::erase_if(all, [](const auto& text) { return text.empty(); });
  return all;
}

/// A state in the memory of the ranks of this world.
class PartnerState final : public detail::StateSource {
 public:
  struct Part {
    PartTable table;
    int holder;
  };

  PartnerState(MpiSession& mpi, std::shared_ptr<const std::vector<std::byte>> held,
               std::vector<Part> parts)
      : mpi_(&mpi), held_(std::move(held)), parts_(std::move(parts)) {}

  [[nodiscard]] std::int64_t step() const override { return parts_[0].table.step; }
  [[nodiscard]] int parts() const override { return static_cast<int>(parts_.size()); }

  Result<std::vector<SavedEntry>> entries(int part) override {
    if (part < 0 || part >= parts())
      return Error{Errc::invalid, 0, "the saved state has no part " + std::to_string(part)};
    std::vector<SavedEntry> entries;
    for (const auto& place : parts_[static_cast<std::size_t>(part)].table.places)
      entries.push_back(place.entry);
    return entries;
  }

  /// Wishes go to the holders, and bytes come back: two exchanges, whoever wants what.
  Result<std::vector<std::vector<std::byte>>> read(std::span<const SavedPiece> pieces) override {
    Result<void> outcome;
    std::vector<std::vector<std::byte>> wishes(static_cast<std::size_t>(mpi_->size()));
    std::vector<int> holders;
    for (const auto& piece : pieces) {
      const auto range = find(piece);
      if (!range.ok()) outcome = range.error();
      if (!outcome.ok()) break;
      const auto holder = parts_[static_cast<std::size_t>(piece.part)].holder;
      const auto bytes = std::as_bytes(std::span(&*range, 1));
      auto& wish = wishes[static_cast<std::size_t>(holder)];
      wish.insert(wish.end(), bytes.begin(), bytes.end());
      holders.push_back(holder);
    }
    const auto answers = mpi_->all_to_all(serve(mpi_->all_to_all(wishes)));
    if (!outcome.ok()) return outcome.error();
    std::vector<std::vector<std::byte>> all;
    std::vector<std::size_t> taken(answers.size());
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const auto holder = static_cast<std::size_t>(holders[i]);
      const auto bytes = find(pieces[i])->bytes;
      const auto first = answers[holder].begin() + static_cast<std::ptrdiff_t>(taken[holder]);
      all.emplace_back(first, first + static_cast<std::ptrdiff_t>(bytes));
      taken[holder] += bytes;
    }
    return all;
  }

 private:
  [[nodiscard]] Result<PieceRange> find(const SavedPiece& piece) const {
    if (piece.part < 0 || piece.part >= parts())
      return Error{Errc::invalid, 0, "the saved state has no part " + std::to_string(piece.part)};
    return locate(parts_[static_cast<std::size_t>(piece.part)].table, piece);
  }

  [[nodiscard]] std::vector<std::vector<std::byte>> serve(
      const std::vector<std::vector<std::byte>>& wishes) const {
    std::vector<std::vector<std::byte>> answers(wishes.size());
    for (std::size_t rank = 0; rank < wishes.size(); ++rank) {
      for (std::size_t at = 0; at < wishes[rank].size(); at += sizeof(PieceRange)) {
        PieceRange range;
        std::memcpy(&range, wishes[rank].data() + at, sizeof range);
        const auto first = held_->begin() + static_cast<std::ptrdiff_t>(range.offset);
        answers[rank].insert(answers[rank].end(), first,
                             first + static_cast<std::ptrdiff_t>(range.bytes));
      }
    }
    return answers;
  }

  MpiSession* mpi_;
  std::shared_ptr<const std::vector<std::byte>> held_;
  std::vector<Part> parts_;
};

Result<void> same_entries(const std::vector<SavedEntry>& saved, const Checkpoint& checkpoint) {
  const auto& wanted = checkpoint.saved_entries();
  const auto describe = [](const SavedEntry& entry) {
    return entry.name + " (" + std::to_string(entry.count) + " x " +
           (entry.dtype ? std::string(to_string(*entry.dtype))
                        : std::to_string(entry.element_bytes) + " bytes") +
           ")";
  };
  for (std::size_t i = 0; i < std::max(saved.size(), wanted.size()); ++i) {
    const auto is = i < saved.size() ? describe(saved[i]) : "nothing",
               should = i < wanted.size() ? describe(wanted[i]) : "nothing";
    if (is != should) {
      return Error{Errc::invalid, 0,
                   "the saved state is not this program's: it has " + is + " where " + should +
                       " is expected"};
    }
  }
  return {};
}

}  // namespace

Generations folder_of(const SaveOptions& options) {
  return Generations(std::filesystem::path(options.directory) / options.name);
}

Result<std::optional<SavedState>> find_state(MpiSession& mpi, const Generations& generations,
                                             std::int64_t wanted) {
  const auto list = candidates(mpi, generations, wanted);
  std::string complaints;
  for (const auto& candidate : list) {
    std::vector<std::string> bad{candidate.problem};
    if (candidate.manifest) {
      auto state = std::make_shared<DiskState>(generations, *candidate.manifest);
      bad = problems(mpi, *state);
      if (bad.empty()) return std::optional(SavedState(state));
    }
    for (const auto& problem : bad) {
      if (mpi.rank() == 0)
        log::warn("checkpoint", "the state of step {} is no good: {}", candidate.step, problem);
      complaints += (complaints.empty() ? "" : "; ") + problem;
    }
  }
  if (!list.empty())
    return Error{Errc::io, 0, "no saved state is good (see --restart): " + complaints};
  if (wanted >= 0) {
    return Error{Errc::io, 0,
                 "there is no saved state of step " + std::to_string(wanted) + " in " +
                     generations.folder().string()};
  }
  return std::optional<SavedState>();
}

Result<SavedState> partner_state(MpiSession& mpi, const StateKeeper::Held& held) {
  // Size and head of the part that is held here; empty: none, or a damaged one.
  std::string mine;
  if (held.step >= 0 && open_image(*held.part).ok()) {
    const auto head = std::span(*held.part).first(*head_bytes(*held.part));
    mine = std::to_string(held.part->size()) + " ";
    mine.append(reinterpret_cast<const char*>(head.data()), head.size());
  }
  std::map<int, PartnerState::Part> parts;
  const auto all = mpi.gather_text(mine);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].empty()) continue;
    const auto head = std::as_bytes(std::span(all[rank])).subspan(all[rank].find(' ') + 1);
    auto table = read_table(head, std::stoull(all[rank]));
    if (table.ok()) parts[table->part] = {std::move(*table), static_cast<int>(rank)};
  }
  std::vector<PartnerState::Part> list;
  for (auto& [part, where] : parts) list.push_back(std::move(where));
  const bool whole =
      !list.empty() && std::all_of(list.begin(), list.end(), [&](const PartnerState::Part& part) {
        return part.table.parts == static_cast<int>(list.size()) &&
               part.table.step == list[0].table.step;
      });
  if (!whole) return Error{Errc::invalid, 0, "no state is complete in the memory of partners"};
  return SavedState(std::make_shared<PartnerState>(mpi, held.part, std::move(list)));
}

Result<void> load_part(const SavedState& state, int part, Checkpoint& checkpoint) {
  const auto entries = state.entries(part);
  auto outcome = entries.ok() ? same_entries(*entries, checkpoint) : Result<void>(entries.error());
  // Entry by entry, for the sake of host memory; to the end even after an error, for all ranks
  // read.
  const auto& wanted = checkpoint.saved_entries();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const SavedPiece piece{part, wanted[i].name, 0, wanted[i].count};
    const auto bytes = state.read(std::span(&piece, outcome.ok() ? 1u : 0u));
    if (outcome.ok()) outcome = bytes.ok() ? checkpoint.load(i, bytes->front()) : bytes.error();
  }
  return outcome;
}

}  // namespace troupe::rank
