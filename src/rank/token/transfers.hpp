#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "rank/device/memory/loans.hpp"
#include "rank/token/token_message.hpp"
#include "rank/token/token_streams.hpp"

namespace troupe::rank_process {

/// A transfer at its destination.
struct Pull {
  TransferKey key;
  int source = 0;
  Operand destination;
  std::function<void(const Result<void>&)> done;
  TimePoint progress{};
  std::uint32_t copying = 0;  ///< copies under way on the device
  bool touched = false;       ///< the destination may hold part of it
  bool remapped = false;      ///< a mapping that was lost has been made anew
  Offer offer;
  std::shared_ptr<InStream> stream;
  std::uint64_t channel = 0;    ///< this rank's number of it; 0: it goes another way
  std::uint64_t copied = 0;     ///< bytes that came over the network and are in place
  std::optional<Error> failed;  ///< ends it once no copy is under way
};
using PullPtr = std::shared_ptr<Pull>;

/// A transfer at its source.
struct Lending {
  TransferKey key;
  int destination = 0;
  std::shared_ptr<Loan> loan;
  std::uint64_t bytes = 0;
  TimePoint progress{};
  bool offered_copy = false;
  bool ended = false;
  std::unique_ptr<OutStream> stream;
  std::uint64_t channel = 0;  ///< this rank's number of it; 0: it goes another way
};
using LendingPtr = std::shared_ptr<Lending>;

/// Transfers by their keys. What is called for each of them may end any of them.
template <class Transfer>
class TransferTable {
 public:
  using Ptr = std::shared_ptr<Transfer>;

  void add(const Ptr& transfer) { by_key_.emplace(transfer->key, transfer); }
  /// False: it was not there.
  bool remove(const TransferKey& key) { return by_key_.erase(key) != 0; }
  /// nullptr: there is none.
  [[nodiscard]] Ptr find(const TransferKey& key) const {
    const auto it = by_key_.find(key);
    return it == by_key_.end() ? nullptr : it->second;
  }
  [[nodiscard]] bool contains(const TransferKey& key) const { return by_key_.contains(key); }
  [[nodiscard]] bool empty() const noexcept { return by_key_.empty(); }
  template <class F>
  void for_each(F f) const {
    const auto all = by_key_;
    for (const auto& [key, transfer] : all) f(transfer);
  }
  [[nodiscard]] std::size_t requested_by(int rank) const {
    std::size_t count = 0;
    for (const auto& [key, transfer] : by_key_) count += key.requester == rank ? 1 : 0;
    return count;
  }

 private:
  std::map<TransferKey, Ptr> by_key_;
};

}  // namespace troupe::rank_process
