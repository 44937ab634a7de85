#include <algorithm>
#include <chrono>
#include <thread>

#include <troupe/world.hpp>

#include "rank/run/near_folder.hpp"
#include "rank/run/restart.hpp"
#include "rank/run/run_loop.hpp"
#include "rank/world/world_core.hpp"

namespace troupe {

bool World::spectator() const {
  return core_->members().rank() < 0;
}
int World::local_rank() const {
  return core_->mpi().local_rank();
}
int World::local_size() const {
  return core_->mpi().local_size();
}
Result<Epoch> World::wait_active() {
  return core_->status().epochs().wait_active();
}
void World::run(Checkpoint& checkpoint, const std::function<Step(std::int64_t)>& step,
                const RunOptions& options) {
  rank_process::RunLoop(*core_, checkpoint, step, options).run();
}
const SaveOptions& World::save_options() const {
  return core_->options().save;
}
Result<std::optional<SavedState>> World::find_state(const SaveOptions& options) {
  if (options.directory.empty() || options.restart == SaveOptions::kNever)
    return std::optional<SavedState>();
  const auto wanted = rank_process::with_defaults(options, core_->options().save);
  const auto states = rank_process::newest_states_of(core_->members(), wanted);
  if (!states) return states.error();
  const auto near = rank_process::NearFolder(*core_, wanted).states(*states);
  auto found = rank_process::find_on_levels(core_->members(), core_->mpi().node(), *states, near,
                                            wanted.restart, false);
  if (!found) return found.error();
  return std::move(found->state);
}
Result<SavedState> World::partner_state() {
  const auto* const keeper = core_->status().run().keeper().get();
  auto found = rank_process::MemoryState::find(
      core_->members(), keeper ? keeper->held() : std::vector<rank_process::HeldPart>());
  if (!found) return found.error();
  return SavedState(std::move(*found));
}
void World::load(const SavedState& state, Checkpoint& checkpoint) {
  const auto loaded = rank_process::load_part(state, rank(), checkpoint);
  agree(loaded.ok() ? Result<void>() : loaded.error());
}
void World::request_stop() {
  core_->request_stop();
}
std::int64_t World::restarted_from() const {
  return core_->history().restarted_from;
}
std::vector<SavedCheckpoint> World::saved_checkpoints() const {
  return core_->status().run().keeper().saved();
}
std::vector<Recovery> World::recoveries() const {
  return core_->status().epochs().recoveries();
}

Future<void> World::fetch_range(const GpuToken& token, DType dtype, const Operand& destination) {
  if (auto* const recorder = rank_process::Recorder::of(core_->device().port()))
    return recorder->refuse({Errc::unsupported, 0, "fetch cannot be recorded"});
  return core_->tokens().fetch(token, dtype, destination);
}
Future<void> World::put_range(const Operand& source, DType dtype, const GpuToken& token) {
  if (auto* const recorder = rank_process::Recorder::of(core_->device().port()))
    return recorder->refuse({Errc::unsupported, 0, "put cannot be recorded"});
  return core_->tokens().put(source, dtype, token);
}
Future<TokenLease> World::hold(const GpuToken& token) {
  return core_->tokens().hold(token);
}
Future<detail::MappedRange> World::map_range(const GpuToken& token, DType dtype) {
  return core_->tokens().map(token, dtype);
}
int World::known_job_rank(Rank rank) const {
  const auto& ranks = core_->members().ranks();
  const bool known = rank.value >= 0 && static_cast<std::size_t>(rank.value) < ranks.size();
  return known ? ranks[static_cast<std::size_t>(rank.value)] : -1;
}
RemoteDevice World::device(Rank rank) {
  return core_->tokens().device(rank, known_job_rank(rank));
}

Result<void> World::publish_actor(const std::string& name,
                                  std::shared_ptr<detail::PublishedActor> actor) {
  return core_->actors().publish(name, std::move(actor));
}
std::shared_ptr<detail::RemoteAddress> World::actor_address(const std::string& name, Rank rank,
                                                            std::uint64_t message_set) {
  return core_->actors().address(name, known_job_rank(rank), message_set);
}

namespace {

std::optional<rank_process::Phase> phase_of(const std::string& name) {
  const auto place = std::find(std::begin(kRecoveryPhases), std::end(kRecoveryPhases), name);
  if (place == std::end(kRecoveryPhases)) return std::nullopt;
  const auto number = 1 + (place - std::begin(kRecoveryPhases));  // 0: active
  return static_cast<rank_process::Phase>(number);
}

}  // namespace

bool World::inject_in_phase(memory::FaultKind kind, const std::string& phase) {
  const auto known = phase_of(phase);
  if (known) core_->status().faults().order(kind, *known);
  return known.has_value();
}
bool World::inject_death_in_phase(RankDeath death, const std::string& phase) {
  const auto known = phase_of(phase);
  if (known) core_->status().faults().order(death, *known);
  return known.has_value();
}
int World::deaths_of_rank() const {
  return static_cast<int>(core_->mpi().respawns().own_deaths());
}

std::vector<HealthEvent> World::health_events() const {
  return core_->status().health().events();
}

std::vector<Corruption> World::corruptions() const {
  return core_->status().corruptions().all();
}

bool World::standby_ready() const {
  return core_->status().standbys().all_ready();
}

void World::wait_for_standbys(std::chrono::nanoseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  for (;;) {
    const auto ready = gather_values(standby_ready());
    if (std::find(ready.begin(), ready.end(), false) == ready.end()) return;
    agree(std::chrono::steady_clock::now() < end
              ? Result<void>()
              : Error{Errc::timeout, 0, "the standbys do not come up"});
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

std::optional<std::uint64_t> World::standby_memory() const {
  return core_->status().standbys().memory();
}

}  // namespace troupe
