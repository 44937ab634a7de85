#pragma once

#include <type_traits>
#include <utility>

#include <troupe/actor/scheduler.hpp>
#include <troupe/future.hpp>

namespace troupe {

/// A message that can be asked: it names what it is answered with, `using Reply = R;` (void is
/// allowed).
template <class M>
concept Question = requires {
  typename M::Reply;
};

namespace detail {

/// Resolves an unanswered question when its deadline passes.
template <class R>
class AskDeadline final : public TimerTask {
 public:
  explicit AskDeadline(StatePtr<State<R>> state) : state_(std::move(state)) {}
  void fire(const TimerId&) noexcept override {
    state_->resolve(Error{Errc::timeout, 0, "no answer before the deadline"});
  }

 private:
  StatePtr<State<R>> state_;
};

/// The duty to answer a question; empty for a message that was only told. Dropped unanswered, it
/// resolves with Errc::stopped. Whoever holds it keeps the scheduler alive. Any thread may resolve.
template <class R>
class Reply {
 public:
  Reply() = default;
  Reply(StatePtr<State<R>> state, TimerId deadline, Scheduler& scheduler) noexcept
      : state_(std::move(state)), deadline_(deadline), scheduler_(&scheduler) {}
  Reply(Reply&&) noexcept = default;
  Reply& operator=(Reply&&) = delete;
  ~Reply() {
    if (state_ && !state_->ready()) resolve(Error{Errc::stopped, 0, "actor ended"});
  }

  [[nodiscard]] bool empty() const noexcept { return !state_; }
  /// True if nobody waits any more, because the deadline has passed.
  [[nodiscard]] bool expired() const noexcept { return state_ && state_->ready(); }
  /// The first outcome counts. An error is one that the asker is to read.
  void resolve(Result<R> outcome) const {
    if (!state_ || state_->ready()) return;
    if (!outcome.ok()) outcome = enter_answer(outcome.error());
    if (state_->resolve(std::move(outcome))) scheduler_->cancel(deadline_);
  }
  /// The question was not sent, which its sender knows.
  void withdraw(const Error& why) const {
    if (state_->resolve(why)) scheduler_->cancel(deadline_);
  }

 private:
  StatePtr<State<R>> state_;
  TimerId deadline_{};
  Scheduler* scheduler_ = nullptr;
  Errand errand_{Errand::Count::active};  ///< of who asks
};

/// A message on its way, with what it is sent for, and the duty to answer where it is a question.
template <class M>
struct Carried {
  explicit Carried(M&& m) noexcept : message(std::move(m)) {}
  M message;
  Errand errand{Errand::Count::active};
};
template <Question M>
struct Carried<M> {
  explicit Carried(M&& m) noexcept : message(std::move(m)) {}
  Carried(M&& m, Reply<typename M::Reply>&& r) noexcept
      : message(std::move(m)), reply(std::move(r)) {}
  M message;
  Errand errand{Errand::Count::active};
  Reply<typename M::Reply> reply;
};

}  // namespace detail
}  // namespace troupe
