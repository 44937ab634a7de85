#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <troupe/error.hpp>

#include "rank/net/host_group.hpp"

namespace troupe::rank_process {

/// MPI for the life of a rank: initialised if the program has not done so, finalised by whoever
/// initialised it. Its communicators are duplicates of MPI_COMM_WORLD, so nothing here can be mixed
/// up with the program's own messages.
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

  // Host data, for the program's main thread.

  /// All ranks.
  [[nodiscard]] const HostGroup& everyone() const noexcept { return *everyone_; }
  /// What a group is made for: those that are made at the same time must differ in that, or in
  /// number.
  enum class GroupTag { world, split };
  /// A group of `ranks` (of MPI_COMM_WORLD's, in that order, this one among them). Blocks until all
  /// of them have called it with the same tag and number; any thread. It lives no longer than the
  /// session. Only what is made for the world has exchanges in the background.
  [[nodiscard]] std::shared_ptr<const HostGroup> make_group(std::vector<int> ranks, GroupTag tag,
                                                            int number);
  /// The strings of the ranks of this node, by local rank.
  [[nodiscard]] std::vector<std::string> gather_local_text(const std::string& text);

  /// What this node's clock (SteadyClock) lacks to rank 0's: added to a time of here it gives the
  /// time there. Good to half the fastest round trip between the nodes; 0 on rank 0's node, for
  /// ranks of a node share a clock.
  [[nodiscard]] std::chrono::nanoseconds clock_offset();

  /// Some rank will never come again: nobody waits for the others any more, and MPI is left as it
  /// is, not finalised. Of this process, for good; any thread.
  static void forsake() noexcept;
  [[nodiscard]] static bool forsaken() noexcept;

  /// This rank's program has ended. Waits for that of all others, so long at most: false if some
  /// have not, or some are forsaken. The main thread, once.
  [[nodiscard]] bool all_have_ended(std::chrono::nanoseconds limit);
  /// This rank's process ends with this status once MPI is finalised. If MPI_Finalize does not
  /// return within `patience`, the process ends without it, and says so in one line: some versions
  /// of MPI wait there for ever, rarely (Open MPI's issue 10117). 0: it is waited for.
  void end_with(int status, std::chrono::nanoseconds patience) {
    status_ = status;
    patience_ = patience;
  }
  /// Ends all ranks, at once, with this exit status.
  [[noreturn]] static void abort(int status);
  [[nodiscard]] static std::string library_version();

  /// For what speaks MPI itself, in this folder alone.
  struct Communicators;
  [[nodiscard]] Communicators& communicators() const noexcept { return *communicators_; }

 private:
  MpiSession() = default;
  void finalise() const;

  int rank_ = 0, size_ = 1, local_rank_ = 0, local_size_ = 1, node_ = 0;
  int provided_threads_ = 0;
  bool finalise_ = false;
  int status_ = 0;
  std::chrono::nanoseconds patience_{};  ///< with MPI_Finalize
  std::unique_ptr<Communicators> communicators_;
  std::unique_ptr<const HostGroup> everyone_;
};

}  // namespace troupe::rank_process
