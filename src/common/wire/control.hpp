#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <troupe/error.hpp>
#include <troupe/lib/fault_kind.hpp>
#include <troupe/loaded_library.hpp>

#include "common/core/one_of.hpp"
#include "common/ipc/socket.hpp"
#include "common/wire/formation.hpp"

/// The messages between a rank and its device host beside the rings: rare, small and in order. One
/// struct for each kind; the bytes are the fields of the struct, see common/core/field_bytes.hpp.
namespace troupe::wire {

/// The file descriptor that comes with a message: the receiver's own, or one that the sender keeps.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(UniqueFd own) : own_(std::move(own)) {}
  /// For a message that is sent: `fd` stays the caller's, and open until then.
  static Descriptor lent(int fd) {
    Descriptor descriptor;
    descriptor.lent_ = fd;
    return descriptor;
  }

  [[nodiscard]] int get() const noexcept { return own_ ? own_.get() : lent_; }
  [[nodiscard]] UniqueFd take() { return std::move(own_); }

 private:
  UniqueFd own_;
  int lent_ = -1;
};

/// Messages of a device host.
namespace from_host {

/// The context and the handles are there.
struct Ready {
  std::string description{};  ///< of the device, as JSON
};
/// A library is open, and what it stands on is known.
struct LibraryOpened {
  OpenedLibrary library{};
};
/// A kind of command has run more than once.
struct KindRecurs {
  std::uint64_t key = 0;            ///< kind_key()
  std::vector<std::byte> record{};  ///< of one such command
};
/// A library has made plans that another process can use.
struct PlansMade {
  std::string library{};
  std::vector<std::vector<std::byte>> plans{};
};
/// The context is lost.
struct Fatal {
  Error error{};
  bool still = false;  ///< nothing of it writes to memory any more
};
/// A collective has found its peers gone.
struct CommunicatorBroken {
  std::string what{};
};

// Answers to requests. Failed may answer any.

struct Done {};
struct Failed {
  Error error{};
};
struct SlabMade {
  Descriptor memory{};
};
/// The share of this rank in the forming of communicators.
struct Contributed {
  std::vector<std::byte> contribution{};  ///< a Contribution; of one group, the bytes of its Share
};
struct MemoryUse {
  struct Part {
    std::string cause{};
    std::uint64_t bytes = 0;
  };
  std::vector<Part> parts{};
  std::uint64_t free = 0;  ///< bytes of the device's memory that nobody has taken
};

}  // namespace from_host

/// Messages of a rank. One that names an Answer is a request.
namespace to_host {

/// Make a slab.
struct MakeSlab {
  using Answer = from_host::SlabMade;
  std::uint32_t region = 0;
  std::uint64_t bytes = 0;
};
/// Map a slab that another device host of this rank has made.
struct MapSlab {
  using Answer = from_host::Done;
  std::uint32_t region = 0;
  std::uint64_t bytes = 0;
  Descriptor memory{};
};
/// Map memory of the rank.
struct MapPinned {
  using Answer = from_host::Done;
  std::uint32_t region = 0;
  std::uint64_t bytes = 0;
  Descriptor memory{};
};
/// Map a slab of another rank.
struct MapForeign {
  using Answer = from_host::Done;
  std::uint32_t region = 0;
  std::uint64_t bytes = 0;
  Descriptor memory{};
};
/// The region is gone: unmap it.
struct DropRegion {
  std::uint32_t region = 0;
};
/// From now on serve the command ring. Fails if an earlier request to map has.
struct Promote {
  using Answer = from_host::Done;
  std::uint32_t halts = 0;  ///< PortHeader::halts
};
/// Give all communicators up, and say what this rank contributes to new ones.
struct Contribute {
  using Answer = from_host::Contributed;
  std::int32_t rank = 0;
  std::int32_t size = 1;
  std::vector<FormingGroup> groups{};  ///< this rank's
};
/// Form the communicators.
struct Connect {
  using Answer = from_host::Done;
  std::int32_t rank = 0;
  std::int32_t size = 1;
  std::vector<std::vector<std::byte>> contributions{};  ///< by rank
  std::vector<FormingGroup> groups{};                   ///< those to form
};
/// The same for one group, beside the work.
struct ContributeGroup {
  using Answer = from_host::Contributed;
  std::uint32_t group = 0;  ///< its number
  std::int32_t rank = 0;    ///< in the group
  std::int32_t size = 1;
};
struct ConnectGroup {
  using Answer = from_host::Done;
  std::uint32_t group = 0;
  std::int32_t rank = 0;
  std::int32_t size = 1;
  std::vector<std::vector<std::byte>> contributions{};  ///< by rank in the group
};
/// No rank uses the group any more.
struct DropGroup {
  std::uint32_t group = 0;
};
/// Stop issuing and answering, give the communicators up, and drain the queues. The rank has
/// counted PortHeader::surrenders up before.
struct Quiesce {
  using Answer = from_host::Done;
};
/// Go on after Quiesce.
struct Resume {
  std::uint32_t halts = 0;  ///< PortHeader::halts
};
/// Suffer this fault, at once.
struct Suffer {
  memory::FaultKind kind{};
};
/// Open this library, ahead of the commands that need it.
struct OpenLibrary {
  std::string name{};
};
/// Take over plans that another process has made.
struct AdoptPlans {
  struct Plan {
    std::string library{};
    std::vector<std::byte> bytes{};
  };
  std::vector<Plan> plans{};
};
/// Prepare such commands. Done also where that was not possible.
struct Prepare {
  using Answer = from_host::Done;
  std::vector<std::vector<std::byte>> records{};  ///< one of each kind
};
/// Done, behind LibraryOpened for all libraries that are open.
struct TellLibraries {
  using Answer = from_host::Done;
};
/// Say what has taken how much of the device's memory.
struct TellMemoryUse {
  using Answer = from_host::MemoryUse;
};
/// Done once something that is launched now has been carried out.
struct Probe {
  using Answer = from_host::Done;
};
/// End in good order.
struct ShutDown {};

}  // namespace to_host

using ToHost =
    std::variant<to_host::MakeSlab, to_host::MapSlab, to_host::MapPinned, to_host::MapForeign,
                 to_host::DropRegion, to_host::Promote, to_host::Contribute, to_host::Connect,
                 to_host::ContributeGroup, to_host::ConnectGroup, to_host::DropGroup,
                 to_host::Quiesce, to_host::Resume, to_host::Suffer, to_host::OpenLibrary,
                 to_host::AdoptPlans, to_host::Prepare, to_host::TellLibraries,
                 to_host::TellMemoryUse, to_host::Probe, to_host::ShutDown>;
using FromHost = std::variant<from_host::Ready, from_host::LibraryOpened, from_host::KindRecurs,
                              from_host::PlansMade, from_host::Fatal, from_host::CommunicatorBroken,
                              from_host::Done, from_host::Failed, from_host::SlabMade,
                              from_host::Contributed, from_host::MemoryUse>;

/// True if the message of a device host answers a request.
template <class Kind>
inline constexpr bool kIsAnswer =
    kIsOneOf<Kind, from_host::Done, from_host::Failed, from_host::SlabMade, from_host::Contributed,
             from_host::MemoryUse>;

/// A message that has come.
template <class Message>
struct Received {
  std::uint64_t request = 0;  ///< its number, which the answer repeats; 0: nobody awaits one
  Message message{};
  /// An error: the descriptor that brings a part of the message has not come. Fields that it would
  /// have brought are empty; where all of the message was to come by it, all are.
  Result<void> whole{};
};
using FromRank = Received<ToHost>;
using FromDeviceHost = Received<FromHost>;

/// Sends one message. Errors: stopped if the other end is gone; io.
Result<void> send_control(const ipc::Socket& socket, const ToHost& message,
                          std::uint64_t request = 0);
Result<void> send_control(const ipc::Socket& socket, const FromHost& message,
                          std::uint64_t request = 0);

/// The next message; nothing if there is none. Errors: internal for a malformed one; stopped if the
/// other end is gone.
Result<std::optional<FromRank>> receive_from_rank(const ipc::Socket& socket);
Result<std::optional<FromDeviceHost>> receive_from_host(const ipc::Socket& socket);

}  // namespace troupe::wire
