#include "rank/device/commands/index_check.hpp"

#include <cstring>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <troupe/lib/sparse/examine.hpp>

#include "common/core/continuations.hpp"

namespace troupe::rank_process {
namespace {

constexpr auto kPollEvery = std::chrono::microseconds(20);

Error named(const detail::CommandView& command, const Error& error, const std::string& what) {
  return {error.code, error.native, std::string(command.info->name) + ": " + what};
}

}  // namespace

/// An examination that has been submitted.
struct IndexCheck::Question {
  sparse::Examine examination;
  detail::ResultCell cell;
  Future<void> answer;
};

Result<IndexCheck::Question> IndexCheck::ask(const IndexRule& rule) {
  Question question{sparse::examination_of(rule, OnFailure::report), {}, {}};
  auto cell = target_->result_cell(sizeof(sparse::Finding));
  if (!cell) return cell.error();
  question.cell = std::move(*cell);
  question.examination.found = question.cell.where;
  const auto op = std::as_bytes(std::span(&question.examination, 1));
  const auto& info = info_of<sparse::Examine>;
  if (auto sound = check_operation(info, op.data(), {}); !sound) return sound.error();
  detail::CommandView command(info, op);
  command.quiet = true;  // its failure is that of the operation which it is for
  question.answer = target_->submit(command);
  return question;
}

bool IndexCheck::is_busy() {
  progress_->poll();
  const std::lock_guard lock(mutex_);
  return given_up_.valid() && !given_up_.ready();
}

bool IndexCheck::wait_for(const Future<void>& answer) {
  if (!detail::in_continuation()) {
    answer.wait_ready();
    return true;
  }
  const auto end = std::chrono::steady_clock::now() + kPatience;
  for (;;) {
    progress_->poll();
    if (answer.ready()) return true;
    if (std::chrono::steady_clock::now() > end) break;
    std::this_thread::sleep_for(kPollEvery);
  }
  const std::lock_guard lock(mutex_);
  given_up_ = answer;
  return false;
}

Result<void> IndexCheck::examine(const detail::CommandView& command) {
  const std::string unknown = "its indices are not examined (--check indices): ";
  const auto busy = [&] {
    return named(command, {Errc::would_block, 0, {}},
                 unknown +
                     "the device is busy, and a function that is given to a future must not wait "
                     "for it");
  };
  if (detail::in_continuation() && is_busy()) return busy();
  std::vector<Question> questions;
  for (const auto& rule : command.info->index_rules(command.op.data())) {
    auto question = ask(rule);
    if (!question) return named(command, question.error(), unknown + question.error().message);
    questions.push_back(std::move(*question));
  }
  for (const auto& question : questions) {
    if (!wait_for(question.answer)) return busy();
    if (const auto& outcome = question.answer.wait(); !outcome.ok())
      return named(command, outcome.error(), unknown + outcome.error().message);
    sparse::Finding finding;
    std::memcpy(&finding, question.cell.data, sizeof finding);
    if (finding.fault != sparse::Fault::none)
      return named(command, {Errc::invalid, 0, {}},
                   question.examination.describe(finding) + " (--check indices)");
  }
  return {};
}

Future<void> IndexCheck::submit(const detail::CommandView& command) {
  if (command.info->index_rules != nullptr) {
    if (const auto sound = examine(command); !sound)
      return target_->refuse(
          detail::with_names(sound.error(), *target_, *command.info, command.op));
  }
  return target_->submit(command);
}

}  // namespace troupe::rank_process
