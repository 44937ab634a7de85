#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::rank_process {

/// The contribution of one rank to a communicator that is being formed.
struct RankContribution {
  std::int32_t rank = 0;
  std::vector<std::byte> bytes{};

  friend bool operator==(const RankContribution&, const RankContribution&) = default;
};

/// The contributions of all ranks of the job to a communicator. An empty one costs nothing: with
/// NCCL one rank gives the unique id, and the others nothing.
struct Contributions {
  static constexpr std::uint32_t kMaxRanks = 1u << 20;

  std::uint32_t ranks = 0;                ///< of the job
  std::vector<RankContribution> given{};  ///< by rank, none of them empty

  /// `by_rank`: one entry for each rank of the job.
  static Contributions of(const std::vector<std::vector<std::byte>>& by_rank);
  [[nodiscard]] std::vector<std::vector<std::byte>> by_rank() const;
  [[nodiscard]] bool sound() const;
  friend bool operator==(const Contributions&, const Contributions&) = default;
};

}  // namespace troupe::rank_process
