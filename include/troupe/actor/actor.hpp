#pragma once

#include <chrono>
#include <string>
#include <type_traits>
#include <utility>

#include <troupe/actor/actor_id.hpp>
#include <troupe/actor/actor_ref.hpp>
#include <troupe/actor/message_set.hpp>
#include <troupe/actor/typed_cell.hpp>
#include <troupe/future.hpp>

namespace troupe {

/// What an actor can do beside handling messages. Made by Actor::context(), used at once, in a
/// handler or one of the on_... functions of that actor only.
template <class Self>
class Context {
 public:
  [[nodiscard]] ActorRef<Self> self() const {
    return ActorRef<Self>(detail::CellPtr<detail::Cell>(&cell_));
  }
  [[nodiscard]] ActorId id() const noexcept { return cell_.id(); }
  [[nodiscard]] const std::string& name() const noexcept { return cell_.name(); }
  [[nodiscard]] const Clock& clock() const noexcept { return cell_.scheduler().clock(); }
  [[nodiscard]] TimePoint now() const noexcept { return clock().now(); }

  /// Sends the actor a message once, `delay` from now, ahead of its mailbox and never lost to a
  /// full one. Timers end with the object that set them: a restarted actor sets its own in
  /// on_start(). It is sent for no Timeline. Throws Exception (would_block) if the system has too
  /// many timers (2^20).
  template <class M>
  requires Accepts<Self, M> TimerId schedule(std::chrono::nanoseconds delay, M message) {
    const detail::Binding none(nullptr);
    return cell_.add_timer(delay, cell_.make_post(std::move(message)));
  }
  /// After this the timer's message does not arrive; false if it has arrived already.
  bool cancel(const TimerId& timer) { return cell_.cancel_timer(timer); }

  /// Sends the actor `to_message(const Result<T>&)` once `future` has resolved, ahead of its
  /// mailbox and never lost to a full one: the way to wait in an actor. `to_message` runs on the
  /// resolving thread, must neither wait nor throw and must not touch the actor. Ends with the
  /// object, like a timer.
  template <class T, class F>
  void pipe(const Future<T>& future, F to_message) {
    using M = std::remove_cvref_t<std::invoke_result_t<F, const Result<T>&>>;
    static_assert(Accepts<Self, M>, "the message is not in the actor's message set");
    detail::at_once_when_ready(
        future,
        [cell = detail::CellPtr<detail::TypedCell<Self>>(&cell_), incarnation = cell_.incarnation(),
         to_message = std::move(to_message)](const Result<T>& outcome) mutable {
          cell->post(cell->make_post(to_message(outcome), incarnation));
        },
        true);
  }

  /// Makes a child: it ends before this actor does, and before this actor is restarted. Its end is
  /// announced with a Down without a watch. As ActorSystem::spawn() in everything else.
  template <class A, class... Args>
  ActorRef<A> spawn(SpawnOptions options, Args&&... args) {
    const auto child =
        detail::make_cell<A>(cell_.shared_core(), detail::CellPtr<detail::Cell>(&cell_),
                             std::move(options), std::forward<Args>(args)...);
    cell_.launch(child);
    return ActorRef<A>(child);
  }

  /// Announces the end of another actor with one Down: at once if it has ended already. Watching
  /// twice is watching once. Ends with the object, like a timer.
  template <class A>
  void watch(const ActorRef<A>& other) {
    if (other) cell_.watch(*other.cell());
  }
  /// After this no Down of that watch arrives.
  template <class A>
  void unwatch(const ActorRef<A>& other) {
    if (other) cell_.unwatch(*other.cell());
  }

  /// Ends this actor after the current message.
  void stop(Error reason = {Errc::stopped, 0, "stopped itself"}) { cell_.stop(std::move(reason)); }
  /// Makes the current message a failure, as if its handler had thrown this when it returns.
  void fail(Error error) { cell_.report(std::move(error)); }

  /// Made by Actor::context().
  explicit Context(detail::TypedCell<Self>& cell) noexcept : cell_(cell) {}

 private:
  detail::TypedCell<Self>& cell_;
};

/// What an actor may override. All run in its own turn.
class ActorBase {
 public:
  ActorBase() = default;
  ActorBase(const ActorBase&) = delete;
  ActorBase& operator=(const ActorBase&) = delete;
  virtual ~ActorBase() = default;

  /// Before the first message, also after a restart; context() is ready. May throw: a failure that
  /// cannot be resumed.
  virtual void on_start() {}
  /// Before the object is destroyed because the actor ends, its children having ended. Not called
  /// before a restart: an object that failed is not asked again.
  virtual void on_stop(const Error& /*reason*/) noexcept {}
  /// The end of a child or a watched actor, unless Down is in the message set.
  virtual void on_down(const Down& /*down*/) {}

  /// For the actor system itself: whose object this is, before on_start().
  void set_cell(detail::Cell* cell) noexcept { cell_ = cell; }

 protected:
  [[nodiscard]] detail::Cell* cell() const noexcept { return cell_; }

 private:
  detail::Cell* cell_ = nullptr;
};

/// Base of an actor class `Self` that accepts the messages Ms and no others: for each of them Self
/// has a public `on(M&&)` (or by value, or const reference).
///
/// A handler of a message without `Reply` returns void or Result<void>; of a question with Reply R
/// it returns R, Result<R> or Future<R>. A handler that throws or returns an Error has failed: its
/// supervision decides (a question is answered with the Error first). A Future is an answer to
/// come: its error is the asker's.
///
/// Handlers run one at a time; the object needs no locks. It is made by its scheduler, not by the
/// spawner, and made anew after failures that ask for that.
template <class Self, class... Ms>
class Actor : public ActorBase {
 public:
  using Envelope = std::variant<detail::Carried<Ms>...>;
  using MessageSet = detail::MessageSet<Ms...>;
  template <class M>
  static constexpr bool accepts = (std::is_same_v<M, Ms> || ...);

 protected:
  /// From on_start() on, not in the constructor.
  [[nodiscard]] Context<Self> context() {
    detail::require(cell() != nullptr, "context() is for on_start() and later");
    return Context<Self>(static_cast<detail::TypedCell<Self>&>(*cell()));
  }
};

}  // namespace troupe
