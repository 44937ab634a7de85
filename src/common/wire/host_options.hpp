#pragma once

#include <array>
#include <cstdint>

namespace troupe::wire {

/// How a device host reports that work is done.
enum class Completion : std::uint32_t {
  event,    ///< one event per batch of commands, polled: the default
  host_fn,  ///< a host function per batch
  sync      ///< wait for each batch before the next: for debugging
};

/// What a device host is started as.
enum class Standby : std::uint32_t {
  no,       ///< it serves from the start
  forming,  ///< it is ready at once, and forms a communicator with other standbys
  alone     ///< it is ready once it has prepared what forming a communicator wants of it alone
};

/// The settings of a device host. Its rank writes them into the port's header before it starts the
/// device host.
struct HostSettings {
  std::int32_t device = 0;   ///< ordinal among the visible devices
  std::int32_t threads = 1;  ///< host threads a cpu engine may compute with
  Standby standby = Standby::no;
  Completion completion = Completion::event;
  std::uint64_t memory_limit = 0;  ///< bytes
  std::uint32_t spin_us = 0;       ///< how long the reactor spins before it sleeps
  std::int32_t channels = 0;      ///< ends of channels (--token-path nccl) that it may have at most
  std::uint8_t other_hosts = 0;   ///< 1: some ranks of the job are on other hosts
  std::uint8_t reproducible = 0;  ///< 1: sums over ranks always have the same bits
  std::uint8_t register_buffers = 0;  ///< 1: slabs are registered with communicators
  std::uint8_t check_products = 0;    ///< 1: products are looked at by checksums, see ProductChecks
  std::uint8_t in_process = 0;        ///< 1: a thread of the rank's (--isolation thread)
  /// The network interface of a cpu engine's collectives, ended by 0; empty: chosen by itself.
  std::array<char, 16> interface {};
};

/// The descriptors and texts that a device host is started with. In a process of its own the
/// descriptors have fixed numbers. Crosses the module boundary (isolation = thread) as it is.
struct HostOptions {
  int segment_fd = -1;       ///< the port segment (PortHeader)
  int command_bell_fd = -1;  ///< eventfd: commands wait
  int reply_bell_fd = -1;    ///< eventfd: replies wait
  int socket_fd = -1;        ///< control messages
  int flight_fd = -1;        ///< the flight recorder's segment (FlightHeader)
  /// Where libraries outside of troupe may lie, separated by ':'.
  const char* library_folders = "";
};

/// The one symbol of an engine module: runs a device host until it is told to end; returns its exit
/// status.
inline constexpr const char* kRunSymbol = "troupe_device_host_run";
using RunFunction = int (*)(const HostOptions*);

/// Writes a JSON array of device descriptions into `buffer`; returns its length, or -1 with an
/// error text in it.
inline constexpr const char* kListSymbol = "troupe_device_host_list";
using ListFunction = int (*)(char* buffer, int capacity);

/// Exit statuses of troupe-device-host.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFaultDrill = 3;  ///< the fault `exit` was ordered
inline constexpr int kExitUsage = 64;      ///< not started by a rank
inline constexpr int kExitNoEngine = 69;   ///< the engine cannot be loaded or made
inline constexpr int kExitCorrupt = 70;    ///< shared memory held nonsense

}  // namespace troupe::wire
