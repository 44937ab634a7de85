#include "common/ipc/socket.hpp"

#include <sys/socket.h>

#include <cstring>

#include "common/ipc/system_error.hpp"

namespace troupe::ipc {

Result<std::pair<Socket, Socket>> Socket::make_pair() {
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0)
    return system_error("socketpair");
  return std::pair(Socket(UniqueFd(fds[0])), Socket(UniqueFd(fds[1])));
}

Result<void> Socket::send(std::span<const std::byte> bytes, int fd) const {
  check(bytes.size() <= kMaxPacket, "a control message is too long");
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  if (fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  }
  for (;;) {
    if (::sendmsg(fd_.get(), &message, MSG_NOSIGNAL) >= 0) return {};
    if (errno == EINTR) continue;
    if (errno == EPIPE || errno == ECONNRESET)
      return Error{Errc::stopped, errno, "the other process is gone"};
    return system_error("sendmsg");
  }
}

Result<std::optional<Packet>> Socket::receive() const {
  Packet packet;
  packet.bytes.resize(kMaxPacket);
  iovec part{packet.bytes.data(), packet.bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t length = 0;
  do {
    // ECONNRESET is told once, ahead of what the peer had sent before it went with messages unread.
    length = ::recvmsg(fd_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (length < 0 && (errno == EINTR || errno == ECONNRESET));
  if (length < 0) {
    if (errno == EAGAIN || errno == EWOULDBLOCK) return std::optional<Packet>{};
    return system_error("recvmsg");
  }
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
    packet.fd.reset(fd);
  }
  packet.fd_lost = (message.msg_flags & MSG_CTRUNC) != 0 && !packet.fd;
  if (length == 0) return Error{Errc::stopped, 0, "the other process is gone"};
  packet.bytes.resize(static_cast<std::size_t>(length));
  return std::optional<Packet>(std::move(packet));
}

}  // namespace troupe::ipc
