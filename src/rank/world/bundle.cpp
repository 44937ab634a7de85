#include <troupe/bundle.hpp>

#include <exception>
#include <optional>
#include <vector>

#include "rank/world/world_core.hpp"

namespace troupe {

namespace rank_process {

/// Takes down the collectives of a bundle.
class BundleRecorder final : public detail::Submitter {
 public:
  /// `core` may be empty: the bundle is one of a group that was never made.
  explicit BundleRecorder(std::shared_ptr<WorldCore> core) : core_(std::move(core)) {}
  ~BundleRecorder() {
    if (count_ == 0 && !failure_) return;
    const auto why =
        failure_.value_or(Error{Errc::invalid, 0,
                                "a bundle of " + std::to_string(count_) +
                                    " collectives is never submitted: call Bundle::submit()"});
    const bool abandoned = core_ == nullptr || std::uncaught_exceptions() > exceptions_;
    resolve(*whole_,
            abandoned ? Result<void>(why) : core_->device().submitter().refuse(why).wait());
  }
  Future<void> submit(const detail::CommandView& command) override {
    if (!failure_) {
      collective::add_to_bundle(*command.info, command.op.data(), data_, tail_);
      note_parameters(command);
      ++count_;
    }
    return whole_->future();
  }
  Future<void> refuse(Error error) override {
    if (!failure_) failure_ = std::move(error);
    return whole_->future();
  }

  [[nodiscard]] std::string name_of(const Operand& range) const override {
    return core_ == nullptr ? std::string() : core_->device().port().name_of(range);
  }
  /// Submits what was taken down, and begins anew.
  Future<void> pass_on(detail::Submitter& to, const detail::Scope& scope) {
    const auto data = std::exchange(data_, {});
    const auto tail = std::exchange(tail_, {});
    const auto parameters = std::exchange(parameters_, {});
    const auto failure = std::exchange(failure_, std::nullopt);
    const auto whole = std::exchange(whole_, std::make_shared<Promise<void>>());
    collective::Bundle bundle{.dtype = DType::u8, .count = std::exchange(count_, 0)};
    if (const auto list = collective::bundled(Parts(tail, data)); list.ok())
      bundle.digest = collective::digest_of(*list);
    Parts parts(tail, data);
    parts.parameters = parameters;
    auto future =
        failure ? to.refuse_collective(*failure, scope) : detail::submit(to, bundle, parts, scope);
    detail::at_once_when_ready(future,
                               [whole](const Result<void>& outcome) { resolve(*whole, outcome); });
    return future;
  }

 private:
  static void resolve(Promise<void>& whole, const Result<void>& outcome) {
    if (!outcome.ok()) detail::set_read(outcome.error(), false);  // it is only passed on
    whole.resolve(outcome);
  }
  /// Factors that are parameters of a recording; the operation has come last.
  void note_parameters(const detail::CommandView& command) {
    const auto op_at = data_.size() - command.op.size();
    for (const auto& info : command.info->operands) {
      const auto& operand = command.info->operand(command.op.data(), info);
      if (operand.present() || operand.reserved == 0) continue;
      parameters_.push_back(
          {operand.reserved, static_cast<std::uint32_t>(op_at + info.offset + sizeof(Operand))});
    }
  }

  std::shared_ptr<WorldCore> core_;
  int exceptions_ = std::uncaught_exceptions();  ///< when the bundle was made
  std::vector<std::byte> data_;
  std::vector<TailOperand> tail_;
  std::vector<InlineParameter> parameters_;  ///< in data_
  std::uint64_t count_ = 0;
  std::optional<Error> failure_;  ///< of the first call that was refused
  std::shared_ptr<Promise<void>> whole_ = std::make_shared<Promise<void>>();
};

}  // namespace rank_process

Bundle::Bundle(const Collectives& ranks)
    : Collectives(ranks), record_(std::make_shared<rank_process::BundleRecorder>(core_)) {
  recorder_ = record_.get();
}
Bundle::~Bundle() = default;

Future<void> Bundle::submit() {
  if (core_ == nullptr) throw Exception(rank_process::kEmptyGroup);
  recorder_ = nullptr;
  auto future = record_->pass_on(collectives(), scope());
  recorder_ = record_.get();
  return future;
}

Bundle Collectives::bundle() const {
  return Bundle(*this);
}

}  // namespace troupe
