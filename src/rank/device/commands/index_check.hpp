#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <utility>

#include <troupe/future.hpp>
#include <troupe/lib/submit.hpp>

namespace troupe::rank_process {

/// Looks at the indices of an operation before it is submitted (--check indices).
///
/// Engines do not look at indices in device memory, of sparse matrices above all: a wrong one gives
/// wrong numbers, or costs the device. What operations demand of them stands in their tables
/// (OperationInfo::index_rules). For each demand the device is asked first, by sparse::Examine, and
/// the submission waits for the answer. An operation that is found wrong is refused with the first
/// index that is, and nothing is written.
///
/// A submission in a function that was given to a future may be on the thread which resolves all
/// futures, or brings up a device host in the place of one that is lost. There it takes replies by
/// itself, and gives up after a while; those that come behind it give up at once, until what it
/// waited for is answered.
class IndexCheck final : public detail::Submitter {
 public:
  /// How long a submission in a continuation looks for the answer.
  static constexpr std::chrono::milliseconds kPatience{500};

  /// `target` gets what has been found right, and by `progress` its replies are taken; both outlive
  /// this.
  IndexCheck(detail::Submitter& target, detail::Progress& progress)
      : target_(&target), progress_(&progress) {}

  /// Errors beside those of the target: invalid (an index is wrong), would_block (see kPatience),
  /// what keeps the device from looking.
  Future<void> submit(const detail::CommandView& command) override;
  Future<void> refuse(Error error) override { return target_->refuse(std::move(error)); }
  Future<void> refuse_collective(Error error, const detail::Scope& scope) override {
    return target_->refuse_collective(std::move(error), scope);
  }
  [[nodiscard]] std::string name_of(const Operand& range) const override {
    return target_->name_of(range);
  }
  Result<detail::ResultCell> result_cell(std::size_t bytes) override {
    return target_->result_cell(bytes);
  }
  void keep(std::shared_ptr<const void> what) override { target_->keep(std::move(what)); }

 private:
  struct Question;
  /// What is wrong with the indices of a command, if anything.
  [[nodiscard]] Result<void> examine(const detail::CommandView& command);
  [[nodiscard]] Result<Question> ask(const IndexRule& rule);
  /// False if the answer is not there, and the calling thread must not wait for it any longer.
  [[nodiscard]] bool wait_for(const Future<void>& answer);
  /// What was given up last is not answered yet.
  [[nodiscard]] bool is_busy();

  detail::Submitter* target_;
  detail::Progress* progress_;
  std::mutex mutex_;
  Future<void> given_up_;  ///< the last answer that was
};

}  // namespace troupe::rank_process
