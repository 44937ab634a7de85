#pragma once

#include <nccl.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "lib/collective/peer_memory/direct_cuda.hpp"

namespace troupe::host::cuda {

/// A rank's part in the forming of a communicator. Plain bytes.
struct Contributed {
  ncclUniqueId id{};
  PeerMemory::Card card;
  std::uint64_t has_id = 0;
};

/// The contributions of all ranks, in rank order; one that is empty stays as it is made. Errors:
/// invalid.
inline Result<std::vector<Contributed>> contributed(
    const std::vector<std::vector<std::byte>>& contributions) {
  std::vector<Contributed> all(contributions.size());
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const auto& bytes = contributions[rank];
    if (bytes.empty()) continue;
    if (bytes.size() != sizeof(Contributed))
      return Error{Errc::invalid, 0, "a contribution is not that of an NCCL communicator"};
    std::memcpy(&all[rank], bytes.data(), sizeof(Contributed));
  }
  return all;
}

}  // namespace troupe::host::cuda
