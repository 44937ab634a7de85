#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <troupe/error.hpp>

#include "rank/net/estate.hpp"

namespace troupe::rank_process {

/// Ranks whose processes die, and are started again by their keepers (--on-rank-loss respawn). By
/// MPI none is: the job ends with it.
class Respawns {
 public:
  Respawns() = default;
  virtual ~Respawns() = default;
  Respawns(const Respawns&) = delete;
  Respawns& operator=(const Respawns&) = delete;

  /// How often this rank has been started before.
  [[nodiscard]] virtual std::uint32_t incarnation() const { return 0; }
  /// How often the process of this rank has died before.
  [[nodiscard]] virtual std::uint32_t own_deaths() const { return 0; }
  /// The rank is in the world: if it dies from now on, it is started again. It has so many cores to
  /// itself.
  virtual void expect(int /*cores*/) {}
  /// No more: there is nothing that it could go on with.
  virtual void expect_no_more() {}
  /// True once expect() has been called.
  [[nodiscard]] virtual bool expected() const { return false; }
  /// A run begins. What the ranks have exchanged until then a rank that is started again hears
  /// anew.
  virtual void begin_run() {}
  /// A process of this incarnation is that rank now: nothing more comes from the one before, and
  /// exchanges that wait for any rank end. False: it is known. Any thread.
  virtual bool learn(int /*rank*/, std::uint32_t /*incarnation*/) { return false; }
  /// The host and the node (see Session) where the rank is by now. nullopt: where it was at the
  /// start.
  [[nodiscard]] virtual std::optional<std::string> host_of(int /*rank*/) const {
    return std::nullopt;
  }
  [[nodiscard]] virtual std::optional<int> node_of(int /*rank*/) const { return std::nullopt; }
  /// This rank's GPU cannot go on: the rank is to be started at a spare place, and this process is
  /// ended. `kept`: there is none; called on some thread, at once or later. Any thread.
  virtual void release(std::function<void()> kept) { kept(); }
  /// There is no GPU for this rank where it is: its node is lost, and there was no spare place.
  [[nodiscard]] virtual bool in_refuge() const { return false; }
  /// UINT32_MAX: it is not known.
  [[nodiscard]] virtual std::uint32_t incarnation_of(int /*rank*/) const { return 0; }
  /// How many deaths of ranks this one has heard of. Any thread.
  [[nodiscard]] virtual std::uint32_t deaths() const { return 0; }
  /// From this epoch on the ranks exchange again, after so many deaths. The program's thread.
  virtual void begin_era(std::uint32_t /*epoch*/, std::uint32_t /*deaths*/) {}
  /// Sets the error that an exchange throws which a death ends: a CollectiveException, but an
  /// Exception if it is world_reformed.
  virtual void set_interruption(std::function<Error()> /*interruption*/) {}
  /// By which the ranks of a node know one another, whatever process they are; see FdExchange.
  [[nodiscard]] virtual std::optional<std::array<std::uint64_t, 4>> secret() const {
    return std::nullopt;
  }
  /// The legacy of this process to the one after it.
  [[nodiscard]] virtual const std::shared_ptr<Estate>& estate() const {
    static const auto nothing = std::make_shared<Estate>();
    return nothing;
  }
};

}  // namespace troupe::rank_process
