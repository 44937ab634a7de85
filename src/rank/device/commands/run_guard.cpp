#include "rank/device/commands/run_guard.hpp"

#include <string>

namespace troupe::rank_process {
namespace {

const Error kUndone{
    Errc::world_reformed, 0,
    "the run has gone back to before the step that this was to be done for, or was left"};

std::string why_it_may_not(const detail::TimelineState* bound) {
  if (bound == nullptr) {
    return "this thread works for none of its steps: World::timeline() and Timeline::Scope tell it "
           "which";
  }
  return "the step that this is done for is behind a commit, which does not wait for a function "
         "whose future only the program resolves";
}

}  // namespace

bool RunGuard::works_for_undone() noexcept {
  const auto* const bound = detail::bound_timeline();
  return bound != nullptr && bound->standing() == Standing::undone;
}

std::optional<Error> RunGuard::trespass(std::string_view call, std::string_view name,
                                        const Operand& range) const {
  const auto& buffers = shared_->buffers;
  if (in_no_table(range) || !buffers.current(range) || !buffers.at(range.buffer).of_run)
    return std::nullopt;
  return Error{Errc::invalid, 0,
               std::string(call) + ": " + std::string(name) + ": " + buffers.describe(range) +
                   " belongs to the checkpoint of World::run, and " +
                   why_it_may_not(detail::bound_timeline())};
}

Result<void> RunGuard::check(const detail::CommandView& command) const {
  if (works_for_undone()) return kUndone;
  if (timeline_ == nullptr) return {};
  for (const auto& use : command.uses())
    if (auto error = trespass(command.info->name, use.name, *use.range)) return *error;
  for (const auto& part : command.tail)
    if (auto error = trespass(command.info->name, command.info->tail, part.range)) return *error;
  return {};
}

Result<void> RunGuard::check(std::string_view call, std::string_view name,
                             const Operand& range) const {
  const std::lock_guard lock(shared_->submissions);
  if (works_for_run()) return {};
  if (works_for_undone()) return kUndone;
  if (timeline_ == nullptr) return {};
  if (auto error = trespass(call, name, range)) return *error;
  return {};
}

Result<void> RunGuard::check() {
  return works_for_undone() ? Result<void>(kUndone) : Result<void>();
}

void RunGuard::turn(detail::TimelineState* next, Standing before,
                    std::span<const std::uint32_t> buffers) {
  const std::lock_guard lock(shared_->submissions);
  if (timeline_ != nullptr) timeline_->set_standing(before);
  timeline_ = next;
  for (const auto buffer : of_run_) shared_->buffers.at(buffer).of_run = false;
  of_run_.assign(buffers.begin(), buffers.end());
  for (const auto buffer : of_run_) shared_->buffers.at(buffer).of_run = true;
}

}  // namespace troupe::rank_process
