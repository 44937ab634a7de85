#pragma once

#include <chrono>
#include <type_traits>
#include <utility>

#include <troupe/actor/cell.hpp>
#include <troupe/actor/reply.hpp>
#include <troupe/error.hpp>
#include <troupe/future.hpp>

namespace troupe {

template <class A>
class Context;

/// True if M is in the closed message set of actor class A.
template <class A, class M>
concept Accepts = A::template accepts<M>;

/// The address of an actor of class A. Cheap to copy (one atomic increment), usable from any
/// thread, also after the actor or its whole system has ended. Survives restarts of the actor. A
/// may be incomplete where only references are kept.
///
/// Messages of one thread to one actor arrive in the order in which they were sent.
template <class A>
class ActorRef {
 public:
  /// Refers to nobody: answers Errc::stopped.
  ActorRef() = default;

  /// Sends a message. Errc::would_block if the mailbox is full (it was not sent: try later, or give
  /// up), Errc::stopped if the actor has ended or the system is shutting down.
  template <class M>
  requires Accepts<A, M> Result<void> tell(M message)
  const {
    if (!cell_) return Error{Errc::stopped, 0, "no actor"};
    return typed().tell(std::move(message));
  }

  /// Sends a question and returns the future answer, which always resolves: with what the handler
  /// returns or the Error it fails with; Errc::timeout if there is no answer `within` that time
  /// from now (a question still waiting in the mailbox then is not handled any more); Errc::stopped
  /// if the actor has ended or ends first; Errc::would_block if the mailbox is full. Resolved on a
  /// scheduler thread. Do not wait for it in a handler: use Context::pipe().
  template <Question M>
  requires Accepts<A, M> Future<typename M::Reply> ask(M message, std::chrono::nanoseconds within)
  const {
    auto asked = try_ask(std::move(message), within);
    return asked.ok() ? *asked : Future<typename M::Reply>(asked.error());
  }
  /// As ask(), but a question that was not sent is an error at once, and not an answer.
  template <Question M>
  requires Accepts<A, M> Result<Future<typename M::Reply>> try_ask(M message,
                                                                   std::chrono::nanoseconds within)
  const {
    if (!cell_) return Error{Errc::stopped, 0, "no actor"};
    return typed().try_ask(std::move(message), within);
  }

  /// Ends the actor after the message it is handling, with its children first. What is in its
  /// mailbox is dropped, questions answered with Errc::stopped.
  void stop(Error reason = {Errc::stopped, 0, "asked to stop"}) const {
    if (cell_) cell_->stop(std::move(reason));
  }

  /// True if the actor has ended for good.
  [[nodiscard]] bool ended() const { return !cell_ || cell_->ended(); }
  /// Blocks until the actor has ended for good: its object is gone, no handler is at work. Not for
  /// actors' own threads.
  void wait_ended() const {
    if (cell_) cell_->wait_ended();
  }
  /// Calls f(const Error& reason) once the actor has ended for good, at once if it has. f runs on
  /// some thread and must neither block nor throw. For who is no actor: these use Context::watch().
  template <class F>
  void on_ended(F f) const {
    if (!cell_) return f(Error{Errc::stopped, 0, "no actor"});
    cell_->on_ended(std::move(f));
  }
  /// 0 if this refers to nobody.
  [[nodiscard]] ActorId id() const noexcept { return cell_ ? cell_->id() : ActorId(); }
  explicit operator bool() const noexcept { return static_cast<bool>(cell_); }
  friend bool operator==(const ActorRef& a, const ActorRef& b) noexcept {
    return a.cell_.get() == b.cell_.get();
  }

  // For the actor system itself: what stands behind a reference.

  explicit ActorRef(detail::CellPtr<detail::Cell> cell) noexcept : cell_(std::move(cell)) {}
  [[nodiscard]] const detail::CellPtr<detail::Cell>& cell() const noexcept { return cell_; }
  [[nodiscard]] detail::TypedCell<A>& typed() const noexcept {
    return static_cast<detail::TypedCell<A>&>(*cell_);
  }

 private:
  detail::CellPtr<detail::Cell> cell_;
};

/// Sends `actor` the message `to_message(const Result<T>&)` once `future` has resolved, ahead of
/// its mailbox and never lost to a full one; dropped if the actor has ended by then. `to_message`
/// runs on the resolving thread and must not throw. Any thread; an actor that waits for a future
/// itself uses Context::pipe(), which ends with the object.
template <class T, class A, class F>
void pipe_to(const Future<T>& future, const ActorRef<A>& actor, F to_message) {
  using M = std::remove_cvref_t<std::invoke_result_t<F, const Result<T>&>>;
  static_assert(Accepts<A, M>, "the message is not in the actor's message set");
  if (!actor) return;
  detail::at_once_when_ready(
      future,
      [cell = detail::CellPtr<detail::TypedCell<A>>(&actor.typed()),
       to_message = std::move(to_message)](const Result<T>& outcome) mutable {
        cell->post(cell->make_post(to_message(outcome), detail::Posted::kAnyIncarnation));
      },
      true);
}

}  // namespace troupe
