#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <troupe/actor/actor_ref.hpp>
#include <troupe/actor/serializer.hpp>
#include <troupe/ids.hpp>

namespace troupe {

namespace detail {

/// A question that was sent to another rank: gets the answer once, or none when it is destroyed.
class PendingAnswer {
 public:
  virtual ~PendingAnswer() = default;
  virtual void resolve(const Result<std::span<const std::byte>>& answer) = 0;
};

/// Where messages for one actor of another rank go. Any thread.
class RemoteAddress {
 public:
  virtual ~RemoteAddress() = default;
  [[nodiscard]] virtual Result<void> tell(std::uint32_t type, std::vector<std::byte> payload) = 0;
  /// Not sent: an error, and `answer` is not told.
  [[nodiscard]] virtual Result<void> ask(std::uint32_t type, std::vector<std::byte> payload,
                                         std::chrono::nanoseconds within,
                                         std::unique_ptr<PendingAnswer> answer) = 0;
  /// An error that no future tells the program of.
  virtual void report(const Error& error) = 0;
  /// What a thread does that waits for an answer, before it sleeps; nullptr: it sleeps at once.
  [[nodiscard]] virtual Progress* progress() const noexcept { return nullptr; }
};

/// In the place of a message's: the question when and why the actor ends.
inline constexpr std::uint32_t kEndOfActor = UINT32_MAX;

/// An actor that other ranks reach by its name, whatever its class. Any thread.
class PublishedActor {
 public:
  using Answer = std::function<void(const Result<std::vector<std::byte>>&)>;

  virtual ~PublishedActor() = default;
  /// Names its message set; see message_set_name().
  [[nodiscard]] virtual std::uint64_t message_set() const = 0;
  [[nodiscard]] virtual bool ended() const = 0;
  /// Hands over a message of that place in the set. Errors: invalid (the bytes are none of it),
  /// would_block (the mailbox is full: nothing has happened), stopped.
  [[nodiscard]] virtual Result<void> tell(std::uint32_t type,
                                          std::span<const std::byte> payload) = 0;
  /// As tell(); `answer` is called once if there is no error.
  [[nodiscard]] virtual Result<void> ask(std::uint32_t type, std::span<const std::byte> payload,
                                         std::chrono::nanoseconds within, Answer answer) = 0;
  /// `answer` is called once the actor has ended, with why.
  virtual void watch(Answer answer) = 0;
};

/// M can be asked of an actor of another rank.
template <class M>
concept PortableQuestion = Question<M> && Portable<M> &&
    (std::is_void_v<typename M::Reply> || Portable<typename M::Reply>);

template <class A>
class PublishedActorOf final : public PublishedActor {
 public:
  explicit PublishedActorOf(ActorRef<A> actor) : actor_(std::move(actor)) {}

  [[nodiscard]] std::uint64_t message_set() const override { return A::MessageSet::number(); }
  [[nodiscard]] bool ended() const override { return actor_.ended(); }
  Result<void> tell(std::uint32_t type, std::span<const std::byte> payload) override {
    return A::MessageSet::visit(type, [&]<class M>(std::type_identity<M>) -> Result<void> {
      if constexpr (Portable<M>) {
        auto message = from_bytes<M>(payload);
        return message.ok() ? actor_.tell(std::move(*message)) : Result<void>(message.error());
      } else {
        return Error{Errc::invalid, 0, "a message that does not travel"};
      }
    });
  }
  Result<void> ask(std::uint32_t type, std::span<const std::byte> payload,
                   std::chrono::nanoseconds within, Answer answer) override {
    return A::MessageSet::visit(type, [&]<class M>(std::type_identity<M>) -> Result<void> {
      if constexpr (PortableQuestion<M>) {
        auto message = from_bytes<M>(payload);
        if (!message.ok()) return message.error();
        const auto asked = actor_.try_ask(std::move(*message), within);
        if (!asked.ok()) return asked.error();
        detail::at_once_when_ready(
            *asked, [answer = std::move(answer)](const Result<typename M::Reply>& outcome) {
              if (!outcome.ok()) return answer(outcome.error());
              if constexpr (std::is_void_v<typename M::Reply>) {
                answer(std::vector<std::byte>());
              } else {
                answer(to_bytes(*outcome));
              }
            });
        return {};
      } else {
        return Error{Errc::invalid, 0, "a message that is no question, or does not travel"};
      }
    });
  }

  void watch(Answer answer) override {
    actor_.on_ended([answer = std::move(answer)](const Error& reason) { answer(reason); });
  }

 private:
  ActorRef<A> actor_;
};

/// Tells of the end of an actor. Nothing is told where the future was dropped.
class RemoteEnd final : public PendingAnswer {
 public:
  explicit RemoteEnd(StatePtr<State<void>> state) : state_(std::move(state)) {}
  ~RemoteEnd() override { end({Errc::stopped, 0, "the runtime has ended"}); }
  void resolve(const Result<std::span<const std::byte>>& answer) override {
    end(answer.ok() ? Error{Errc::stopped, 0, "it has ended"} : answer.error());
  }

 private:
  void end(Error reason) {
    if (!state_->ready()) state_->resolve(std::move(reason));
  }
  StatePtr<State<void>> state_;
};

/// Resolves a future with what comes back.
template <class R>
class RemoteReply final : public PendingAnswer {
 public:
  RemoteReply(StatePtr<State<R>> state, std::shared_ptr<RemoteAddress> address)
      : state_(std::move(state)), address_(std::move(address)) {}
  ~RemoteReply() override {
    if (!state_->ready()) state_->resolve(Error{Errc::stopped, 0, "the runtime has ended"});
  }
  void resolve(const Result<std::span<const std::byte>>& answer) override {
    auto outcome = read(answer);
    // Nobody holds the future any more, so nobody would hear of it.
    if (!outcome.ok() && state_->unshared()) address_->report(outcome.error());
    state_->resolve(std::move(outcome));
  }

 private:
  static Result<R> read(const Result<std::span<const std::byte>>& answer) {
    if (!answer.ok()) return answer.error();
    if constexpr (std::is_void_v<R>) {
      return {};
    } else {
      return from_bytes<R>(*answer);
    }
  }

  StatePtr<State<R>> state_;
  std::shared_ptr<RemoteAddress> address_;
  Errand errand_{Errand::Count::active};  ///< of who asks
};

}  // namespace detail

/// An actor of class A on some rank, by its name: what World::actor() answers. Cheap to copy; any
/// thread, actors' own ones too.
///
/// A message arrives at most once, and those of one rank to one actor in the order in which they
/// were sent. At most 1024 small messages of a rank to an actor are on their way, or 256 KiB: the
/// answer to one more is would_block (tell_patiently() waits), so a slow actor slows down whoever
/// sends to it, and nobody else. Messages have nothing to do with epochs: they go on while the
/// world is re-formed. One that was accepted here and cannot be handed over there, because the rank
/// has no such actor or the actor has ended, is an error that Device::take_error() of this rank
/// tells. What is on its way to a rank that leaves the world is lost with it.
template <class A>
class RemoteActor {
 public:
  /// Sends a message. Errors, and then it was not sent: would_block (too many are on their way),
  /// peer_lost (the rank is not, or not any more, in the world), stopped (the runtime has ended),
  /// invalid (it has more than 64 KiB: what is large stays in a buffer, and its token travels).
  template <class M>
  requires(Accepts<A, M>&& Portable<M>) Result<void> tell(const M& message)
  const { return address_->tell(A::MessageSet::template kPlaceOf<M>, detail::to_bytes(message)); }

  /// Sends a question. The future always resolves: as that of ActorRef::ask(), and with
  /// Errc::invalid if the rank has no such actor, Errc::peer_lost if it leaves the world first. An
  /// error of a future that was dropped is told by Device::take_error(). Resolved on a thread of
  /// troupe's; do not wait for it in a handler, use Context::pipe().
  template <class M>
  requires(Accepts<A, M>&& detail::PortableQuestion<M>)
      [[nodiscard]] Future<typename M::Reply> ask(const M& message,
                                                  std::chrono::nanoseconds within) const {
    using R = typename M::Reply;
    detail::StatePtr<detail::State<R>> state(new detail::State<R>(address_->progress()));
    const Future<R> future(state);
    auto answer = std::make_unique<detail::RemoteReply<R>>(state, address_);
    const auto sent = address_->ask(A::MessageSet::template kPlaceOf<M>, detail::to_bytes(message),
                                    within, std::move(answer));
    if (!sent.ok()) return Future<R>(Result<R>(sent.error()));
    return future;
  }

  /// The end of the actor, as a future that never has a value: it resolves with the error that says
  /// why. That of the actor if it ends (stopped, if it was asked to), Errc::peer_lost if its rank
  /// leaves the world, Errc::invalid if the rank has no such actor, Errc::stopped when the runtime
  /// ends. A restart is no end. What Context::watch() is for actors of one process:
  /// `context().pipe(remote.ended(), [](const Result<void>& end) { return Gone{end.code()}; })`. An
  /// end of which nobody is told is no error.
  [[nodiscard]] Future<void> ended() const {
    constexpr auto kForEver = std::chrono::hours(24 * 365 * 100);
    detail::StatePtr<detail::State<void>> state(new detail::State<void>(nullptr));
    const Future<void> future(state);
    const auto sent = address_->ask(detail::kEndOfActor, {}, kForEver,
                                    std::make_unique<detail::RemoteEnd>(state));
    if (!sent.ok()) return Future<void>(Result<void>(sent.error()));
    return future;
  }

  /// For World.
  explicit RemoteActor(std::shared_ptr<detail::RemoteAddress> address)
      : address_(std::move(address)) {}

 private:
  std::shared_ptr<detail::RemoteAddress> address_;
};

}  // namespace troupe
