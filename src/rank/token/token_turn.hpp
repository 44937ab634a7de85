#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include <troupe/actor/actor.hpp>
#include <troupe/future.hpp>

#include "rank/token/token_message.hpp"
#include "rank/token/token_parts.hpp"

namespace troupe::rank_process {

class TokenActor;

namespace token_message {
/// Something that the actor waited for has happened.
struct Happened {
  std::function<void()> what;
};
}  // namespace token_message

/// What the parts of a TokenActor do alike in its turns: speak to other ranks, wait for futures.
class TokenTurn {
 public:
  TokenTurn(TokenParts& parts, Context<TokenActor> context) : parts_(parts), context_(context) {}

  [[nodiscard]] TokenParts& parts() const noexcept { return parts_; }
  [[nodiscard]] int rank() const noexcept { return parts_.rank; }
  [[nodiscard]] DeviceCore& device() const { return *parts_.device; }
  [[nodiscard]] CommandPort& port() const { return parts_.device->port(); }
  [[nodiscard]] TimePoint now() const { return context_.now(); }
  [[nodiscard]] ActorRef<TokenActor> self() const { return context_.self(); }

  void send(int rank, const TokenMessage& message) const {
    parts_.send(rank, encode(parts_.rank, message));
  }
  /// Calls f(outcome) in a turn of the actor once the future has resolved.
  template <class T, class F>
  void then(const Future<T>& future, F f) {
    context_.pipe(future, [f = std::move(f)](const Result<T>& outcome) {
      return token_message::Happened{[f, outcome] { f(outcome); }};
    });
  }
  /// As then(), without another turn for what has resolved already: `f` runs before this returns.
  template <class F>
  void at_once_or_then(const Future<void>& future, F f) {
    future.ready() ? f(future.wait()) : then(future, std::move(f));
  }

 private:
  TokenParts& parts_;
  Context<TokenActor> context_;
};

/// The epochs and the members of the world, as far as the TokenActor has been told of them.
struct TokenWorld {
  explicit TokenWorld(int size) : excluded(static_cast<std::size_t>(size)) {}

  std::uint32_t epoch = 0;      ///< that the program has acknowledged
  std::uint64_t committed = 0;  ///< the newest commit of the program in that epoch
  std::uint32_t ended = 0;      ///< the newest epoch that has ended …
  Error why_ended{};            ///< … and why
  std::vector<bool> excluded;   ///< by rank

  [[nodiscard]] bool is_out(int rank) const { return excluded[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] static Error gone(int rank) {
    return {Errc::peer_lost, 0, "rank " + std::to_string(rank) + " is out of the world"};
  }
  /// Why nothing of this epoch can be asked of `owner`; nullopt: it can.
  [[nodiscard]] std::optional<Error> obstacle(std::uint32_t of_epoch, int owner) const {
    if (of_epoch <= ended) return why_ended;
    if (is_out(owner)) return gone(owner);
    return std::nullopt;
  }
};

}  // namespace troupe::rank_process
