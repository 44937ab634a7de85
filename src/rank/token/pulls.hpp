#pragma once

#include <cstdint>
#include <functional>

#include "rank/token/foreign_slabs.hpp"
#include "rank/token/transfers.hpp"

namespace troupe::rank_process {

struct Routes;

/// The destination's side of transfers: maps the source's slab, or asks for a stream, or receives
/// from a channel; copies; tells the source. The TokenActor's turns.
class Pulls {
 public:
  using Done = std::function<void(const Result<void>&)>;

  explicit Pulls(Routes& routes) : routes_(routes) {}

  /// The destination is expected by the port already. `done` is called once.
  PullPtr expect(const TransferKey& key, int source, const Operand& destination, Done done);
  void offered(const PullPtr& pull, const Offer& offer);
  void fail(const PullPtr& pull, const Error& error);

  void on(int from, const routed::Offered& offered);
  void on(int from, const routed::Over& over);

  [[nodiscard]] PullPtr find(const TransferKey& key) const { return pulls_.find(key); }
  [[nodiscard]] bool empty() const noexcept { return pulls_.empty(); }
  [[nodiscard]] std::size_t requested_by(int rank) const { return pulls_.requested_by(rank); }

  void fail_on_channel(std::uint64_t channel, const Error& error);
  void fail_of_ended_epochs();
  /// The rank is out of the world.
  void exclude(int rank);
  /// Fails those that make no progress.
  void look();
  void end_all(const Error& error);

 private:
  void copy(const PullPtr& pull, const ForeignSlabs::Id& id, std::uint32_t region);
  void copied(const PullPtr& pull, const ForeignSlabs::Id& id, const Result<void>& outcome);
  void all_copied(const PullPtr& pull);
  void ask_for_stream(const PullPtr& pull);
  void arrived(const PullPtr& pull, std::uint32_t slot, std::uint64_t bytes);
  void finish(const PullPtr& pull, const Result<void>& outcome);
  void tell_taken(const PullPtr& pull, const Result<void>& outcome, bool settled = false);

  Routes& routes_;
  TransferTable<Pull> pulls_;
};

}  // namespace troupe::rank_process
