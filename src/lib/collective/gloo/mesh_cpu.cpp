#include "lib/collective/gloo/mesh_cpu.hpp"

#include <gloo/common/error.h>
#include <gloo/transport/pair.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace troupe::host::cpu {
namespace {

/// Gloo asks a context only whether it has a pair; messages go through the buffers.
class PairMarker final : public gloo::transport::Pair {
 public:
  const gloo::transport::Address& address() const override { unused(); }
  void connect(const std::vector<char>&) override { unused(); }
  void close() override { unused(); }
  void setSync(bool, bool) override { unused(); }
  std::unique_ptr<gloo::transport::Buffer> createSendBuffer(int, void*, std::size_t) override {
    unused();
  }
  std::unique_ptr<gloo::transport::Buffer> createRecvBuffer(int, void*, std::size_t) override {
    unused();
  }
  void send(gloo::transport::UnboundBuffer*, std::uint64_t, std::size_t, std::size_t) override {
    unused();
  }
  void recv(gloo::transport::UnboundBuffer*, std::uint64_t, std::size_t, std::size_t) override {
    unused();
  }

 private:
  [[noreturn]] static void unused() {
    throw gloo::InvalidOperationException("pairs carry no messages here");
  }
};

std::string cause(const char* what, int peer) {
  return std::string(what) + " rank " + std::to_string(peer) + ": " + std::strerror(errno);
}

/// The part of (first, second) that follows `done` bytes.
std::size_t remaining(std::array<::iovec, 2>& parts, std::size_t done) {
  std::size_t count = 0;
  for (const auto part : parts) {
    const auto skip = std::min(done, part.iov_len);
    done -= skip;
    if (part.iov_len == skip) continue;
    parts[count++] = {static_cast<char*>(part.iov_base) + skip, part.iov_len - skip};
  }
  return count;
}

}  // namespace

Mesh::Mesh(int own_rank, int world_size)
    : gloo::transport::Context(own_rank, world_size),
      peers_(static_cast<std::size_t>(world_size)),
      wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      formation_({.rank = own_rank,
                  .size = world_size,
                  .wake = wake_.get(),
                  .aborted = [this] { return aborted_.load(); },
                  .adopt =
                      [this](int peer, UniqueFd socket) {
                        const std::lock_guard lock(sockets_);
                        peers_[static_cast<std::size_t>(peer)].socket = std::move(socket);
                      }}) {
  check(static_cast<bool>(wake_), "Mesh: eventfd");
  for (auto& pair : pairs_) pair = std::make_unique<PairMarker>();
}

Mesh::~Mesh() = default;

std::unique_ptr<gloo::transport::UnboundBuffer> Mesh::createUnboundBuffer(void* data,
                                                                          std::size_t bytes) {
  return std::make_unique<MeshBuffer>(shared_from_this(), data, bytes);
}

Result<void> Mesh::connect(const std::vector<std::vector<std::byte>>& contributions) {
  auto formed = formation_.connect(contributions);
  if (formed && aborted_.load()) hang_up();  // abort() may have come before the last connection
  return formed;
}

void Mesh::abort() noexcept {
  aborted_.store(true);
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written =
      ::write(wake_.get(), &one, sizeof one);  // stays readable: nobody reads it
  const std::lock_guard lock(sockets_);
  hang_up();
}

void Mesh::hang_up() noexcept {
  for (const auto& peer : peers_) {
    if (peer.socket) ::shutdown(peer.socket.get(), SHUT_RDWR);
  }
}

void Mesh::throw_if_failed() {
  if (aborted_.load()) throw gloo::IoException("the communicator was aborted");
  if (!failure_.empty()) throw gloo::IoException(failure_);
}

void Mesh::fail(const std::string& reason, bool peer_lost) {
  failure_ = reason;
  hang_up();
  if (peer_lost) throw gloo::IoException(reason);
  throw gloo::Exception(reason);
}

void Mesh::forget(const MeshBuffer* buffer) noexcept {
  // Only after a failure is anything left that is posted.
  for (auto& peer : peers_) {
    std::erase_if(peer.sends, [&](const Transfer& transfer) { return transfer.buffer == buffer; });
    std::erase_if(peer.receives,
                  [&](const Transfer& transfer) { return transfer.buffer == buffer; });
  }
}

void Mesh::post_send(int peer, const Transfer& transfer) {
  throw_if_failed();
  auto& sends = peers_[static_cast<std::size_t>(peer)].sends;
  sends.push_back(transfer);
  if (sends.size() == 1) send_some(peer);
}

void Mesh::post_receive(int peer, const Transfer& transfer) {
  throw_if_failed();
  peers_[static_cast<std::size_t>(peer)].receives.push_back(transfer);
}

bool Mesh::send_some(int index) {
  auto& peer = peers_[static_cast<std::size_t>(index)];
  bool completed = false;
  while (!peer.sends.empty()) {
    auto& transfer = peer.sends.front();
    std::array<::iovec, 2> parts = {::iovec{&transfer.header, sizeof(Header)},
                                    ::iovec{transfer.data, transfer.header.bytes}};
    ::msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = remaining(parts, transfer.done);
    const auto sent = ::sendmsg(peer.socket.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      if (errno == EAGAIN || errno == EWOULDBLOCK) return completed;
      if (errno == EINTR) continue;
      fail(cause("send to", index));
    }
    transfer.done += static_cast<std::uint64_t>(sent);
    if (transfer.done < sizeof(Header) + transfer.header.bytes) continue;
    transfer.buffer->sent_to(index);
    peer.sends.pop_front();
    completed = true;
  }
  return completed;
}

bool Mesh::receive_some(int index) {
  auto& peer = peers_[static_cast<std::size_t>(index)];
  bool completed = false;
  while (!peer.receives.empty()) {
    auto& transfer = peer.receives.front();
    std::array<::iovec, 2> parts = {::iovec{&transfer.arrived, sizeof(Header)},
                                    ::iovec{transfer.data, transfer.header.bytes}};
    ::msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = remaining(parts, transfer.done);
    const auto received = ::recvmsg(peer.socket.get(), &message, MSG_DONTWAIT);
    if (received == 0) fail("rank " + std::to_string(index) + " hung up");
    if (received < 0) {
      if (errno == EAGAIN || errno == EWOULDBLOCK) return completed;
      if (errno == EINTR) continue;
      fail(cause("receive from", index));
    }
    transfer.done += static_cast<std::uint64_t>(received);
    if (transfer.done >= sizeof(Header) && (transfer.arrived.bytes != transfer.header.bytes ||
                                            transfer.arrived.slot != transfer.header.slot)) {
      fail("rank " + std::to_string(index) + " sends " + std::to_string(transfer.arrived.bytes) +
               " bytes where " + std::to_string(transfer.header.bytes) +
               " were expected: the ranks' collectives differ",
           false);
    }
    if (transfer.done < sizeof(Header) + transfer.header.bytes) continue;
    transfer.buffer->received_from(index);
    peer.receives.pop_front();
    completed = true;
  }
  return completed;
}

void Mesh::progress() {
  throw_if_failed();
  std::vector<::pollfd> polled;
  polled.reserve(peers_.size() + 1);
  for (const auto& peer : peers_) {
    const int events = (peer.receives.empty() ? 0 : POLLIN) | (peer.sends.empty() ? 0 : POLLOUT);
    // poll() would report a peer that is gone even where nothing is wanted from it, so leave it
    // out.
    polled.push_back({events != 0 ? peer.socket.get() : -1, static_cast<short>(events), 0});
  }
  polled.push_back({wake_.get(), POLLIN, 0});
  bool completed = false;
  while (!completed) {
    if (::poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR)
      fail(cause("poll for", rank), false);
    throw_if_failed();
    for (std::size_t i = 0; i + 1 < polled.size(); ++i) {
      const int index = static_cast<int>(i);
      const auto seen = polled[i].revents;
      if ((seen & (POLLIN | POLLHUP | POLLERR)) != 0 && receive_some(index)) completed = true;
      if ((seen & (POLLOUT | POLLHUP | POLLERR)) != 0 && send_some(index)) completed = true;
    }
  }
}

Mesh::Transfer MeshBuffer::transfer(std::uint64_t slot, std::size_t offset, std::size_t bytes) {
  if (offset > size || (bytes != kUnspecifiedByteCount && bytes > size - offset)) {
    throw gloo::InvalidOperationException("a message beyond its buffer");
  }
  return {.buffer = this,
          .data = static_cast<std::byte*>(ptr) + offset,
          .header = {slot, bytes == kUnspecifiedByteCount ? size - offset : bytes},
          .arrived = {},
          .done = 0};
}

void MeshBuffer::send(int peer, std::uint64_t slot, std::size_t offset, std::size_t bytes) {
  mesh_->post_send(peer, transfer(slot, offset, bytes));
}

void MeshBuffer::recv(int peer, std::uint64_t slot, std::size_t offset, std::size_t bytes) {
  mesh_->post_receive(peer, transfer(slot, offset, bytes));
}

void MeshBuffer::recv(std::vector<int>, std::uint64_t, std::size_t, std::size_t) {
  throw gloo::InvalidOperationException("receiving from any of several ranks");
}

bool MeshBuffer::waitRecv(int* from, std::chrono::milliseconds) {
  while (received_from_.empty()) mesh_->progress();
  if (from != nullptr) *from = received_from_.front();
  received_from_.pop_front();
  return true;
}

bool MeshBuffer::waitSend(int* to, std::chrono::milliseconds) {
  while (sent_to_.empty()) mesh_->progress();
  if (to != nullptr) *to = sent_to_.front();
  sent_to_.pop_front();
  return true;
}

void MeshBuffer::abortWaitRecv() {
  mesh_->abort();
}
void MeshBuffer::abortWaitSend() {
  mesh_->abort();
}

}  // namespace troupe::host::cpu
