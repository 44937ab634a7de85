#include "common/wire/control.hpp"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cstring>

#include "common/ipc/descriptors.hpp"
#include "common/ipc/system_error.hpp"
#include "common/wire/wire_fields.hpp"

namespace troupe::wire {
namespace {

/// In front of the fields. A message that is longer than a packet comes in a file.
struct Head {
  std::uint64_t request = 0;
  std::uint32_t kind = 0;  ///< index in the variant
  std::uint32_t in_file = 0;
};
static_assert(sizeof(Head) == 16);
constexpr std::size_t kMostInPacket = ipc::Socket::kMaxPacket - sizeof(Head);

/// Its field that is a descriptor; nullptr: it has none.
template <class Kind>
auto* descriptor_in(Kind& message) {
  using Found = std::conditional_t<std::is_const_v<Kind>, const Descriptor, Descriptor>;
  Found* found = nullptr;
  for_each_field(message, [&found](auto& field) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(field)>, Descriptor>) found = &field;
  });
  return found;
}

Result<UniqueFd> file_of(std::span<const std::byte> bytes) {
  UniqueFd fd(::memfd_create("troupe-message", MFD_CLOEXEC));
  if (!fd) return ipc::system_error("memfd_create");
  while (!bytes.empty()) {
    const auto written = ::write(fd.get(), bytes.data(), bytes.size());
    if (written < 0) return ipc::system_error("write");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return fd;
}

Result<std::vector<std::byte>> bytes_in(int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return ipc::system_error("fstat");
  std::vector<std::byte> bytes(static_cast<std::size_t>(info.st_size));
  for (std::size_t got = 0; got < bytes.size();) {
    const auto step = ::pread(fd, bytes.data() + got, bytes.size() - got, static_cast<off_t>(got));
    if (step < 0) return ipc::system_error("pread");
    if (step == 0) return Error{Errc::internal, 0, "a control message is cut off"};
    got += static_cast<std::size_t>(step);
  }
  return bytes;
}

template <class Message>
Result<void> send_any(const ipc::Socket& socket, const Message& message, std::uint64_t request) {
  FieldWriter writer;
  int fd = -1;
  std::visit(
      [&](const auto& kind) {
        writer.put(kind);
        if (const auto* const descriptor = descriptor_in(kind)) fd = descriptor->get();
      },
      message);
  auto fields = writer.take();
  Head head{request, static_cast<std::uint32_t>(message.index()), 0};
  UniqueFd file;
  if (fields.size() > kMostInPacket) {
    auto made = file_of(fields);
    if (!made) return made.error();
    file = std::move(*made);
    fd = file.get();
    head.in_file = 1;
    fields.clear();
  }
  std::vector<std::byte> packet(sizeof head + fields.size());
  std::memcpy(packet.data(), &head, sizeof head);
  if (!fields.empty()) std::memcpy(packet.data() + sizeof head, fields.data(), fields.size());
  return socket.send(packet, fd);
}

/// Why a descriptor is missing.
Error without_descriptor(const ipc::Packet& packet) {
  if (packet.fd_lost)
    return ipc::no_descriptor_left("a descriptor between a rank and its device host");
  return {Errc::internal, 0, "a control message came without its descriptor"};
}

template <class Message>
Result<std::optional<Received<Message>>> receive_any(const ipc::Socket& socket) {
  const Error malformed{Errc::internal, 0, "a control message is malformed"};
  auto received = socket.receive();
  if (!received) return received.error();
  if (!*received) return std::optional<Received<Message>>{};
  auto& packet = **received;
  Head head;
  if (packet.bytes.size() < sizeof head) return malformed;
  std::memcpy(&head, packet.bytes.data(), sizeof head);
  std::span<const std::byte> fields = std::span(packet.bytes).subspan(sizeof head);
  if (head.in_file > 1 || (head.in_file == 1 && !fields.empty())) return malformed;
  std::optional<Received<Message>> got(std::in_place);
  got->request = head.request;
  std::vector<std::byte> file;
  if (head.in_file == 1) {
    auto bytes = packet.fd ? bytes_in(packet.fd.get())
                           : Result<std::vector<std::byte>>(without_descriptor(packet));
    if (bytes.ok()) {
      file = std::move(*bytes);
      fields = file;
    } else {
      got->whole = bytes.error();
    }
  }
  FieldReader reader(fields);
  const bool known = emplace_alternative(head.kind, got->message, [&](auto& kind) {
    if (!got->whole.ok()) return;
    reader.get(kind);
    auto* const descriptor = descriptor_in(kind);
    if (descriptor == nullptr) return;
    if (!packet.fd) got->whole = without_descriptor(packet);
    *descriptor = Descriptor(std::move(packet.fd));
  });
  if (!known || !reader.complete()) return malformed;
  return got;
}

}  // namespace

Result<void> send_control(const ipc::Socket& socket, const ToHost& message, std::uint64_t request) {
  return send_any(socket, message, request);
}

Result<void> send_control(const ipc::Socket& socket, const FromHost& message,
                          std::uint64_t request) {
  return send_any(socket, message, request);
}

Result<std::optional<FromRank>> receive_from_rank(const ipc::Socket& socket) {
  return receive_any<ToHost>(socket);
}

Result<std::optional<FromDeviceHost>> receive_from_host(const ipc::Socket& socket) {
  return receive_any<FromHost>(socket);
}

}  // namespace troupe::wire
