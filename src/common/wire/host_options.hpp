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

/// Everything a device host is started with. Crosses the process boundary on its command
/// line, and the module boundary (isolation = thread) as it is.
struct HostOptions {
  int segment_fd = -1;        ///< the port segment (PortHeader)
  int command_bell_fd = -1;   ///< eventfd: commands wait
  int reply_bell_fd = -1;     ///< eventfd: replies wait
  int socket_fd = -1;         ///< control messages
  int flight_fd = -1;         ///< the flight recorder's segment (FlightHeader)
  int device = 0;             ///< ordinal among the visible devices
  int threads = 1;            ///< host threads a cpu engine may compute with
  std::uint32_t standby = 0;  ///< a Standby
  int in_process = 0;         ///< 1: a thread of the rank
  std::uint64_t memory_limit = 0;
  std::uint32_t completion = 0;
  std::uint32_t spin_us = 0;  ///< how long the reactor spins before it sleeps
  int other_hosts = 0;        ///< 1: some ranks of the job are on other hosts
  int channels = 0;           ///< ends of channels (--token-path nccl) that it may have at most
  int reproducible = 0;       ///< 1: sums over ranks always have the same bits
  int register_buffers = 0;   ///< 1: slabs are registered with communicators
  /// The network interface of a cpu engine's collectives, ended by 0; empty: chosen by itself.
  std::array<char, 16> interface {};
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
