#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <troupe/error.hpp>

namespace troupe::rank_process {

/// Ranks of the job that exchange host data with one another, over MPI; this rank may be outside.
///
/// For the program's main thread: all of them make the same calls in the same order. Outside, every
/// exchange throws Exception (peer_lost).
class HostGroup {
 public:
  struct Communicators;

  /// Without members.
  HostGroup();
  /// `ranks`: of MPI_COMM_WORLD's, in order, as the communicators have them.
  HostGroup(std::vector<int> ranks, std::unique_ptr<Communicators> communicators);
  /// Frees the communicators: MPI is still there.
  ~HostGroup();
  HostGroup(const HostGroup&) = delete;
  HostGroup& operator=(const HostGroup&) = delete;

  [[nodiscard]] int rank() const noexcept { return rank_; }  ///< -1: outside
  [[nodiscard]] int size() const noexcept { return static_cast<int>(ranks_.size()); }
  /// Rank in MPI_COMM_WORLD of each member.
  [[nodiscard]] const std::vector<int>& ranks() const noexcept { return ranks_; }

  /// The program's exchanges so far, which all members count alike.
  [[nodiscard]] std::uint64_t calls() const noexcept { return calls_; }
  void count_call() const noexcept { ++calls_; }

  void barrier() const;
  /// `all` has room for size() values.
  void all_gather(std::span<const std::byte> value, std::span<std::byte> all) const;
  /// The value of every member.
  template <class T>
  [[nodiscard]] std::vector<T> gather(const T& value) const {
    std::vector<T> all(ranks_.size());
    all_gather(std::as_bytes(std::span(&value, 1)), std::as_writable_bytes(std::span(all)));
    return all;
  }
  [[nodiscard]] std::vector<std::string> gather_text(const std::string& text) const;
  /// result[r] = what member r had in outgoing[rank()]
  [[nodiscard]] std::vector<std::vector<std::byte>> all_to_all(
      const std::vector<std::vector<std::byte>>& outgoing) const;
  /// The same on every member: success, or the error of the lowest one that has any.
  [[nodiscard]] Result<void> agree(const Result<void>& outcome) const;

  /// For what speaks MPI itself, in this folder alone.
  [[nodiscard]] const Communicators& communicators() const noexcept { return *communicators_; }

 private:
  std::vector<int> ranks_;
  int rank_ = -1;
  mutable std::uint64_t calls_ = 0;  ///< the program's thread counts, and alone looks
  std::unique_ptr<Communicators> communicators_;
};

}  // namespace troupe::rank_process
