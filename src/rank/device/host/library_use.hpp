#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <troupe/loaded_library.hpp>

#include "common/wire/control.hpp"
#include "common/wire/library_stamps.hpp"
#include "rank/device/host/device_messages.hpp"
#include "rank/device/host/host_requests.hpp"
#include "rank/device/host/tuning_file.hpp"
#include "rank/device/host/warm_set.hpp"

namespace troupe::rank_process {

/// What the device hosts of a rank have opened and used: to tell of it, and to have those that may
/// serve next, the *heirs*, prepare it. One thread.
class LibraryUse {
 public:
  using Heirs = std::vector<std::shared_ptr<HostLink>>;

  /// `tuning_file`: see TuningFile.
  LibraryUse(HostRequests* requests, const std::string& tuning_file);

  /// Reads what measurements have found in earlier runs.
  void load();

  /// Tells a host, before it starts, which modules of libraries outside troupe earlier hosts have
  /// loaded: it loads no others.
  void name_modules(const HostLink& host) const;
  /// Notes which ones a host that is ready has. One that loaded another one than an earlier host,
  /// because both started while it was replaced, has to do without.
  void note_modules(const HostLink& host);

  // What a host says.

  /// The library, unless it is known already as it is.
  std::optional<OpenedLibrary> library_opened(const OpenedLibrary& library, const Heirs& heirs);
  void kind_recurs(const wire::from_host::KindRecurs& told, const Heirs& heirs);
  void kinds_recur(device_message::KindsRecur recur, const Heirs& heirs);
  void plans_made(wire::from_host::PlansMade told, const Heirs& heirs);

  /// The libraries of the program that a host does not have, each with the reason: lines, which go
  /// to the log unless an earlier host has said the same.
  void lacks(const std::string& lines);
  /// A host that has just started prepares all there is.
  void warm_up(const HostLink& host) { warm_up(host, warm_); }
  /// A host has ended without having served. If it was preparing, it may have ended of that: the
  /// next ones prepare nothing of what there is.
  void lost(std::uint64_t host);
  /// The host may be forgotten.
  void forget(std::uint64_t host) { warming_.erase(host); }

  [[nodiscard]] std::vector<OpenedLibrary> opened() const;

 private:
  void warm_up(const HostLink& host, const WarmSet& what);
  void warm_up(const Heirs& heirs, const WarmSet& what);

  HostRequests* requests_;
  WarmSet warm_;
  TuningFile tunings_;
  /// The module that the first host loaded for each library outside troupe, by the library's name.
  std::map<std::string, decltype(wire::LibraryStamp::module), std::less<>> modules_;
  std::map<std::string, OpenedLibrary> opened_;  ///< by name, as a device host has said last
  std::string lacking_;                          ///< what a device host has said last
  std::set<std::uint64_t> warming_;              ///< hosts that are preparing
};

}  // namespace troupe::rank_process
