#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/error.hpp>

#include "common/ipc/socket.hpp"

/// What a rank and its device host say to each other beside the rings: rare, small, in order, each
/// perhaps with a file descriptor.
namespace troupe::wire {

enum class ControlKind : std::uint32_t {
  // rank to device host
  make_slab,    ///< region, bytes -> slab_made + fd | failed
  map_slab,     ///< region, bytes, fd
  map_pinned,   ///< region, bytes, fd -> done | failed
  map_foreign,  ///< a slab of another rank: region, bytes, fd -> done | failed
  drop_region,  ///< region
  promote,     ///< from now on serve the command ring; value: PortHeader::halts -> done | failed (a
               ///< mapping did)
  contribute,  ///< rank, size, perhaps memfd of the rank's groups -> contribution + memfd | failed;
               ///< gives up what communicators there are
  connect,     ///< rank, size, memfd of all contributions and, if there are, the groups to form ->
               ///< done
               ///< | failed
  contribute_group,  ///< region: its number, rank, size -> contribution + memfd | failed
  connect_group,     ///< region: its number, rank, size, memfd of contributions -> done | failed
  drop_group,        ///< region: its number; no rank uses it any more
  quiesce,       ///< after PortHeader::surrenders was counted on: stop issuing and answering, give
                 ///< the communicators up, drain -> done
  resume,        ///< go on after quiesce; value: PortHeader::halts
  suffer,        ///< value: FaultKind; at once
  open_library,  ///< text: its name; what a standby does ahead of time
  adopt_plans,   ///< memfd: a library's name, a plan, a name, …
  prepare,       ///< memfd: records of kinds of commands -> done, also where some could not be
  tell_libraries,  ///< -> done, behind library_opened for all that are open
  memory_use,  ///< -> done: bytes of device memory that are free; text: a line "CAUSE BYTES" each
  probe,       ///< -> done, once something that is launched now has been carried out
  shut_down,   ///< end in good order
  // device host to rank
  ready,           ///< context and handles are there; text: the description as JSON
  library_opened,  ///< text: see OpenedLibrary
  kind_recurs,     ///< a kind of command that was run more than once; bytes: its key, text: record
  plans_made,      ///< memfd: a library's name, then its plans
  slab_made,
  contribution,
  done,                ///< answers `request`
  failed,              ///< answers `request`; code, native, text
  fatal,               ///< the context is lost; value: 1 if nothing of it writes any more; code,
                       ///< native, text
  communicator_broken  ///< a collective found its peers gone; text
};

/// One control message. `request` is echoed by the answer.
struct Control {
  ControlKind kind{};
  std::uint32_t region = 0;
  std::uint64_t request = 0;
  std::uint64_t bytes = 0;
  std::int32_t rank = 0;
  std::int32_t size = 0;
  std::uint32_t value = 0;
  std::uint32_t code = 0;  ///< Errc
  std::int32_t native = 0;
  std::uint32_t text_bytes = 0;
};
static_assert(sizeof(Control) == 48);

struct ControlMessage {
  Control head;
  std::string text;
  UniqueFd fd;
  bool fd_lost = false;  ///< there was one, and this process may have no more of them

  /// An error if a message of this kind must bring a descriptor and there is none.
  [[nodiscard]] Result<void> check_descriptor() const;
  /// The error that a `failed` or `fatal` message carries.
  [[nodiscard]] Error error() const { return {static_cast<Errc>(head.code), head.native, text}; }
};

/// Longest text in a message; longer ones are cut.
inline constexpr std::size_t kMaxControlText = ipc::Socket::kMaxPacket - sizeof(Control);

Result<void> send_control(const ipc::Socket& socket, Control head, std::string_view text = {},
                          int fd = -1);
/// The next message; nullopt if there is none. A malformed one is Errc::internal.
Result<std::optional<ControlMessage>> receive_control(const ipc::Socket& socket);

/// Byte strings packed into a memfd and back: the contributions to a communicator.
Result<UniqueFd> pack_blobs(const std::vector<std::vector<std::byte>>& blobs);
Result<std::vector<std::vector<std::byte>>> unpack_blobs(int fd);

}  // namespace troupe::wire
