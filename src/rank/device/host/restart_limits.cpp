#include "rank/device/host/restart_limits.hpp"

namespace troupe::rank_process {

std::optional<Error> RestartLimits::lose_host(const Error& loss, TimePoint now) {
  const bool in_time = hosts_.spend(now);
  const bool in_run = !since_commit_ || ++since_commit_->hosts <= most_;
  if (in_time && in_run) return std::nullopt;
  const auto count = "more than " + std::to_string(most_) + " device hosts lost ";
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(window_).count();
  return Error{Errc::budget_exhausted, loss.native,
               count +
                   (in_run ? "within " + std::to_string(seconds) + " s"
                           : std::string("without a commit in between")) +
                   "; the last: " + loss.message};
}

std::optional<Error> RestartLimits::outlast_deadline(const Error& late, TimePoint now) {
  const bool in_time = operations_.spend(now);
  const bool in_run = !since_commit_ || ++since_commit_->operations <= most_;
  if (in_time && in_run) return std::nullopt;
  return Error{Errc::budget_exhausted, 0,
               in_run ? "too many operations past their deadline"
                      : "more than " + std::to_string(most_) +
                            " operations past their deadline without a commit in between; the "
                            "last: " +
                            late.message};
}

void RestartLimits::renew() {
  hosts_ = RestartBudget(most_, window_);
  if (since_commit_) since_commit_ = Costs();
  last_taken_ = false;
}

}  // namespace troupe::rank_process
