#pragma once

#include <cstdint>
#include <vector>

#include "common/ipc/unique_fd.hpp"

namespace troupe::rank_process {

/// A slab of a device's memory that an earlier process of this rank has left.
struct KeptSlab {
  std::uint32_t incarnation = 0, region = 0;
  std::uint64_t bytes = 0;
  UniqueFd memory;
};

/// The legacy of this process, should it die, to the one that is started in its place: its keeper
/// has it. Where there is no keeper nothing is left.
class Estate {
 public:
  Estate() = default;
  virtual ~Estate() = default;
  Estate(const Estate&) = delete;
  Estate& operator=(const Estate&) = delete;

  /// The file of CommitLedger; -1: there is none. It outlives this.
  [[nodiscard]] virtual int file() const { return -1; }
  /// A slab has been made, or given up. Any thread.
  virtual void keep(std::uint32_t /*region*/, std::uint64_t /*bytes*/, int /*memory*/) {}
  virtual void drop(std::uint32_t /*region*/) {}
  /// The slabs that processes before this one have left; once.
  [[nodiscard]] virtual std::vector<KeptSlab> take() { return {}; }
  /// Nothing more is wanted of that.
  virtual void have_taken() {}
};

}  // namespace troupe::rank_process
