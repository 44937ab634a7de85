#pragma once

#include <span>
#include <string>

#include <troupe/error.hpp>
#include <troupe/saved_state.hpp>

namespace troupe::rank_process {

/// Whether a rank's device memory reaches the files of a folder directly, as a trial has shown.
struct DirectTrial {
  enum class Outcome { direct, not_direct, unknown };  ///< unknown: a fault came in between
  Outcome outcome = Outcome::unknown;
  std::string reason;  ///< of not_direct
};

struct IoChoice {
  StateIo io = StateIo::pinned;  ///< direct or pinned
  std::string reason;            ///< why it is not direct, where that was not asked for; else empty
};

/// How all ranks bring states to disk and back: `wanted` is automatic, direct or pinned; `trials`
/// are those of all ranks, none where pinned is wanted. Automatic is direct where all trials are,
/// unless the state is `in_host_memory` anyway. Errors: invalid, with the reason, where direct is
/// wanted and some trial is not.
Result<IoChoice> choose_io(StateIo wanted, bool in_host_memory,
                           std::span<const DirectTrial> trials);

}  // namespace troupe::rank_process
