#pragma once

#include <chrono>
#include <set>

#include <troupe/troupe.hpp>

#include "holdings.hpp"
#include "program.hpp"

namespace troupe::torture {

/// Whether this rank and its device hosts have more open after a program than they had before the
/// first.
///
/// What may grow: slabs ("/memfd:troupe-slab") and pinned memory ("/memfd:troupe-pinned",
/// "/memfd:troupe-apart"), which are kept for the next time; the sockets of a rank, one for each
/// other rank that MPI has talked to; and with --token-path nccl what the ends of channels take. A
/// recovery replaces device hosts, so each is measured by the first ones: one that has more open
/// than any of them has kept something. Standbys come and go in the background, so it is looked
/// again for a while.
class Leaks {
 public:
  /// Looks at what there is before the first program, once the standby is up.
  Leaks(Runtime& runtime, std::chrono::nanoseconds patience);
  /// Throws Finding.
  void check();
  /// Kinds of operations of which this rank has no library.
  [[nodiscard]] const std::set<Kind>& missing() const { return missing_; }

 private:
  [[nodiscard]] std::string found() const;

  std::chrono::nanoseconds patience_;
  std::set<Kind> missing_;
  Holdings rank_, device_host_;  ///< before the first program
  bool channels_ = false;        ///< tokens travel by them
};

}  // namespace troupe::torture
