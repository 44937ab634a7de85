#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <tuple>

#include "common/core/log.hpp"
#include "rank/run/restart.hpp"
#include "rank/run/run_loop.hpp"
#include "rank/run/state_costs.hpp"
#include "rank/store/direct_io.hpp"
#include "rank/store/part_table.hpp"
#include "rank/world/world_actor.hpp"
#include "rank/world/world_core.hpp"

// What a run begins with: checks, the state that the program makes or that was saved, the keeper.

namespace troupe::rank_process {
namespace {

/// This process, to those that run another job in the same folder.
std::string whoami() {
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  return std::string("process ") + std::to_string(::getpid()) + " on " + host;
}

}  // namespace

Result<void> RunLoop::check_options() const {
  const auto& [first_step, commit_every, stride] =
      std::tie(options_->first_step, options_->commit_every, options_->stride);
  if (commit_every < 1 || stride < 1 || first_step < 0)
    return Error{Errc::invalid, 0,
                 "RunOptions: first_step = " + std::to_string(first_step) + ", commit_every = " +
                     std::to_string(commit_every) + ", stride = " + std::to_string(stride) +
                     ": the first must not be negative, the others at least 1"};
  if (commit_every % stride != 0 || first_step % stride != 0)
    return Error{Errc::invalid, 0,
                 "RunOptions: first_step = " + std::to_string(first_step) +
                     " and commit_every = " + std::to_string(commit_every) +
                     " must be multiples of stride = " + std::to_string(stride)};
  return {};
}

void RunLoop::check_begin(const Result<void>& before) {
  auto outcome = before;
  if (ends_the_world(before.code())) outcome = {};  // which says so itself
  if (!outcome.ok() && OutcomeLog::is_loss(outcome.code())) {
    (void)core_->device().port().outcomes().report(
        before.error());  // for the next run, until wait_active()
    outcome = Error{outcome.code(), outcome.error().native,
                    "a fault has undone some of what was submitted before World::run: call " +
                        std::string("World::wait_active() and do it again, or do it in "
                                    "RunOptions::prepare: ") +
                        outcome.error().message};
  } else if (!outcome.ok()) {
    (void)core_->device().port().outcomes().take_error();  // it is told here
  }
  if (outcome.ok()) outcome = check_options();
  if (auto agreed = core_->members().agree(outcome); !agreed)
    throw CollectiveException(agreed.error());
}

void RunLoop::prepare() {
  for (preparing_ = true; preparing_;) {
    try {
      if (core_->status().has_other_members()) {
        preparing_ = false;
      } else if (meet()) {
        require(core_->status().watches() ? Result<void>() : make_share(options_->prepare));
        preparing_ = false;
      }
      continue;
    } catch (const Exception& e) {
      if (!is_by_fault(e.code())) throw;
      log::debug("world", "the run's begin is interrupted: {}", e.what());
      end_epoch_by(e.error());
    }
    (void)recover();
  }
}

void RunLoop::check_save_options() {
  const auto& members = core_->members();
  const auto text = save_.directory + "/" + save_.name + ", every " + std::to_string(save_.every) +
                    " steps, restart " + std::to_string(save_.restart) + ", partner " +
                    std::to_string(static_cast<int>(save_.partner)) + ", io " +
                    std::string(to_string(save_.io));
  Result<void> outcome;
  for (const auto& other : members.gather_text(text)) {
    if (other != text)
      outcome = Error{Errc::invalid, 0, "the ranks save their state differently: " + text};
  }
  if (save_.io == StateIo::compat)
    outcome = Error{Errc::invalid, 0, "SaveOptions::io: compat cannot be asked for"};
  if (save_.directory.empty() && save_.every > 0)
    outcome = Error{Errc::invalid, 0, "there is no folder to save to (--checkpoint-dir)"};
  if (save_.directory.empty() && save_.restart >= 0)
    outcome = Error{Errc::invalid, 0, "there is no folder to go on from (--checkpoint-dir)"};
  if (save_.every % options_->stride != 0)
    outcome = Error{Errc::invalid, 0,
                    "states are saved every " + std::to_string(save_.every) +
                        " steps (--checkpoint-every), which is no multiple of the " +
                        std::to_string(options_->stride) + " that are done at once"};
  if (outcome.ok() && !save_.directory.empty() && members.rank() == 0) {
    auto lock = FolderLock::take(folder_of(save_), whoami());
    outcome = lock.ok() ? Generations(folder_of(save_), {}, ends_before()).prepare()
                        : Result<void>(lock.error());
    if (lock.ok()) folder_lock_ = std::move(*lock);
  }
  if (auto agreed = members.agree(outcome); !agreed) throw CollectiveException(agreed.error());
  if (save_.directory.empty()) return;
  auto states = states_of(members, save_, ends_before());
  if (!states) throw CollectiveException(states.error());
  states_ = std::move(*states);
}

Ends& RunLoop::ends() {
  return core_->history().ends[folder_of(save_).string()];
}

Ends RunLoop::ends_before() {
  auto before = ends();
  before.pop_back();
  return before;
}

void RunLoop::choose_io() {
  io_ = StateIo::pinned;
  if (save_.directory.empty()) return;
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

void RunLoop::check_room() {
  const auto& members = core_->members();
  const auto costs = measure_costs(members, *checkpoint_);
  Result<void> outcome;
  if (!save_.directory.empty() && members.rank() == 0)
    outcome = rank_process::check_room(states_.folder(), costs.whole);
  if (auto agreed = members.agree(outcome); !agreed) throw CollectiveException(agreed.error());
  const auto line = describe(costs, save_, pins());
  if (members.rank() == 0 && std::exchange(core_->history().costs_told, line) != line)
    log::info("checkpoint", "{}", line);
}

void RunLoop::begin_keeping() {
  const bool again = keeper_ != nullptr;
  std::unique_ptr<StateKeeper> keeper;
  // The one of the run before goes first: its memory is needed.
  if (!again) core_->status().exchange_keeper(nullptr).reset();
  if (!keeps()) return;
  Result<void> outcome;
  if (const auto entries = checkpoint_->saved_entries().size(); entries > kPartMaxEntries)
    outcome = Error{Errc::invalid, 0,
                    "a checkpoint of " + std::to_string(entries) + " entries: a state of at most " +
                        std::to_string(kPartMaxEntries) + " can be saved, or kept by a partner"};
  if (auto agreed = core_->members().agree(outcome); !agreed)
    throw CollectiveException(agreed.error());
  const auto nodes = core_->members().gather(core_->mpi().node());
  keeper =
      std::make_unique<StateKeeper>(core_->members(), nodes, core_->shared_device(), *checkpoint_,
                                    StateKeeper::Options{.states = states_,
                                                         .partner = save_.partner,
                                                         .io = io_,
                                                         .takes = core_->options().shrink,
                                                         .before = keeper_});
  keeper_ = keeper.get();
  core_->status().exchange_keeper(std::move(keeper)).reset();
}

std::int64_t RunLoop::wanted_state() {
  if (save_.restart < 0) return save_.restart;
  const auto& members = core_->members();
  const bool mine = core_->history().step_taken.contains(folder_of(save_).string()) ||
                    (members.rank() == 0 && states_.has_later_run());
  const auto all = members.gather(static_cast<std::uint8_t>(mine));
  const bool of_another_run = std::find(all.begin(), all.end(), 1) != all.end();
  return of_another_run ? SaveOptions::kNewest : save_.restart;
}

void RunLoop::restart() {
  restarted_ = true;
  if (save_.directory.empty() || save_.restart == SaveOptions::kNever) return;
  const auto wanted = wanted_state();
  auto found = find_state(core_->members(), states_, wanted, true);
  if (!found) throw CollectiveException(found.error());
  if (*found) {
    restarted_ = false;  // until it is loaded: a fault on the way leads back here
    checkpoint_->renew();
    if (auto agreed = core_->members().agree(load(**found)); !agreed)
      throw CollectiveException(agreed.error());
    first_ = from_ = (*found)->step();
    core_->history().restarted_from = first_;
    if (core_->members().rank() == 0)
      log::info("checkpoint", "going on from step {}, saved by {} ranks", first_,
                (*found)->parts());
  }
  restarted_ = true;
  if (wanted >= 0) core_->history().step_taken.insert(folder_of(save_).string());
}

Result<void> RunLoop::load(const SavedState& state) {
  const auto& members = core_->members();
  if ((state.step() - options_->first_step) % options_->stride != 0)
    return Error{Errc::invalid, 0,
                 "the state of step " + std::to_string(state.step()) +
                     " is between two calls of this program, which do " +
                     std::to_string(options_->stride) + " steps each"};
  if (state.parts() == members.size()) {
    auto loaded = load_own_part(state);
    return loaded.ok() ? settle_commands() : loaded;
  }
  if (!options_->redistribute) {
    return Error{Errc::invalid, 0,
                 "the state of step " + std::to_string(state.step()) + " was saved by " +
                     std::to_string(state.parts()) + " ranks; this program can go on from it " +
                     "with as many only, not with " + std::to_string(members.size()) +
                     " (--restart never begins anew)"};
  }
  try {
    options_->redistribute(state);
    return settle_commands();
  } catch (...) {  // the others wait for what they read of this rank's part
    return thrown();
  }
}

Result<void> RunLoop::load_own_part(const SavedState& state) {
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

}  // namespace troupe::rank_process
