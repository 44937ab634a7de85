#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include <troupe/error.hpp>

#include "common/ipc/doorbell.hpp"
#include "common/ipc/socket.hpp"
#include "common/ipc/unique_fd.hpp"

namespace troupe::rank_process {

/// What a rank tells the others, over MPI, so that they know it again on a socket.
struct FdIdentity {
  std::int32_t pid = 0;  ///< 0: it may change
  std::uint32_t uid = 0;
  std::int32_t node = 0;  ///< see Session::node()
  std::uint32_t listening = 0;
  std::array<std::uint64_t, 2> name{};    ///< of its socket
  std::array<std::uint64_t, 2> cookie{};  ///< secret: proves that one has been told
};

/// Hands file descriptors from one rank process to another of the same node.
///
/// Each rank listens on a Unix socket with an abstract name, which leaves nothing in a file system.
/// Whoever may connect is checked twice: the kernel's word on the process at the other end
/// (SO_PEERCRED) must be what that rank said of itself over MPI, and both ends must know the
/// other's cookie. A thread of its own answers, so that two ranks can ask each other.
class FdExchange {
 public:
  /// `secret`: its name and its cookie, where these outlive the process of a rank; then the process
  /// is not asked for. nullopt: they are drawn.
  static Result<std::unique_ptr<FdExchange>> open(
      int node, const std::optional<std::array<std::uint64_t, 4>>& secret = std::nullopt);
  ~FdExchange();

  [[nodiscard]] const FdIdentity& identity() const noexcept { return identity_; }
  /// The identities of all ranks, in rank order. Before anybody asks for anything. `node_of`: the
  /// node where a rank is by now; empty, or nullopt: where it was at the start.
  void set_peers(std::vector<FdIdentity> peers, int own_rank,
                 std::function<std::optional<int>(int rank)> node_of = {});
  [[nodiscard]] bool reaches(int rank) const;

  /// From now on the descriptor may be taken under this number. Any thread.
  void offer(std::uint64_t number, std::shared_ptr<UniqueFd> fd);
  void withdraw(std::uint64_t number);
  /// Another rank's descriptor. Waits for kPatience at most. Any thread. Errors: stale (it is not
  /// offered any more), io, timeout, invalid (the process at the other end is not that rank).
  [[nodiscard]] Result<UniqueFd> take(int rank, std::uint64_t number) const;

  static constexpr auto kPatience = std::chrono::seconds(2);

 private:
  struct Request;
  struct Answer;

  FdExchange() = default;
  void serve();
  void answer(UniqueFd connection);
  [[nodiscard]] Result<void> known(const ipc::Socket& socket, int rank) const;

  FdIdentity identity_;
  int own_rank_ = 0;
  std::vector<FdIdentity> peers_;
  std::function<std::optional<int>(int)> node_of_;
  UniqueFd listener_;
  ipc::Doorbell stop_;
  std::mutex mutex_;
  std::map<std::uint64_t, std::shared_ptr<UniqueFd>> offered_;
  std::thread thread_;
};

}  // namespace troupe::rank_process
