#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <troupe/error.hpp>

#include "common/ipc/socket.hpp"
#include "common/ipc/unique_fd.hpp"
#include "device_host/engine/cuda/driver.hpp"

namespace troupe::host::cuda {

/// Memory of each rank of a communicator, on its own device, that all of the ranks map: their
/// kernels write to one another's. All ranks are on one host.
///
/// The descriptors go from device host to device host over Unix sockets whose names the ranks have
/// exchanged. Memory that is mapped here stays when its owner's process ends.
class PeerMemory {
 public:
  /// What the other ranks need to reach this one. Plain bytes; all zeros: it has no such memory.
  struct Card {
    std::array<char, 128> host{};
    std::array<std::uint64_t, 2> cookie{};
    std::uint64_t bytes = 0;  ///< of the memory
    /// The socket's abstract name, made of the process and this number.
    std::int32_t pid = 0, number = 0;
  };

  /// Makes this rank's part: so many zeros, then `own`, which no other rank uses. The device must
  /// be current. Helper thread. Errors: the driver's, io.
  static Result<std::unique_ptr<PeerMemory>> make(int device, std::uint64_t bytes,
                                                  std::span<const std::byte> own);
  ~PeerMemory();
  PeerMemory(const PeerMemory&) = delete;
  PeerMemory& operator=(const PeerMemory&) = delete;

  [[nodiscard]] const Card& card() const noexcept { return card_; }
  /// True if the cards are of ranks that can meet: all have such memory, as much, on one host.
  static bool can_meet(std::span<const Card> cards) noexcept;
  /// Maps the memory of the others, who do the same. `cards`: of all, in rank order. Helper thread;
  /// blocks until all have come, `given_up` answers true, or kPatience. Errors: timeout, peer_lost
  /// (given up), the driver's (the devices cannot reach one another), io.
  Result<void> meet(int rank, std::span<const Card> cards, const std::function<bool()>& given_up);

  /// In place of meet(): closes what the others would reach it by. Does not block.
  void close() noexcept {
    listener_.reset();
    memory_.reset();
  }

  /// This rank's part.
  [[nodiscard]] std::byte* own() const noexcept { return own_; }
  /// That rank's part, as it is mapped here. After meet().
  [[nodiscard]] std::byte* of(int rank) const { return parts_[static_cast<std::size_t>(rank)]; }

 private:
  static constexpr std::chrono::seconds kPatience{5};
  /// A descriptor's companion.
  struct Greeting {
    std::array<std::uint64_t, 2> cookie{};  ///< of whom it is for
    std::int32_t rank = 0;                  ///< whose memory it is
    std::int32_t reserved = 0;
  };

  PeerMemory(const Driver& api, int device) : api_(api), device_(device) {}
  Result<void> allocate(std::uint64_t bytes);
  [[nodiscard]] Result<void> write(std::uint64_t zeros, std::span<const std::byte> own) const;
  Result<void> listen();
  [[nodiscard]] Result<void> send_to(const Card& card, int rank) const;
  /// Maps what one of the others has sent.
  Result<void> take(const ipc::Packet& packet, int rank);

  const Driver& api_;
  const int device_;
  Card card_;
  UniqueFd memory_, listener_;
  std::vector<ipc::Socket> guests_;  ///< of whom nothing has come yet
  std::byte* own_ = nullptr;
  std::vector<std::byte*> parts_;  ///< by rank, this one's among them; nullptr: not mapped
};

}  // namespace troupe::host::cuda
