#include "rank/run/restart.hpp"

#include <algorithm>

#include <troupe/progress.hpp>

#include "common/core/log.hpp"
#include "rank/store/disk_state.hpp"
#include "rank/store/memory_state.hpp"
#include "rank/store/near_states.hpp"

namespace troupe::rank_process {
namespace {

/// The steps to try and their manifests as rank 0 sees them, newest first: a folder on a network
/// may look different from another node for a while. A manifest that cannot be read is one problem.
struct Candidate {
  std::int64_t step;
  std::optional<Manifest> manifest;
  std::string problem;
};

std::vector<Candidate> candidates(const HostGroup& group, const Generations& generations,
                                  std::int64_t wanted) {
  std::vector<std::int64_t> steps;
  if (group.rank() == 0) steps = generations.steps();
  if (wanted >= 0) std::erase_if(steps, [&](std::int64_t step) { return step != wanted; });
  std::string list;
  for (const auto step : steps) list += std::to_string(step) + " ";
  list = group.gather_text(list)[0];
  std::vector<Candidate> found;
  for (std::size_t at = 0; at < list.size(); at = list.find(' ', at) + 1) {
    Candidate candidate{std::stoll(list.substr(at)), {}, {}};
    Result<Manifest> manifest = Error{};
    if (group.rank() == 0) manifest = generations.manifest(candidate.step);
    const auto bad = group.rank() == 0 && !manifest.ok() ? manifest.error().message : std::string();
    candidate.problem = group.gather_text(bad)[0];
    const auto text = group.gather_text(manifest.ok() ? to_json(*manifest) : "")[0];
    if (candidate.problem.empty()) candidate.manifest = parse_manifest(text).take();
    found.push_back(std::move(candidate));
  }
  return found;
}

/// What is wrong with the files of a state, over all ranks; empty: nothing.
std::vector<std::string> problems(const HostGroup& group, DiskState& state) {
  std::string mine;
  for (int part = group.rank(); part < state.parts(); part += group.size()) {
    const auto verified = state.verify(part);
    if (!verified.ok()) mine += (mine.empty() ? "" : "; ") + verified.error().message;
  }
  auto all = group.gather_text(mine);
  std::erase_if(all, [](const auto& text) { return text.empty(); });
  return all;
}

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

/// Why a state is of another problem, though it is whole; empty: it is not.
std::string of_another_problem(const HostGroup& group, const Generations& generations,
                               const Manifest& manifest, bool in_run) {
  auto other = difference(manifest.fingerprint, generations.fingerprint());
  // Another number of ranks may add up in another order, and end a run with another step.
  if (!other.empty() || !in_run || std::ssize(manifest.parts) != group.size()) return other;
  const auto& now = generations.ends();
  for (std::size_t run = 0; run < now.size() && run < manifest.ends.size(); ++run) {
    if (manifest.ends[run] == now[run]) continue;
    const auto words = [](std::int64_t end) {
      return end == kNoEnd ? std::string("an error") : "step " + std::to_string(end);
    };
    return "run " + std::to_string(run + 1) + " of the program had ended with " +
           words(manifest.ends[run]) + ", and not with " + words(now[run]);
  }
  return {};
}

Result<void> fits_problem(const HostGroup& group, const Generations& generations,
                          const Manifest& manifest, bool in_run) {
  const auto other = of_another_problem(group, generations, manifest, in_run);
  if (other.empty()) return {};
  return Error{Errc::invalid, 0,
               "the state of step " + std::to_string(manifest.step) + " in " +
                   generations.folder().string() + " is of another problem: " + other +
                   " (--restart never begins anew; or choose another folder)"};
}

}  // namespace

SaveOptions with_defaults(SaveOptions options, const SaveOptions& program) {
  if (options.name.empty()) options.name = program.name;
  options.fingerprint.insert(program.fingerprint.begin(), program.fingerprint.end());
  options.inputs.insert(program.inputs.begin(), program.inputs.end());
  return options;
}

std::filesystem::path folder_of(const SaveOptions& options) {
  return std::filesystem::path(options.directory) / options.name;
}

std::filesystem::path near_folder_of(const SaveOptions& options) {
  return std::filesystem::path(options.local) / options.name;
}

Result<Fingerprint> fingerprint_of(const SaveOptions& options) {
  Fingerprint fingerprint = options.fingerprint;
  for (const auto& [name, path] : options.inputs) {
    auto contents = contents_of(path);
    if (!contents) return contents.error();
    fingerprint[name] = std::move(*contents);
  }
  return fingerprint;
}

Result<Generations> states_of(const HostGroup& group, const SaveOptions& options,
                              const Ends& ends) {
  auto mine = group.rank() == 0 ? fingerprint_of(options) : Result<Fingerprint>(Fingerprint());
  const auto good = mine.ok() ? Result<void>() : Result<void>(mine.error());
  if (auto agreed = group.agree(good); !agreed) return agreed.error();
  std::string text;
  for (const auto& [name, value] : *mine) text += name + '\0' + value + '\0';
  text = group.gather_text(text)[0];
  Fingerprint all;
  for (std::size_t at = 0; at < text.size();) {
    const auto middle = text.find('\0', at), end = text.find('\0', middle + 1);
    all.emplace(text.substr(at, middle - at), text.substr(middle + 1, end - middle - 1));
    at = end + 1;
  }
  return Generations(folder_of(options), all, ends);
}

Result<Generations> newest_states_of(const HostGroup& group, const SaveOptions& options) {
  const std::uint64_t mine = group.rank() == 0 ? Generations::newest_run(folder_of(options)) : 1;
  const auto run = group.gather(mine).front();
  return states_of(group, options, Ends(run - 1, kNoEnd));
}

Result<std::optional<SavedState>> find_state(const HostGroup& group, const Generations& generations,
                                             std::int64_t wanted, bool in_run) {
  const auto list = candidates(group, generations, wanted);
  std::string complaints;
  for (const auto& candidate : list) {
    std::vector<std::string> bad{candidate.problem};
    if (candidate.manifest) {
      const auto fits = fits_problem(group, generations, *candidate.manifest, in_run);
      if (!fits.ok()) return fits.error();
      auto state = std::make_shared<DiskState>(generations, *candidate.manifest);
      bad = problems(group, *state);
      if (bad.empty()) return std::optional(SavedState(state));
    }
    for (const auto& problem : bad) {
      if (group.rank() == 0)
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

Result<std::optional<SavedState>> find_near(const HostGroup& group, int node,
                                            const Generations& near, std::int64_t wanted,
                                            bool in_run) {
  const auto found =
      MemoryState::find(group, near_parts(near, wanted, group.gather(node), group.rank()));
  if (!found.ok()) return std::optional<SavedState>();
  const auto manifest = near.manifest((*found)->step());
  const bool mine = manifest.ok() && state_of(*manifest) == (*found)->state();
  const auto texts = group.gather_text(mine ? to_json(*manifest) : "");
  const auto text =
      std::find_if(texts.begin(), texts.end(), [](const auto& t) { return !t.empty(); });
  check(text != texts.end(), "whoever gives a part has its manifest");
  const auto fits = fits_problem(group, near, parse_manifest(*text).take(), in_run);
  if (!fits.ok()) return fits.error();
  return std::optional(SavedState(*found));
}

Result<FoundState> find_on_levels(const HostGroup& group, int node, const Generations& shared,
                                  const std::optional<Generations>& near, std::int64_t wanted,
                                  bool in_run) {
  std::optional<SavedState> on_nodes;
  if (near) {
    auto found = find_near(group, node, *near, wanted, in_run);
    if (!found) return found.error();
    on_nodes = std::move(*found);
  }
  if (on_nodes) {
    const auto steps = group.rank() == 0 ? shared.steps() : std::vector<std::int64_t>();
    const auto newest = group.gather(steps.empty() ? -1 : steps.front()).front();
    if (wanted >= 0 || on_nodes->step() >= newest) {
      const bool both = std::find(steps.begin(), steps.end(), on_nodes->step()) != steps.end();
      return FoundState{std::move(on_nodes), true, both};
    }
  }
  auto found = find_state(group, shared, wanted, in_run);
  if (!found && !(on_nodes && found.code() == Errc::io)) return found.error();
  if (on_nodes && (!found.ok() || !*found || (*found)->step() < on_nodes->step()))
    return FoundState{std::move(on_nodes), true, false};
  const bool any = found->has_value();
  return FoundState{std::move(*found), false, any};
}

namespace {

/// A buffer straight from disk. nullopt: the entry is in no file.
Result<std::optional<StateIo>> load_directly(const SavedState& state, const SavedPiece& piece,
                                             std::size_t entry, Checkpoint& checkpoint,
                                             DirectIo& direct) {
  const auto file = state.file_of(piece);
  if (!file) return file.error();
  if (!*file) return std::optional<StateIo>();
  const auto& place = **file;
  const auto read = move_range(checkpoint.accept(entry), place.offset,
                               [&](const Operand& range, std::uint64_t offset) {
                                 return direct.read(place.path, range, offset);
                               });
  if (!read) return read.error();
  if (read->crc != place.crc) {
    return Error{Errc::invalid, 0,
                 place.path + ": the checksum of entry " + piece.entry + " is wrong"};
  }
  return std::optional(read->io);
}

}  // namespace

Result<Loaded> load_part(const SavedState& state, int part, Checkpoint& checkpoint,
                         DirectIo* direct) {
  const auto entries = state.entries(part);
  auto outcome = entries.ok() ? same_entries(*entries, checkpoint) : Result<void>(entries.error());
  // Entry by entry, for the sake of host memory; to the end even after an error, for all ranks
  // read.
  const auto& wanted = checkpoint.saved_entries();
  const auto bytes_of = [](const SavedEntry& entry) { return entry.count * entry.element_bytes; };
  std::uint64_t all = 0;
  for (const auto& entry : wanted) all += bytes_of(entry);
  Loaded loaded;
  Progress progress("loading part " + std::to_string(part), all >> 20, "MiB");
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const SavedPiece piece{part, wanted[i].name, 0, wanted[i].count};
    std::optional<StateIo> io;
    if (direct != nullptr && outcome.ok() && wanted[i].dtype) {
      const auto went = load_directly(state, piece, i, checkpoint, *direct);
      outcome = went.ok() ? Result<void>() : went.error();
      if (went.ok()) io = *went;
    }
    if (io) {
      if (loaded.io != StateIo::compat) loaded.io = *io;
    } else {
      const auto bytes = state.read(std::span(&piece, outcome.ok() ? 1u : 0u));
      if (outcome.ok()) outcome = bytes.ok() ? checkpoint.load(i, bytes->front()) : bytes.error();
    }
    loaded.bytes += bytes_of(wanted[i]);
    progress.reach(loaded.bytes >> 20);
  }
  if (!outcome.ok()) return outcome.error();
  return loaded;
}

}  // namespace troupe::rank_process
