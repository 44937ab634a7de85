#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>

#include <troupe/actor/actor_system.hpp>
#include <troupe/remote_device.hpp>

#include "rank/net/network_loop.hpp"
#include "rank/token/token_actor.hpp"

namespace troupe::rank_process {

/// The program's side of tokens; what it does with them is in TokenActor. Any thread.
class TokenClient : public std::enable_shared_from_this<TokenClient> {
 public:
  struct Options {
    TokenPath path = TokenPath::peer_or_network;
    std::chrono::nanoseconds timeout = std::chrono::seconds(60);
    const CpuBinding* near = nullptr;  ///< the GPU; nullptr: the thread is not bound
  };

  /// Whether the program is in a run, which a fault takes back to a commit.
  using InRun = std::function<bool()>;

  /// All ranks call it.
  static Result<std::shared_ptr<TokenClient>> open(Session& mpi, std::shared_ptr<DeviceCore> device,
                                                   const Options& options, InRun in_run);
  /// Waits for all ranks to do the same: until then it serves them. Afterwards everything is
  /// answered with Errc::stopped.
  void end();
  ~TokenClient() { end(); }

  /// destination = what `token` names. See World::fetch.
  Future<void> fetch(const GpuToken& token, DType dtype, const Operand& destination);
  /// What `token` names = source.
  Future<void> put(const Operand& source, DType dtype, const GpuToken& token);
  Future<TokenLease> hold(const GpuToken& token);
  /// Maps what `token` names; see World::map.
  Future<detail::MappedRange> map(const GpuToken& token, DType dtype);
  /// The same, but take_error() tells of no failure: the caller deals with it.
  Future<detail::MappedRange> try_map(const GpuToken& token, DType dtype);
  /// The device of the rank `owner` of the job, which the program calls `rank`; -1: there is none.
  [[nodiscard]] RemoteDevice device(Rank rank, int owner);
  /// The program turns to this epoch: what it asks for from now on belongs to it.
  void begin_epoch(std::uint32_t epoch);
  /// The copies of a commit of this epoch are submitted: what is asked for from now on comes behind
  /// the owners' commits too. Its number is commit_number()'s. The program's thread.
  void committed(std::uint32_t epoch, std::uint64_t number);
  /// Resolves once all that this rank has asked for until now is answered, well or not.
  Future<void> flush();
  /// What was asked for in this epoch or before, here and elsewhere, fails with `why`, unless it is
  /// done.
  void end_epoch(std::uint32_t epoch, const Error& why);
  /// These ranks are out of the world: what they were and are asked fails with peer_lost, what they
  /// held is let go. All others are in the world, some of them perhaps again.
  void set_excluded(const std::vector<std::int32_t>& ranks);
  /// Other processes are these ranks now: nothing of those before is left.
  void forget(const std::vector<std::int32_t>& ranks);

 private:
  class Asked;
  class Remote;
  class Lease;
  class Mapped;

  TokenClient() = default;
  /// The commit behind which the program asks now.
  [[nodiscard]] std::uint64_t behind() const { return in_run_() ? committed_.load() : 0; }
  template <class M>
  Result<void> tell(const M& message) const;
  [[nodiscard]] Result<Operand> name(const GpuToken& token, DType dtype) const;
  using MapDone = std::function<void(const Result<detail::MappedRange>&)>;
  /// Calls `done` once. Any thread.
  void map(const GpuToken& token, DType dtype, const MapDone& done);
  /// Asks for a command or a hold.
  template <class Request>
  void ask(int owner, Request request,
           std::function<void(const TransferKey&, const Result<void>&)> done);
  void release(int owner, const TransferKey& key);

  std::atomic<std::uint32_t> epoch_{0};
  std::atomic<std::uint64_t> committed_{0};  ///< the newest commit of this epoch
  InRun in_run_;
  TokenParts parts_;
  std::unique_ptr<NetworkLoop> loop_;  ///< the thread of …
  std::optional<ActorSystem> system_;  ///< … these actors, of which there is one
  ActorRef<TokenActor> actor_;
};

}  // namespace troupe::rank_process
