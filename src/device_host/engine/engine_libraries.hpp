#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <troupe/loaded_library.hpp>

#include "device_host/engine/queue.hpp"

namespace troupe::host {

/// The libraries of an engine's lanes, but for the operations that they carry out. The reactor's
/// thread, unless a function says otherwise. By default they have nothing to say.
class EngineLibraries {
 public:
  EngineLibraries() = default;
  EngineLibraries(const EngineLibraries&) = delete;
  EngineLibraries& operator=(const EngineLibraries&) = delete;
  virtual ~EngineLibraries() = default;

  /// The lane's library is to be made anew, by another Engine::open_queue(). What has been queued
  /// runs on.
  virtual void discard(Lane) {}
  /// The libraries that the lane's library stands on.
  [[nodiscard]] virtual std::vector<LoadedLibrary> stands_on(Lane) const { return {}; }
  /// True: the lane's library prepares something from the contents of operands.
  [[nodiscard]] virtual bool remembers_contents(Lane) const { return false; }
  /// True: commands of the lane gain by several queues, and so it may have side queues.
  [[nodiscard]] virtual bool overlaps(Lane) const { return false; }
  /// A command that writes this range is about to be queued: what the lane's library has prepared
  /// from its contents is void.
  virtual void overwrites(Lane, const Operand&) {}
  /// Plans of the lane's library, to be kept beyond this process; see LibraryHalf. On the thread of
  /// the library; may block.
  virtual std::vector<std::vector<std::byte>> take_new_plans(Lane) { return {}; }
  virtual void adopt_plan(Lane, std::span<const std::byte>) {}
};

}  // namespace troupe::host
