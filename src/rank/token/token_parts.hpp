#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "rank/device/device_core.hpp"
#include "rank/device/memory/loan_board.hpp"
#include "rank/net/bulk.hpp"
#include "rank/net/fd_exchange.hpp"
#include "rank/token/token_streams.hpp"

namespace troupe::rank_process {

/// How the bytes of a transfer go.
enum class TokenPath {
  peer_or_network,  ///< as `peer` within a node where the GPUs reach each other, else `network`
  peer,             ///< the reader maps the other rank's slab; only within a node
  network,          ///< through pinned memory and MPI
  channel           ///< from device host to device host: NCCL, or on the cpu engine Gloo's mesh
};

/// What a TokenActor works with; outlives it.
struct TokenParts {
  int rank = 0;
  int size = 1;
  TokenPath path = TokenPath::peer_or_network;
  std::chrono::nanoseconds timeout{};  ///< of a transfer that makes no progress
  std::shared_ptr<DeviceCore> device;
  std::unique_ptr<FdExchange> fds;                   ///< empty: no descriptors can be passed
  std::map<int, std::unique_ptr<LoanBoard>> boards;  ///< of other ranks of this node
  std::function<void(int rank, std::vector<std::byte> message)> send;  ///< to its TokenActor
  /// Another process is that rank now: messages go another way. In a turn of the actor.
  std::function<void(int rank)> forget = [](int) {};
  /// Whether the actor waits for anybody; between its turns, on its thread. Set by the actor.
  std::function<bool()> under_way = [] { return false; };
  std::unique_ptr<Bulk> bulk;
  InStreams streams;
  /// Regions whose slabs are no more, and may be another's soon: to be forgotten before the next
  /// offer.
  std::mutex dropped_mutex;
  std::vector<std::uint32_t> dropped_regions;
};

}  // namespace troupe::rank_process
