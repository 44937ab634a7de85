#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include <troupe/remote_device.hpp>

#include "common/actor/actor_system.hpp"
#include "rank/world/token_actor.hpp"

namespace troupe::rank {

/// The program's side of tokens; what it does with them is in TokenActor. Any thread.
class TokenRouter : public std::enable_shared_from_this<TokenRouter> {
 public:
  struct Options {
    TokenPath path = TokenPath::peer_or_network;
    std::chrono::nanoseconds timeout = std::chrono::seconds(60);
  };

  /// All ranks call it.
  static Result<std::shared_ptr<TokenRouter>> open(ActorSystem& system, MpiSession& mpi,
                                                   std::shared_ptr<DeviceCore> device,
                                                   const Options& options);
  /// Waits for all ranks to do the same: until then it serves them. Afterwards everything is
  /// answered with Errc::stopped.
  void end();
  ~TokenRouter() { end(); }

  /// destination = what `token` names. See World::fetch.
  Future<void> fetch(const GpuToken& token, DType dtype, const Operand& destination);
  /// What `token` names = source.
  Future<void> put(const Operand& source, DType dtype, const GpuToken& token);
  Future<TokenLease> hold(const GpuToken& token);
  /// Waits for the end of all that was asked for so far.
  void wait_answered();
  /// The device of the rank `owner` of the job, which the program calls `rank`; -1: there is none.
  [[nodiscard]] RemoteDevice device(Rank rank, int owner);
  /// These ranks are out of the world: what they were and are asked fails with peer_lost, what they
  /// held is let go. The others are in it, be it again.
  void set_excluded(const std::vector<std::int32_t>& ranks);

 private:
  class Remote;
  class Lease;

  TokenRouter() = default;
  template <class M>
  Result<void> tell(const M& message) const;
  [[nodiscard]] Result<Operand> name(const GpuToken& token, DType dtype) const;
  void ask(int owner, TokenMessage head, std::span<const std::byte> payload,
           std::function<void(const TransferKey&, const Result<void>&)> done);
  void release(int owner, const TransferKey& key);
  /// See wait_answered(). Returns its argument.
  Future<void> await(const Future<void>& future);

  std::mutex unanswered_mutex_;
  std::vector<Future<void>> unanswered_;  ///< and some that are answered
  std::size_t clean_at_ = 64;

  TokenParts parts_;
  ActorRef<TokenActor> actor_;
};

}  // namespace troupe::rank
