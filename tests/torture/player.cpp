#include "player.hpp"

#include <fmt/format.h>

namespace troupe::torture {
namespace {

/// A coroutine that awaits the operation.
Future<void> await(Future<void> future) {
  co_await future;
}

/// The future that is waited for in the place of the operation's own.
Future<void> watched(const Operation& op, const Future<void>& future) {
  switch (op.await) {
    case Await::callback: {
      Promise<void> promise;
      auto told = promise.future();
      future.on_ready([promise = std::make_shared<Promise<void>>(std::move(promise))](
                          const Result<void>& outcome) { promise->resolve(outcome); });
      return told;
    }
    case Await::chain: return when_all({future.then([] {}), future});
    case Await::coroutine: return await(future);
    default: return future;
  }
}

}  // namespace

bool is_of_a_fault(Errc code) {
  return code == Errc::device_lost || code == Errc::world_reformed || code == Errc::stale ||
         code == Errc::budget_exhausted;
}

void Player::wait(const Future<void>& future, const std::string& what) const {
  for (std::chrono::nanoseconds waited{}; !future.wait_for(kSlice); waited += kSlice) {
    if (waited > deadline_)
      throw Finding(fmt::format("it does not resolve within {} s: {}",
                                std::chrono::duration<double>(deadline_).count(), what));
  }
}

void Player::play(std::span<const Operation> script, Hands& hands, const Listener& listener) const {
  Hands::Thread in_hand;
  std::vector<std::pair<const Operation*, Future<void>>> pending;
  const auto end = [&](const Operation& op, const Future<void>& future) {
    wait(future, describe(op));
    listener.outcome(op, future.wait());
  };
  for (std::size_t i = 0; i < script.size(); ++i) {
    const auto& op = script[i];
    const bool bundle_goes_on =
        op.bundle != 0 && i + 1 < script.size() && script[i + 1].bundle == op.bundle;
    account_.advance();
    if (op.kind == Kind::pause) {
      std::this_thread::sleep_for(std::chrono::microseconds(op.data));
      continue;
    }
    account_.count_operations();
    Future<void> future;
    try {
      if (op.fails == Errc::library) blows_.fail_library_of(op);
      future = op.kind == Kind::fault ? blows_.strike(op) : hands.submit(op, in_hand);
      if (op.bundle != 0 && !bundle_goes_on) hands.submit_bundle(in_hand);
    } catch (const Exception& e) {
      listener.outcome(op, e.error());
      continue;
    }
    const bool drops = op.await == Await::drop && !listener.hears_all && op.fails == Errc::ok;
    if (!future.valid() || drops) continue;
    future = watched(op, future);
    if (op.await == Await::now && !bundle_goes_on)
      end(op, future);
    else
      pending.emplace_back(&op, future);
  }
  for (const auto& [op, future] : pending) end(*op, future);
  look(in_hand.seen, listener);
}

void Player::look(std::vector<Seen>& seen, const Listener& listener) const {
  for (auto& one : seen) {
    if (one.future.valid()) {
      // Whoever looks waits for it, whatever else the script does with the future.
      wait(one.future, describe(*one.op));
      listener.outcome(*one.op, one.future.wait());
      if (!one.future.wait().ok()) continue;
    }
    try {
      if (one.later) one.bytes = one.later();
    } catch (const Exception& e) {
      listener.outcome(*one.op, e.error());
      continue;
    }
    listener.saw(*one.op, account_.seen(std::move(one.bytes)));
  }
}

}  // namespace troupe::torture
