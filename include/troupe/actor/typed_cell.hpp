#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include <troupe/actor/cell.hpp>
#include <troupe/actor/mailbox.hpp>
#include <troupe/actor/reply.hpp>
#include <troupe/actor/system_core.hpp>

namespace troupe::detail {

/// Runs user code; what it throws becomes an Error.
template <class F>
std::optional<Error> guarded(F&& user_code) noexcept {
  try {
    return user_code();
  } catch (const Exception& e) {
    return e.error();
  } catch (const std::bad_alloc&) {
    return Error{Errc::out_of_memory, 0, "std::bad_alloc"};
  } catch (const std::exception& e) {
    return Error{Errc::internal, 0, e.what()};
  } catch (...) {
    return Error{Errc::internal, 0, "a handler threw no std::exception"};
  }
}

/// An actor of class A: its mailbox, its factory and its present object.
template <class A>
class TypedCell final : public Cell {
 public:
  using Envelope = typename A::Envelope;
  using Factory = std::function<std::unique_ptr<A>()>;

  TypedCell(std::shared_ptr<SystemCore> core, CellPtr<Cell> parent, ActorId id,
            SpawnOptions options, Factory factory)
      : Cell(std::move(core), std::move(parent), id, options),
        mailbox_(options.mailbox_capacity),
        factory_(std::move(factory)) {}

  /// Any thread.
  template <class M>
  Result<void> tell(M&& message) {
    return push(Carried<M>(std::move(message)));
  }

  /// Any thread.
  template <class M>
  Result<Future<typename M::Reply>> try_ask(M&& message, std::chrono::nanoseconds within) {
    using R = typename M::Reply;
    StatePtr<State<R>> state(new State<R>(nullptr));
    Future<R> future(state);
    const auto deadline = scheduler().schedule(within, std::make_unique<AskDeadline<R>>(state));
    if (!deadline) {  // a scheduler that has stopped has closed all mailboxes before
      return mailbox_.closed() ? Error{Errc::stopped, 0, "actor ended"}
                               : Error{Errc::would_block, 0, "too many timers"};
    }
    Reply<R> reply(state, *deadline, scheduler());
    Carried<M> question(std::move(message), std::move(reply));
    if (auto sent = push(std::move(question)); !sent.ok()) {
      question.reply.withdraw(sent.error());  // and the deadline is gone
      return sent.error();
    }
    return future;
  }

  /// Any thread.
  template <class M>
  std::unique_ptr<Posted> make_post(M message, std::uint64_t incarnation) {
    return std::make_unique<PostedMessage>(Carried<M>(std::move(message)), incarnation);
  }
  /// [turn] For the present object.
  template <class M>
  std::unique_ptr<Posted> make_post(M message) {
    return make_post(std::move(message), incarnation());
  }

 private:
  struct PostedMessage final : Posted {
    template <class M>
    PostedMessage(Carried<M>&& message, std::uint64_t to)
        : Posted(to), envelope(std::move(message)) {}
    Envelope envelope;
  };

  template <class M>
  Result<void> push(Carried<M>&& message) {
    if (core().refuses_outside() && !inside_a_turn()) {
      return Error{Errc::stopped, 0, "shutting down"};
    }
    switch (mailbox_.push(std::move(message))) {
      case Push::ok: wake(); return {};
      case Push::full: return Error{Errc::would_block, 0, "mailbox full"};
      case Push::closed: break;
    }
    return Error{Errc::stopped, 0, "actor ended"};
  }

  /// A failure is what user code throws, returns, or has reported to its context.
  template <class F>
  std::optional<Error> attempt(F&& user_code) noexcept {
    auto failure = guarded(std::forward<F>(user_code));
    if (has_report()) {
      auto reported = take_report();
      if (!failure) failure = std::move(reported);
    }
    return failure;
  }

  std::optional<Error> create() override {
    return attempt([this]() -> std::optional<Error> {
      actor_ = factory_();
      actor_->set_cell(this);
      actor_->on_start();
      return std::nullopt;
    });
  }

  void destroy() noexcept override { actor_.reset(); }

  void last_words(const Error& reason) noexcept override {
    if (actor_) actor_->on_stop(reason);
  }

  int consume(int budget) override {
    int consumed = 0;
    std::optional<Error> failure;
    const auto handle_one = [&](Envelope&& envelope) { failure = dispatch(envelope); };
    while (consumed < budget && may_consume() && mailbox_.consume(handle_one)) {
      ++consumed;
      if (failure) {  // dealt with outside the mailbox, which it may close
        failed(std::move(*failure), true);
        failure.reset();
      }
    }
    mailbox_.free_consumed();
    return consumed;
  }

  std::optional<Error> deliver(Down down) override {
    return attempt([&]() -> std::optional<Error> {
      if constexpr (A::template accepts<Down>) {
        Carried<Down> carried(std::move(down));
        return call(carried);
      } else {
        actor_->on_down(down);
        return std::nullopt;
      }
    });
  }

  std::optional<Error> deliver(Posted& posted) override {
    return dispatch(static_cast<PostedMessage&>(posted).envelope);
  }

  void close_mailbox() override {
    mailbox_.close([](Envelope&&) {});
  }
  bool mailbox_claimed() const noexcept override { return mailbox_.claimed(); }
  bool mailbox_published() const noexcept override { return mailbox_.published(); }

  std::optional<Error> dispatch(Envelope& envelope) {
    return std::visit(
        [this](auto& carried) {
          const Binding binding(carried.errand.timeline());
          auto failure = attempt([&] { return call(carried); });
          if constexpr (requires { carried.reply; }) {
            if (failure) carried.reply.resolve(*failure);
          } else if (failure) {
            tell_of(*failure);
          }
          return failure;
        },
        envelope);
  }

  template <class M>
  std::optional<Error> call(Carried<M>& carried) {
    using Returned = decltype(actor_->on(std::move(carried.message)));
    if constexpr (Question<M>) {
      if (carried.reply.expired()) return std::nullopt;
      return answer<typename M::Reply, Returned>(carried);
    } else if constexpr (std::is_void_v<Returned>) {
      actor_->on(std::move(carried.message));
    } else {
      static_assert(std::is_same_v<Returned, Result<void>>,
                    "a handler of a message without Reply returns void or Result<void>");
      if (auto outcome = actor_->on(std::move(carried.message)); !outcome.ok())
        return outcome.error();
    }
    return std::nullopt;
  }

  template <class R, class Returned, class M>
  std::optional<Error> answer(Carried<M>& question) {
    if constexpr (std::is_same_v<Returned, Future<R>>) {
      promise_answer(actor_->on(std::move(question.message)), std::move(question.reply));
    } else if constexpr (std::is_same_v<Returned, Result<R>>) {
      auto outcome = actor_->on(std::move(question.message));
      std::optional<Error> failure;
      if (!outcome.ok()) failure = outcome.error();
      question.reply.resolve(std::move(outcome));
      if (failure) return failure;
    } else {
      static_assert(std::is_same_v<Returned, R>,
                    "a handler of a question returns Reply, Result<Reply> or Future<Reply>");
      if constexpr (std::is_void_v<R>) {
        actor_->on(std::move(question.message));
        question.reply.resolve({});
      } else {
        question.reply.resolve(actor_->on(std::move(question.message)));
      }
    }
    return std::nullopt;
  }

  template <class R>
  void promise_answer(const Future<R>& future, Reply<R>&& reply) {
    if (!future.valid()) throw Exception(Error{Errc::internal, 0, "a handler returned no future"});
    if (reply.empty()) return;
    if (future.ready()) {
      reply.resolve(future.wait());
      return;
    }
    auto shared = std::make_shared<Reply<R>>(std::move(reply));
    const auto key = add_pending_reply([shared](const Error& error) { shared->resolve(error); });
    at_once_when_ready(future,
                       [cell = CellPtr<TypedCell>(this), key, shared](const Result<R>& outcome) {
                         shared->resolve(outcome);
                         cell->remove_pending_reply(key);
                       });
  }

  Mailbox<Envelope> mailbox_;
  const Factory factory_;
  std::unique_ptr<A> actor_;
};

/// An actor that is not yet started. The arguments are kept, and copied for each object that is
/// made.
template <class A, class... Args>
CellPtr<TypedCell<A>> make_cell(std::shared_ptr<SystemCore> core, CellPtr<Cell> parent,
                                SpawnOptions options, Args&&... args) {
  auto factory = [kept = std::tuple<std::decay_t<Args>...>(std::forward<Args>(args)...)] {
    return std::apply([](const auto&... each) { return std::make_unique<A>(each...); }, kept);
  };
  const auto id = core->next_id();
  return CellPtr<TypedCell<A>>(new TypedCell<A>(std::move(core), std::move(parent), id,
                                                std::move(options), std::move(factory)));
}

}  // namespace troupe::detail
