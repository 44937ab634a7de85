#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <troupe/error.hpp>

#include "rank/net/bulk.hpp"
#include "rank/net/host_group.hpp"
#include "rank/net/messages.hpp"
#include "rank/net/respawns.hpp"

namespace troupe::rank_process {

/// The ranks of a job, and how they speak to one another, for the life of a rank: by MPI, or where
/// a keeper has started the rank (--on-rank-loss respawn) by TCP. Nothing here can be mixed up with
/// the program's own messages of MPI.
class Session {
 public:
  /// The session of this process, which all share that ask for it. By MPI: initialises it unless
  /// somebody has; then the session finalises it at its end, which waits for all ranks.
  static std::shared_ptr<Session> open(int* argc, char*** argv);
  /// A keeper has started this process.
  [[nodiscard]] static bool has_keeper();
  [[nodiscard]] static bool mpi_is_initialised();
  /// The knowledge of a process that waits to become a rank: open() returns when it is one.
  struct Waiting {
    int local_rank = 0;  ///< its number on its node; see local_rank()
    int ranks = 1;       ///< of the job
    int cores = 1;       ///< that it will have to itself, as far as it can be known
    bool one_node = true;
  };
  /// nullopt: this process does not wait.
  [[nodiscard]] static std::optional<Waiting> waiting();
  virtual ~Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Errc::unsupported if MPI has no MPI_THREAD_MULTIPLE.
  [[nodiscard]] virtual Result<void> check_threads() const = 0;
  [[nodiscard]] int rank() const noexcept { return place_.rank; }
  [[nodiscard]] int size() const noexcept { return place_.size; }
  [[nodiscard]] int local_rank() const noexcept {
    return place_.local_rank;
  }  ///< among the ranks of this node
  [[nodiscard]] int local_size() const noexcept { return place_.local_size; }
  /// The same on all ranks of this node, and on no other.
  [[nodiscard]] int node() const noexcept { return place_.node; }
  /// All ranks are on one node, and the places that they may go to, too.
  [[nodiscard]] bool has_one_node() const noexcept { return one_node_; }
  /// True if each rank of this node has so many cores, as far as the calling thread may use them.
  [[nodiscard]] bool has_cores_to_spare(int each) const;

  // Host data, for the program's main thread.

  /// All ranks.
  [[nodiscard]] const HostGroup& everyone() const noexcept { return *everyone_; }
  /// The purpose of a group: those that are made at the same time must differ in that, or in
  /// number.
  enum class GroupTag { world, split };
  /// A group of `ranks` (of the job's, in that order, this one among them). Blocks until all of
  /// them have called it with the same tag and number; any thread. It lives no longer than the
  /// session. Only what is made for the world has exchanges in the background.
  [[nodiscard]] virtual std::shared_ptr<const HostGroup> make_group(std::vector<int> ranks,
                                                                    GroupTag tag, int number) = 0;
  /// The strings of the ranks of this node, by local rank.
  [[nodiscard]] std::vector<std::string> gather_local_text(const std::string& text) const {
    return neighbours_->gather_text(text);
  }
  /// The offset of rank 0's clock (SteadyClock) from this node's: added to a time of here it gives
  /// the time there. Good to half the fastest round trip between the nodes; 0 on rank 0's node, for
  /// ranks of a node share a clock.
  [[nodiscard]] virtual std::chrono::nanoseconds clock_offset() = 0;

  // Messages between the parts of ranks. All ranks make the same ones.

  enum class Channel {
    world,   ///< of the world's protocol
    actors,  ///< of the program's actors
    checks,  ///< of the collective check
    tokens   ///< of tokens
  };
  /// At most one of each kind.
  [[nodiscard]] virtual std::unique_ptr<Messages> messages(Channel channel) = 0;
  [[nodiscard]] virtual std::unique_ptr<Bulk> bulk(Bulk::Receiver receiver) = 0;

  /// Ranks that die, and come back.
  [[nodiscard]] Respawns& respawns() const noexcept { return *respawns_; }

  // The end.

  /// Some rank will never come again: nobody waits for the others any more, and MPI is left as it
  /// is, not finalised. Of this process, for good; any thread.
  static void forsake() noexcept;
  [[nodiscard]] static bool forsaken() noexcept;

  /// This rank's program has ended. Waits for that of all others, so long at most: false if some
  /// have not, or some are forsaken. The main thread, once.
  [[nodiscard]] virtual bool all_have_ended(std::chrono::nanoseconds limit) = 0;
  /// This rank's process ends with this status once the session has ended. If MPI_Finalize does not
  /// return within `patience`, the process ends without it, and says so in one line: some versions
  /// of MPI wait there for ever, rarely (Open MPI's issue 10117). 0: it is waited for.
  void end_with(int status, std::chrono::nanoseconds patience) {
    status_ = status;
    patience_ = patience;
  }
  /// Ends all ranks, at once, with this exit status.
  [[noreturn]] static void abort(int status);
  [[nodiscard]] static std::string library_version();

 protected:
  struct Place {
    int rank = 0, size = 1;
    int local_rank = 0, local_size = 1;
    int node = 0;
  };
  Session() = default;

  Place place_;
  bool one_node_ = true;
  int status_ = 0;
  std::chrono::nanoseconds patience_{};  ///< with MPI_Finalize
  std::unique_ptr<const HostGroup> everyone_;
  std::unique_ptr<const HostGroup> neighbours_;  ///< of this node
  std::unique_ptr<Respawns> respawns_ = std::make_unique<Respawns>();
};

}  // namespace troupe::rank_process
