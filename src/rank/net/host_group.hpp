#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <troupe/error.hpp>

#include "rank/net/exchange.hpp"

namespace troupe::rank_process {

/// Ranks of the job that exchange host data with one another; this rank may be outside.
///
/// For the program's main thread: all of them make the same calls in the same order. Outside, every
/// exchange throws Exception (peer_lost).
class HostGroup {
 public:
  /// Without members.
  HostGroup() = default;
  /// `ranks`: of the job's, in order; this one is `rank` of them. `background`: for
  /// BackgroundExchange; nullptr: there is none.
  HostGroup(std::vector<int> ranks, int rank, std::unique_ptr<Exchange> host,
            std::unique_ptr<Exchange> background = nullptr)
      : ranks_(std::move(ranks)),
        rank_(rank),
        host_(std::move(host)),
        background_(std::move(background)) {}
  HostGroup(const HostGroup&) = delete;
  HostGroup& operator=(const HostGroup&) = delete;

  [[nodiscard]] int rank() const noexcept { return rank_; }  ///< -1: outside
  [[nodiscard]] int size() const noexcept { return static_cast<int>(ranks_.size()); }
  /// Rank in the job of each member.
  [[nodiscard]] const std::vector<int>& ranks() const noexcept { return ranks_; }

  /// The program's exchanges so far, which all members count alike.
  [[nodiscard]] std::uint64_t calls() const noexcept { return calls_; }
  void count_call() const noexcept { ++calls_; }
  void count_anew() const noexcept { calls_ = 0; }

  void barrier() const { host().barrier(); }
  /// `all` has room for size() values.
  void all_gather(std::span<const std::byte> value, std::span<std::byte> all) const;
  /// The value of every member.
  template <class T>
  [[nodiscard]] std::vector<T> gather(const T& value) const {
    std::vector<T> all(ranks_.size());
    all_gather(std::as_bytes(std::span(&value, 1)), std::as_writable_bytes(std::span(all)));
    return all;
  }
  [[nodiscard]] std::vector<std::string> gather_text(const std::string& text) const {
    return host().gather_text(text);
  }
  /// result[r] = what member r had in outgoing[rank()]
  [[nodiscard]] std::vector<std::vector<std::byte>> all_to_all(
      const std::vector<std::vector<std::byte>>& outgoing) const;
  /// The same on every member: success, or the error of the lowest one that has any.
  [[nodiscard]] Result<void> agree(const Result<void>& outcome) const;

  /// Exchanges beside the program, for one thread of each member. Only groups of the world have
  /// them.
  [[nodiscard]] Exchange& background() const;

 private:
  [[nodiscard]] Exchange& host() const;

  std::vector<int> ranks_;
  int rank_ = -1;
  mutable std::uint64_t calls_ = 0;  ///< the program's thread counts, and alone looks
  std::unique_ptr<Exchange> host_;
  std::unique_ptr<Exchange> background_;  ///< goes first
};

}  // namespace troupe::rank_process
