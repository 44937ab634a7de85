#pragma once

#include <cstdint>
#include <functional>

#include "rank/token/transfers.hpp"

namespace troupe::rank_process {

struct Routes;

/// The source's side of transfers: lends the range, offers it, streams it if need be. The
/// TokenActor's turns.
class Lendings {
 public:
  explicit Lendings(Routes& routes) : routes_(routes) {}

  LendingPtr lend(const TransferKey& key, int destination, std::shared_ptr<Loan> loan,
                  std::uint64_t bytes);
  /// Calls `made` with what the destination is to be told of where the bytes are.
  void make_offer(const LendingPtr& lending, const std::function<void(const Offer&)>& made);
  /// Tells the destination where the bytes are.
  void offer(const LendingPtr& lending);
  /// Tells the destination what has become of the transfer, which has ended.
  void over(const LendingPtr& lending, const Result<void>& outcome);
  void end(const LendingPtr& lending);

  void on(int from, const routed::Stream& stream);
  void on(int from, const routed::Credit& credit);
  void on(int from, const routed::Taken& taken);

  [[nodiscard]] LendingPtr find(const TransferKey& key) const { return lendings_.find(key); }
  [[nodiscard]] bool empty() const noexcept { return lendings_.empty(); }

  void fail_on_channel(std::uint64_t channel, const Error& error);
  void fail_of_ended_epochs();
  /// The rank is out of the world.
  void exclude(int rank);
  /// Fails those that make no progress.
  void look();
  void end_all();

 private:
  /// Sends what there is room for, by the lending's stream.
  void pump(const LendingPtr& lending);
  void piece_read(const LendingPtr& lending, std::uint32_t slot, const PieceLabel& piece,
                  const Result<void>& outcome);

  Routes& routes_;
  TransferTable<Lending> lendings_;
};

}  // namespace troupe::rank_process
