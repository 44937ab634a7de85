#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <troupe/error.hpp>

#include "common/ipc/unique_fd.hpp"
#include "lib/collective/gloo/network_cpu.hpp"

namespace troupe::host::cpu {

/// How a Mesh comes to be: every rank calls the ranks below it and introduces itself with their
/// token; so each pair of ranks has one connection. One thread.
class MeshFormation {
 public:
  struct Parts {
    int rank = 0;
    int size = 1;
    int wake = -1;                  ///< readable once the mesh is aborted …
    std::function<bool()> aborted;  ///< … and true then
    std::function<void(int peer, UniqueFd socket)> adopt;  ///< the connection of a pair is there
  };
  explicit MeshFormation(Parts parts) : parts_(std::move(parts)) {}

  // See Mesh.
  Result<void> listen(const std::string& interface);
  [[nodiscard]] std::vector<std::byte> contribution() const;
  Result<void> connect(const std::vector<std::vector<std::byte>>& contributions);

 private:
  class Connecting;

  Parts parts_;
  UniqueFd listener_;
  std::vector<Address> offers_;
  std::uint64_t token_ = 0;
};

}  // namespace troupe::host::cpu
