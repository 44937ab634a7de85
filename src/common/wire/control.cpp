#include "common/wire/control.hpp"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cstring>

#include "common/ipc/descriptors.hpp"
#include "common/ipc/system_error.hpp"

namespace troupe::wire {

namespace {

bool brings_descriptor(ControlKind kind) {
  switch (kind) {
    case ControlKind::map_slab:
    case ControlKind::map_pinned:
    case ControlKind::map_foreign:
    case ControlKind::connect:
    case ControlKind::connect_group:
    case ControlKind::slab_made:
    case ControlKind::adopt_plans:
    case ControlKind::prepare:
    case ControlKind::plans_made:
    case ControlKind::contribution: return true;
    default: return false;
  }
}

}  // namespace

Result<void> ControlMessage::check_descriptor() const {
  if (fd || !brings_descriptor(head.kind)) return {};
  if (fd_lost) return ipc::no_descriptor_left("a descriptor between a rank and its device host");
  return Error{Errc::internal, 0, "a control message came without its descriptor"};
}

Result<void> send_control(const ipc::Socket& socket, Control head, std::string_view text, int fd) {
  text = text.substr(0, kMaxControlText);
  head.text_bytes = static_cast<std::uint32_t>(text.size());
  std::vector<std::byte> packet(sizeof head + text.size());
  std::memcpy(packet.data(), &head, sizeof head);
  if (!text.empty()) std::memcpy(packet.data() + sizeof head, text.data(), text.size());
  return socket.send(packet, fd);
}

Result<std::optional<ControlMessage>> receive_control(const ipc::Socket& socket) {
  auto packet = socket.receive();
  if (!packet) return packet.error();
  if (!*packet) return std::optional<ControlMessage>{};
  auto& bytes = (*packet)->bytes;
  ControlMessage message;
  if (bytes.size() < sizeof message.head)
    return Error{Errc::internal, 0, "a control message is too short"};
  std::memcpy(&message.head, bytes.data(), sizeof message.head);
  if (message.head.text_bytes != bytes.size() - sizeof message.head ||
      message.head.kind > ControlKind::communicator_broken) {
    return Error{Errc::internal, 0, "a control message is malformed"};
  }
  message.text.assign(reinterpret_cast<const char*>(bytes.data()) + sizeof message.head,
                      message.head.text_bytes);
  message.fd = std::move((*packet)->fd);
  message.fd_lost = (*packet)->fd_lost;
  return std::optional<ControlMessage>(std::move(message));
}

Result<UniqueFd> pack_blobs(const std::vector<std::vector<std::byte>>& blobs) {
  std::vector<std::byte> packed;
  const auto append = [&](const void* data, std::size_t bytes) {
    const auto* first = static_cast<const std::byte*>(data);
    packed.insert(packed.end(), first, first + bytes);
  };
  const std::uint64_t count = blobs.size();
  append(&count, sizeof count);
  for (const auto& blob : blobs) {
    const std::uint64_t bytes = blob.size();
    append(&bytes, sizeof bytes);
    append(blob.data(), blob.size());
  }
  UniqueFd fd(::memfd_create("troupe-blobs", MFD_CLOEXEC));
  if (!fd) return ipc::system_error("memfd_create");
  std::size_t written = 0;
  while (written < packed.size()) {
    const auto step = ::write(fd.get(), packed.data() + written, packed.size() - written);
    if (step < 0) return ipc::system_error("write");
    written += static_cast<std::size_t>(step);
  }
  return fd;
}

Result<std::vector<std::vector<std::byte>>> unpack_blobs(int fd) {
  const Error malformed{Errc::internal, 0, "packed contributions are malformed"};
  struct stat info {};
  if (::fstat(fd, &info) != 0) return ipc::system_error("fstat");
  std::vector<std::byte> packed(static_cast<std::size_t>(info.st_size));
  std::size_t got = 0;
  while (got < packed.size()) {
    const auto step =
        ::pread(fd, packed.data() + got, packed.size() - got, static_cast<off_t>(got));
    if (step < 0) return ipc::system_error("pread");
    if (step == 0) return malformed;
    got += static_cast<std::size_t>(step);
  }
  std::size_t at = 0;
  const auto number = [&]() -> std::uint64_t {
    std::uint64_t value = ~std::uint64_t{0};
    if (packed.size() - at < sizeof value) return value;
    std::memcpy(&value, packed.data() + at, sizeof value);
    at += sizeof value;
    return value;
  };
  const auto count = number();
  if (count > packed.size()) return malformed;
  std::vector<std::vector<std::byte>> blobs;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto bytes = number();
    if (bytes > packed.size() - at) return malformed;
    blobs.emplace_back(packed.begin() + static_cast<std::ptrdiff_t>(at),
                       packed.begin() + static_cast<std::ptrdiff_t>(at + bytes));
    at += bytes;
  }
  return blobs;
}

}  // namespace troupe::wire
