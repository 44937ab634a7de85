#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dump.hpp"

namespace troupe::flight {

/// How a collective that not all ranks have completed stands there.
enum class Stand : std::uint8_t { not_submitted, not_issued, not_completed, other_call, completed };
std::string to_string(Stand stand);

/// A rank that the others wait for.
struct Culprit {
  int rank = 0;
  Stand stand{};
  /// What it is at: its oldest operation before that collective that is not completed; if there is
  /// none, its last one. nullptr: it has none at all. Points into the dumps.
  const Operation* at = nullptr;
};

/// What a job's dumps say together.
///
/// The ranks of a world call the same collectives in the same order, so the n-th of an epoch is one
/// operation on all of them (those of groups are counted by themselves, and only shown). The break
/// is the first of the newest epoch that not every rank has completed. Ranks that have not
/// submitted it keep the others waiting; if there are none, those that call another operation or
/// length in its place; else those that have not issued it; else those that have not completed what
/// others have. If every rank has issued it and none has completed it, nobody is named: the
/// connection between them is what is left.
struct Analysis {
  std::uint32_t epoch = 0;       ///< of the break
  std::uint32_t collective = 0;  ///< its number; 0: no rank waits for another
  std::string operation;         ///< as most ranks call it
  std::uint64_t count = 0;
  std::int64_t time_ns = 0;  ///< when the first rank submitted it
  std::vector<Culprit> culprits;
  std::vector<int> waiting;  ///< ranks that have issued it and not completed it
  std::vector<int> no_dump;  ///< ranks of which there is no dump
  /// By rank of the dumps: the oldest operation that is not completed, if any.
  std::vector<const Operation*> unfinished;
};

/// `dumps` as read_dumps() gives them, at least one; the result points into them.
Analysis analyse(const std::vector<Dump>& dumps);

}  // namespace troupe::flight
