#pragma once

#include <gloo/transport/context.h>
#include <gloo/transport/unbound_buffer.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include <troupe/error.hpp>

#include "common/ipc/unique_fd.hpp"
#include "lib/collective/gloo/mesh_formation_cpu.hpp"

/// The TCP connections among the ranks, as a transport for Gloo's algorithms.
///
/// Why not Gloo's own TCP transport: its waits cannot be ended from another thread, a peer's death
/// in the middle of a message is never reported to who waits for the rest of it, exceptions on its
/// I/O thread end the process, and its writes raise SIGPIPE. Here the thread that waits does the
/// I/O: nothing runs when nobody waits.
///
/// Between two ranks messages match in the order in which they are posted on either side; slots are
/// compared only to find collectives that the ranks call in different orders. A message is read
/// once its receive is posted; until then it stays in the socket, which holds back the sender.
///
/// A rank learns of a loss at once when it waits for the rank that is lost, or for one that has
/// learnt of it: whoever fails hangs up on everybody. A rank that leaves when it has done its part
/// fails nobody.
namespace troupe::host::cpu {

class MeshBuffer;

/// Formed once: listen, contribution, connect. One thread at a time uses it, but for abort().
class Mesh final : public gloo::transport::Context, public std::enable_shared_from_this<Mesh> {
 public:
  Mesh(int rank, int size);
  ~Mesh() override;

  /// Opens the port on which higher ranks will call, on the named network interface or, with no
  /// name, on those that peers may reach. May block on name resolution. Errors: invalid, io.
  Result<void> listen(const std::string& interface) { return formation_.listen(interface); }
  /// This rank's addresses and a token that callers must present.
  [[nodiscard]] std::vector<std::byte> contribution() const { return formation_.contribution(); }
  /// Connects to all peers; blocks until all are there. Errors: invalid, peer_lost, io.
  Result<void> connect(const std::vector<std::vector<std::byte>>& contributions);
  /// Any thread: ends connect() and every wait, now and later, and hangs up on all peers.
  void abort() noexcept;

  std::unique_ptr<gloo::transport::Pair>& createPair(int peer) override {
    return pairs_.at(static_cast<std::size_t>(peer));
  }
  std::unique_ptr<gloo::transport::UnboundBuffer> createUnboundBuffer(void* data,
                                                                      std::size_t bytes) override;

  // For MeshBuffer.

  struct Header {
    std::uint64_t slot = 0;
    std::uint64_t bytes = 0;
  };
  /// One message, posted; `done` counts header and payload.
  struct Transfer {
    MeshBuffer* buffer = nullptr;
    std::byte* data = nullptr;
    Header header;   // what is sent, or what is expected
    Header arrived;  // receive: what came
    std::uint64_t done = 0;
  };

  void post_send(int peer, const Transfer& transfer);
  void post_receive(int peer, const Transfer& transfer);
  /// Drops what is posted for a buffer that goes.
  void forget(const MeshBuffer* buffer) noexcept;
  /// Moves bytes until some transfer has been completed; throws once the mesh has failed.
  void progress();

 private:
  struct Peer {
    UniqueFd socket;
    std::deque<Transfer> sends, receives;
  };

  /// Each true if a transfer was completed.
  bool send_some(int peer);
  bool receive_some(int peer);
  /// Hangs up on everybody, so that the others learn of it, and throws.
  [[noreturn]] void fail(const std::string& reason, bool peer_lost = true);
  void throw_if_failed();
  void hang_up() noexcept;

  std::vector<Peer> peers_;
  UniqueFd wake_;
  std::atomic<bool> aborted_ = false;
  std::mutex sockets_;  // while sockets are being connected: hang_up against connect
  std::string failure_;
  MeshFormation formation_;
};

/// A range of memory that messages are sent from or received into.
class MeshBuffer final : public gloo::transport::UnboundBuffer {
 public:
  MeshBuffer(std::shared_ptr<Mesh> mesh, void* data, std::size_t bytes)
      : UnboundBuffer(data, bytes), mesh_(std::move(mesh)) {}
  ~MeshBuffer() override { mesh_->forget(this); }

  /// Both block without a timeout: it is the world that supervises, through Mesh::abort.
  bool waitRecv(int* rank, std::chrono::milliseconds timeout) override;
  bool waitSend(int* rank, std::chrono::milliseconds timeout) override;
  void send(int peer, std::uint64_t slot, std::size_t offset, std::size_t bytes) override;
  void recv(int peer, std::uint64_t slot, std::size_t offset, std::size_t bytes) override;

  // Gloo's algorithms for collectives use none of these.
  void recv(std::vector<int> peers, std::uint64_t slot, std::size_t offset,
            std::size_t bytes) override;
  void abortWaitRecv() override;
  void abortWaitSend() override;

  /// The mesh has completed a message from or to that peer.
  void received_from(int peer) { received_from_.push_back(peer); }
  void sent_to(int peer) { sent_to_.push_back(peer); }

 private:
  [[nodiscard]] Mesh::Transfer transfer(std::uint64_t slot, std::size_t offset, std::size_t bytes);

  std::shared_ptr<Mesh> mesh_;
  std::deque<int> received_from_, sent_to_;  // completed and not yet waited for
};

}  // namespace troupe::host::cpu
