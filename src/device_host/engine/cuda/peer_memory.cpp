#include "device_host/engine/cuda/peer_memory.hpp"

#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "common/ipc/system_error.hpp"
#include "common/ipc/this_host.hpp"
#include "device_host/engine/cuda/handles.hpp"
#include "device_host/engine/cuda/shareable_memory.hpp"
#include "device_host/engine/cuda/status.hpp"

namespace troupe::host::cuda {
namespace {

constexpr std::chrono::microseconds kLookInterval{100};

/// The address of a rank's socket, and its length.
std::pair<sockaddr_un, socklen_t> address_of(const PeerMemory::Card& card) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // An abstract name begins with a zero: no file is left behind.
  const auto name = "troupe-peers-" + std::to_string(card.pid) + "-" + std::to_string(card.number);
  name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
  return {address, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size())};
}

bool is_of_this_user(int socket) {
  ucred peer{};
  socklen_t length = sizeof peer;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
         peer.uid == ::geteuid();
}

}  // namespace

Result<std::unique_ptr<PeerMemory>> PeerMemory::make(int device, std::uint64_t bytes,
                                                     std::span<const std::byte> own) {
  const auto api = driver();
  if (!api.ok()) return api.error();
  std::unique_ptr<PeerMemory> made(new PeerMemory(**api, device));
  if (auto allocated = made->allocate(bytes + own.size()); !allocated) return allocated.error();
  if (auto written = made->write(bytes, own); !written) return written.error();
  if (auto listens = made->listen(); !listens) return listens.error();
  return made;
}

PeerMemory::~PeerMemory() {
  for (auto* const part : parts_) {
    if (part != nullptr && part != own_) unmap(api_, part, card_.bytes);
  }
  if (own_ != nullptr) unmap(api_, own_, card_.bytes);
}

Result<void> PeerMemory::allocate(std::uint64_t bytes) {
  const auto wanted = shareable(device_, false);
  std::size_t granularity = 0;
  TROUPE_CUDA_TRY(
      api_.cuMemGetAllocationGranularity(&granularity, &wanted, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  bytes = (bytes + granularity - 1) / granularity * granularity;
  CUmemGenericAllocationHandle handle = 0;
  TROUPE_CUDA_TRY(api_.cuMemCreate(&handle, bytes, &wanted, 0));
  const Allocation allocation(api_, handle);
  auto exported = export_descriptor(api_, allocation);
  if (!exported) return exported.error();
  memory_ = std::move(*exported);
  const auto mapped = map_allocation(api_, device_, allocation.get(), bytes);
  if (!mapped) return mapped.error();
  own_ = *mapped;
  card_.bytes = bytes;
  return {};
}

Result<void> PeerMemory::write(std::uint64_t zeros, std::span<const std::byte> own) const {
  Stream stream;  // of its own: the legacy one waits for all others
  TROUPE_CUDA_TRY(cudaStreamCreateWithFlags(stream.out(), cudaStreamNonBlocking));
  TROUPE_CUDA_TRY(cudaMemsetAsync(own_, 0, zeros, stream.get()));
  TROUPE_CUDA_TRY(
      cudaMemcpyAsync(own_ + zeros, own.data(), own.size(), cudaMemcpyHostToDevice, stream.get()));
  TROUPE_CUDA_TRY(cudaStreamSynchronize(stream.get()));
  return {};
}

Result<void> PeerMemory::listen() {
  static std::atomic<std::int32_t> made{0};
  card_.host = ipc::this_host();
  card_.pid = ::getpid();
  card_.number = ++made;
  if (::getrandom(card_.cookie.data(), sizeof card_.cookie, 0) != sizeof card_.cookie)
    return ipc::system_error("getrandom");
  listener_.reset(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener_) return ipc::system_error("socket");
  const auto [address, length] = address_of(card_);
  if (::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0)
    return ipc::system_error("bind");
  if (::listen(listener_.get(), SOMAXCONN) != 0) return ipc::system_error("listen");
  return {};
}

bool PeerMemory::can_meet(std::span<const Card> cards) noexcept {
  return !cards.empty() && std::all_of(cards.begin(), cards.end(), [&](const Card& card) {
    return card.bytes != 0 && card.bytes == cards[0].bytes && card.host == cards[0].host;
  });
}

Result<void> PeerMemory::send_to(const Card& card, int rank) const {
  const ipc::Socket socket(UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)));
  if (socket.fd() < 0) return ipc::system_error("socket");
  const auto [address, length] = address_of(card);
  if (::connect(socket.fd(), reinterpret_cast<const sockaddr*>(&address), length) != 0)
    return ipc::system_error("connect");
  if (!is_of_this_user(socket.fd()))
    return Error{Errc::io, 0, "the socket of a rank belongs to another user"};
  const Greeting greeting{card.cookie, rank, 0};
  return socket.send(std::as_bytes(std::span(&greeting, 1)), memory_.get());
}

Result<void> PeerMemory::take(const ipc::Packet& packet, int rank) {
  Greeting greeting;
  if (packet.bytes.size() != sizeof greeting) return {};  // from somebody else
  std::memcpy(&greeting, packet.bytes.data(), sizeof greeting);
  const auto from = static_cast<std::size_t>(greeting.rank);
  if (greeting.cookie != card_.cookie || greeting.rank == rank || from >= parts_.size() ||
      parts_[from] != nullptr)
    return {};
  if (!packet.fd) return Error{Errc::io, 0, "a rank's memory came without its descriptor"};
  const auto mapped = map_descriptor(api_, device_, packet.fd.get(), card_.bytes);
  if (!mapped) return mapped.error();
  parts_[from] = *mapped;
  return {};
}

Result<void> PeerMemory::meet(int rank, std::span<const Card> cards,
                              const std::function<bool()>& given_up) {
  parts_.assign(cards.size(), nullptr);
  parts_[static_cast<std::size_t>(rank)] = own_;
  Result<void> outcome;
  for (std::size_t peer = 0; peer < cards.size(); ++peer) {
    if (static_cast<int>(peer) == rank) continue;
    if (auto sent = send_to(cards[peer], rank); !sent && outcome.ok()) outcome = sent;
  }
  // Also where that has failed: the others send, and wait for nothing but this.
  const auto end = std::chrono::steady_clock::now() + kPatience;
  const auto complete = [this] {
    return std::none_of(parts_.begin(), parts_.end(), [](auto* part) { return part == nullptr; });
  };
  while (outcome.ok() && !complete()) {
    if (given_up()) outcome = Error{Errc::peer_lost, 0, "the communicator was given up"};
    if (std::chrono::steady_clock::now() > end)
      outcome = Error{Errc::timeout, 0, "not all ranks have sent descriptors of their memory"};
    if (!outcome.ok()) break;
    UniqueFd guest(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (guest && is_of_this_user(guest.get())) guests_.emplace_back(std::move(guest));
    bool any = false;
    std::erase_if(guests_, [&](const ipc::Socket& socket) {
      const auto packet = socket.receive();
      if (packet.ok() && !packet->has_value()) return false;
      any = true;
      if (packet.ok() && outcome.ok()) outcome = take(**packet, rank);
      return true;
    });
    if (!any) std::this_thread::sleep_for(kLookInterval);
  }
  guests_.clear();
  close();
  return outcome;
}

}  // namespace troupe::host::cuda
