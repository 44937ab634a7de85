#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <troupe/error.hpp>

namespace troupe::rank {

/// MPI for the life of a rank: initialised if the program has not done so, finalised by whoever
/// initialised it. Its communicators are duplicates of MPI_COMM_WORLD, so nothing here can be mixed
/// up with the program's own messages.
///
/// The host collectives are for the program's main thread: all ranks call the same ones in the same
/// order.
class MpiSession {
 public:
  /// Initialises MPI unless somebody has; then this session finalises it, which waits for all
  /// ranks.
  static std::unique_ptr<MpiSession> open(int* argc, char*** argv);
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  /// Errc::unsupported if MPI has no MPI_THREAD_MULTIPLE.
  [[nodiscard]] Result<void> check_threads() const;
  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }
  [[nodiscard]] int local_rank() const noexcept {
    return local_rank_;
  }  ///< among the ranks of this node
  [[nodiscard]] int local_size() const noexcept { return local_size_; }
  /// The same on all ranks of this node, and on no other.
  [[nodiscard]] int node() const noexcept { return node_; }

  // Groups: the ranks that take part in the host collectives; all of them at first.

  /// Makes the group that adopt_group() turns to. Blocks until all of `ranks` (of MPI_COMM_WORLD's,
  /// in order, this one among them) have called it with the same tag; any thread.
  void prepare_group(std::vector<int> ranks, int tag);
  /// The host collectives are from now on among the prepared group; `outside`: this rank has no
  /// part in them, they throw peer_lost. The main thread.
  void adopt_group(bool outside);
  [[nodiscard]] int group_rank() const noexcept { return group_rank_; }  ///< -1: outside
  [[nodiscard]] int group_size() const noexcept { return group_size_; }
  /// Rank in MPI_COMM_WORLD of each member.
  [[nodiscard]] const std::vector<int>& group() const noexcept { return group_; }

  void barrier();
  /// `all` has room for group_size() values.
  void all_gather(std::span<const std::byte> value, std::span<std::byte> all);
  [[nodiscard]] std::vector<std::string> gather_text(const std::string& text);
  /// The strings of the ranks of this node, by local rank.
  [[nodiscard]] std::vector<std::string> gather_local_text(const std::string& text);
  /// result[r] = what rank r had in outgoing[rank()]
  [[nodiscard]] std::vector<std::vector<std::byte>> all_to_all(
      const std::vector<std::vector<std::byte>>& outgoing);

  /// The same on every rank: success, or the error of the lowest rank that has one.
  [[nodiscard]] Result<void> agree(const Result<void>& outcome);

  /// What this node's clock (SteadyClock) lacks to rank 0's: added to a time of here it gives the
  /// time there. Good to half the fastest round trip between the nodes; 0 on rank 0's node, for
  /// ranks of a node share a clock.
  [[nodiscard]] std::chrono::nanoseconds clock_offset();

  /// Ends all ranks, at once, with this exit status.
  [[noreturn]] static void abort(int status);
  [[nodiscard]] static std::string library_version();

 private:
  friend class MpiBulk;
  friend class MpiTransport;
  friend class BackgroundExchange;
  struct Communicators;

  MpiSession() = default;

  int rank_ = 0, size_ = 1, local_rank_ = 0, local_size_ = 1, node_ = 0;
  int group_rank_ = 0, group_size_ = 1;
  std::vector<int> group_;
  int provided_threads_ = 0;
  bool finalise_ = false;
  std::unique_ptr<Communicators> communicators_;
};

}  // namespace troupe::rank
