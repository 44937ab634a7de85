#include "rank/run/run_states.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "common/core/log.hpp"
#include "rank/run/restart.hpp"
#include "rank/run/run_commands.hpp"
#include "rank/run/state_costs.hpp"
#include "rank/store/direct_io.hpp"
#include "rank/store/part_table.hpp"

namespace troupe::rank_process {
namespace {

bool is_same_folder(const std::string& a, const std::string& b) {
  std::error_code ignored;
  return std::filesystem::weakly_canonical(a, ignored) ==
         std::filesystem::weakly_canonical(b, ignored);
}

}  // namespace

RunStates::RunStates(WorldCore& core, Checkpoint& checkpoint, const RunOptions& options)
    : core_(&core),
      checkpoint_(&checkpoint),
      run_(&options),
      save_(with_defaults(options.save.value_or(core.options().save), core.options().save)),
      ledger_(std::make_shared<CommitLedger>(core.mpi().respawns().estate()->file(),
                                             core.mpi().respawns().incarnation())),
      inheritance_(core.mpi().respawns().estate()),
      near_(core, save_) {}

std::vector<HeldPart> RunStates::held() const {
  auto parts = inherited_;
  if (keeper_ != nullptr) {
    for (auto& part : keeper_->held()) parts.push_back(std::move(part));
  }
  return parts;
}

bool RunStates::keeps() const {
  return saves() || save_.partner || core_->options().shrink;
}

bool RunStates::pins() const {
  return keeps() && (io_ != StateIo::direct || save_.partner || core_->options().shrink);
}

void RunStates::enter_run() {
  core_->history().restarted_from = core_->history().from_disk = core_->history().from_nodes = -1;
  if (saves()) ends().push_back(kNoEnd);
}

void RunStates::leave_run(std::int64_t end) {
  if (saves()) ends().back() = end;
}

void RunStates::open() {
  const auto& members = core_->members();
  const auto text =
      save_.directory + "/" + save_.name + ", every " + std::to_string(save_.every) +
      " steps, restart " + std::to_string(save_.restart) + ", partner " +
      std::to_string(static_cast<int>(save_.partner) + static_cast<int>(save_.every_copy)) +
      ", io " + std::string(to_string(save_.io)) + (save_.local.empty() ? "" : ", local");
  Result<void> outcome;
  for (const auto& other : members.gather_text(text)) {
    if (other != text)
      outcome = Error{Errc::invalid, 0, "the ranks save their state differently: " + text};
  }
  if (save_.io == StateIo::compat)
    outcome = Error{Errc::invalid, 0, "SaveOptions::io: compat cannot be asked for"};
  if (!saves() && save_.every > 0)
    outcome = Error{Errc::invalid, 0, "there is no folder to save to (--checkpoint-dir)"};
  if (!saves() && !save_.local.empty())
    outcome = Error{Errc::invalid, 0,
                    "states in checkpoint-local want a folder that all ranks see, too "
                    "(--checkpoint-dir)"};
  if (saves() && !save_.local.empty() && is_same_folder(save_.directory, save_.local))
    outcome = Error{Errc::invalid, 0,
                    "checkpoint-local must be another folder than checkpoint-dir: " + save_.local};
  if (!saves() && save_.restart >= 0)
    outcome = Error{Errc::invalid, 0, "there is no folder to go on from (--checkpoint-dir)"};
  if (save_.every % run_->stride != 0)
    outcome = Error{Errc::invalid, 0,
                    "states are saved every " + std::to_string(save_.every) +
                        " steps (--checkpoint-every), which is no multiple of the " +
                        std::to_string(run_->stride) + " that are done at once"};
  if (outcome.ok() && saves() && members.rank() == 0) {
    auto lock = FolderLock::take(folder_of(save_), this_process(), "checkpoint-dir");
    outcome = lock.ok() ? Generations(folder_of(save_), {}, ends_before()).prepare()
                        : Result<void>(lock.error());
    if (lock.ok()) folder_lock_ = std::move(*lock);
    has_folder_ = lock.ok();
  }
  if (auto agreed = members.agree(outcome); !agreed) throw CollectiveException(agreed.error());
  if (!saves()) return;
  auto states = states_of(members, save_, ends_before());
  if (!states) throw CollectiveException(states.error());
  states_ = std::move(*states);
  if (save_.restart == SaveOptions::kNever) states_.begin_anew();
}

void RunStates::watch_folder() {
  if (!saves()) return;
  const auto fingerprint = fingerprint_of(save_);
  states_ = Generations(folder_of(save_), fingerprint.ok() ? *fingerprint : save_.fingerprint,
                        ends_before());
  if (save_.restart == SaveOptions::kNever) states_.begin_anew();
}

void RunStates::join_folder() {
  watch_folder();
  if (!saves() || core_->members().rank() != 0 || has_folder_) return;
  auto lock = FolderLock::take(folder_of(save_), this_process(), "checkpoint-dir");
  if (!lock.ok()) return log::warn("checkpoint", "{}", lock.error().to_string());
  folder_lock_ = std::move(*lock);
  has_folder_ = true;
}

Ends& RunStates::ends() {
  return core_->history().ends[folder_of(save_).string()];
}

Ends RunStates::ends_before() {
  auto before = ends();
  before.pop_back();
  return before;
}

void RunStates::choose_io() {
  io_ = StateIo::pinned;
  if (!saves()) return;
  const auto& members = core_->members();
  std::vector<DirectTrial> trials;
  if (save_.io == StateIo::direct || (save_.io == StateIo::automatic && !save_.partner)) {
    auto mine = DirectIo(core_->shared_device()).try_folder(states_.folder(), members.rank());
    const auto reasons = members.gather_text(mine.reason);
    for (const auto outcome : members.gather(mine.outcome))
      trials.push_back({outcome, reasons[trials.size()]});
  }
  const auto choice = rank_process::choose_io(save_.io, save_.partner, trials);
  if (!choice) throw CollectiveException(choice.error());
  io_ = choice->io;
  auto line = "states go to disk " + std::string(to_string(io_));
  if (!choice->reason.empty()) line += " (" + choice->reason + ")";
  if (members.rank() == 0 && std::exchange(core_->history().io_told, line) != line)
    log::info("checkpoint", "{}", line);
}

void RunStates::check_room() {
  const auto& members = core_->members();
  const auto costs = measure_costs(members, *checkpoint_);
  Result<void> outcome;
  if (saves() && members.rank() == 0)
    outcome = rank_process::check_room(states_.folder(), costs.whole, "checkpoint-dir");
  if (auto agreed = members.agree(outcome); !agreed) throw CollectiveException(agreed.error());
  const auto line = describe(costs, save_, pins());
  if (members.rank() == 0 && std::exchange(core_->history().costs_told, line) != line)
    log::info("checkpoint", "{}", line);
}

void RunStates::begin() {
  const bool again = keeper_ != nullptr;
  std::unique_ptr<StateKeeper> keeper;
  // The one of the run before goes first: its memory is needed.
  if (!again) core_->status().run().keeper().exchange(nullptr).reset();
  if (!keeps()) return;
  Result<void> outcome;
  if (const auto entries = checkpoint_->saved_entries().size(); entries > kPartMaxEntries)
    outcome = Error{Errc::invalid, 0,
                    "a checkpoint of " + std::to_string(entries) + " entries: a state of at most " +
                        std::to_string(kPartMaxEntries) + " can be saved, or kept by a partner"};
  if (auto agreed = core_->members().agree(outcome); !agreed)
    throw CollectiveException(agreed.error());
  const auto nodes = core_->members().gather(core_->mpi().node());
  const auto near =
      near_.open(states_, nodes, lay_out(checkpoint_->saved_entries()).bytes, restarted_);
  keeper = std::make_unique<StateKeeper>(
      core_->members(), nodes, core_->shared_device(), *checkpoint_,
      StateKeeper::Options{.states = states_,
                           .partner = save_.partner,
                           .every_copy = save_.every_copy,
                           .io = io_,
                           .takes = core_->options().shrink || core_->mpi().respawns().expected(),
                           .before = keeper_,
                           .near = near.states,
                           .publishes_near = near.publishes});
  keeper_ = keeper.get();
  core_->status().run().keeper().exchange(std::move(keeper)).reset();
}

std::int64_t RunStates::wanted() {
  if (save_.restart < 0) return save_.restart;
  const auto& members = core_->members();
  const bool mine = core_->history().step_taken.contains(folder_of(save_).string()) ||
                    (members.rank() == 0 && states_.has_later_run());
  const auto all = members.gather(static_cast<std::uint8_t>(mine));
  const bool of_another_run = std::find(all.begin(), all.end(), 1) != all.end();
  return of_another_run ? SaveOptions::kNewest : save_.restart;
}

std::optional<std::int64_t> RunStates::restart() {
  restarted_ = true;
  if (!saves() || save_.restart == SaveOptions::kNever) return std::nullopt;
  const auto step = wanted();
  const auto found = find(step);
  std::optional<std::int64_t> loaded;
  if (found) {
    restarted_ = false;  // until it is loaded: a fault on the way leads back here
    checkpoint_->renew();
    const auto outcome = load(*found);
    found->serve();
    if (auto agreed = core_->members().agree(outcome); !agreed)
      throw CollectiveException(agreed.error());
    loaded = found->step();
    core_->history().restarted_from = *loaded;
    if (core_->members().rank() == 0)
      log::info("checkpoint", "going on from step {}, saved by {} ranks{}", *loaded, found->parts(),
                core_->history().from_nodes == *loaded ? ", from the folders of the nodes" : "");
  }
  restarted_ = true;
  if (step >= 0) core_->history().step_taken.insert(folder_of(save_).string());
  return loaded;
}

std::optional<SavedState> RunStates::find(std::int64_t wanted) {
  auto found = find_on_levels(core_->members(), core_->mpi().node(), states_, near_.states(states_),
                              wanted, true);
  if (!found) throw CollectiveException(found.error());
  if (found->on_nodes) core_->history().from_nodes = found->state->step();
  if (found->on_disk) core_->history().from_disk = found->state->step();
  return std::move(found->state);
}

Result<void> RunStates::load(const SavedState& state) {
  const auto& members = core_->members();
  if ((state.step() - run_->first_step) % run_->stride != 0)
    return Error{Errc::invalid, 0,
                 "the state of step " + std::to_string(state.step()) +
                     " is between two calls of this program, which do " +
                     std::to_string(run_->stride) + " steps each"};
  if (state.parts() == members.size()) {
    auto loaded = load_own_part(state);
    return loaded.ok() ? settle_commands(*core_) : loaded;
  }
  if (!run_->redistribute) {
    return Error{Errc::invalid, 0,
                 "the state of step " + std::to_string(state.step()) + " was saved by " +
                     std::to_string(state.parts()) + " ranks; this program can go on from it " +
                     "with as many only, not with " + std::to_string(members.size()) +
                     " (--restart never begins anew)"};
  }
  try {
    run_->redistribute(state);
    return settle_commands(*core_);
  } catch (...) {  // the others wait for what they read of this rank's part
    return thrown();
  }
}

Result<void> RunStates::load_own_part(const SavedState& state) {
  const auto begin = SteadyClock::time();
  DirectIo direct(core_->shared_device());
  const auto loaded = load_part(state, core_->members().rank(), *checkpoint_,
                                io_ == StateIo::direct ? &direct : nullptr);
  if (!loaded) return loaded.error();
  const std::chrono::duration<double> time = SteadyClock::time() - begin;
  if (core_->members().rank() == 0) {
    log::info("checkpoint", "rank 0 has loaded {:.1f} MiB in {:.3f} s at {:.2f} GB/s ({})",
              static_cast<double>(loaded->bytes) / (1 << 20), time.count(),
              static_cast<double>(loaded->bytes) / time.count() / 1e9, to_string(loaded->io));
  }
  return {};
}

void RunStates::settle() const {
  if (keeper_ == nullptr) return;
  const bool idle = keeper_->wait_idle([this] { return is_interrupted(*core_); });
  // Where a death has ended the partners' copies of a commit, the one before is all that they have:
  // it must not be overwritten.
  if (!idle || core_->status().members().is_one_dead())
    throw Exception({Errc::world_reformed, 0, "the world is re-formed"});
}

void RunStates::inherit(std::int64_t commit) {
  if (!core_->mpi().respawns().expected()) return;
  const auto whole = MemoryState::newest(core_->mpi().everyone(), held());
  if (inherited_.empty() && (whole < 0 || whole < commit))
    inherited_ = inheritance_.copy_out(*core_->shared_device());
  // A copy that a fault has cut off is made the next time.
  if (whole >= std::max<std::int64_t>(commit, 0) || !inherited_.empty()) inheritance_.drop();
}

std::int64_t RunStates::newest_on_disk() const {
  const auto mine =
      std::max(core_->history().from_disk, keeper_ != nullptr ? keeper_->on_disk() : -1);
  const auto all = core_->mpi().everyone().gather(mine);
  return *std::max_element(all.begin(), all.end());
}

std::optional<SavedState> RunStates::newest() {
  const auto& everyone = core_->mpi().everyone();
  const auto on_disk = newest_on_disk();
  const auto on_nodes = near_.newest(keeper_);
  auto memory = MemoryState::find(everyone, held());
  const auto in_memory = memory.ok() ? (*memory)->step() : -1;
  if (memory.ok() && in_memory >= std::max(on_disk, on_nodes))
    return SavedState(std::move(*memory));
  if (on_nodes >= 0 && on_nodes >= on_disk) {
    auto found = find_near(everyone, core_->mpi().node(), *near_.states(states_), on_nodes, true);
    if (!found) throw CollectiveException(found.error());
    if (*found) return *found;
  }
  if (memory.ok() && in_memory >= on_disk) return SavedState(std::move(*memory));
  if (on_disk < 0) return std::nullopt;
  auto found = find_state(everyone, states_, on_disk, true);
  if (!found) throw CollectiveException(found.error());
  return *found;
}

Error RunStates::rescue(const Error& error) {
  auto step = core_->history().from_disk;
  if (keeper_ != nullptr || core_->options().shrink) {
    if (keeper_ != nullptr) keeper_->close();
    step = newest_on_disk();
    const auto& everyone = core_->mpi().everyone();
    const auto memory = MemoryState::find(everyone, held());
    if (saves() && memory.ok() && (*memory)->is_spread() && (*memory)->step() > step) {
      StateWriter writer(states_, everyone.rank() == 0, everyone.size(),
                         [&](std::span<const std::byte> value, std::span<std::byte> all) {
                           everyone.all_gather(value, all);
                         });
      StateWriter::Share share;
      if ((share.table = (*memory)->own()) != nullptr)
        share.write = StateWriter::of_image((*memory)->own_image());
      if (writer.write((*memory)->step(), share)) step = (*memory)->step();
    }
  }
  auto told = error;
  if ((core_->options().stop_on_loss || core_->options().shrink ||
       core_->mpi().respawns().expected()) &&
      step >= 0)
    told.code = Errc::requeue;
  told.message += step >= 0 ? "; the state of step " + std::to_string(step) + " is on disk"
                            : "; no state is on disk";
  return told;
}

}  // namespace troupe::rank_process
