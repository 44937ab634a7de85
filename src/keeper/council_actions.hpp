#pragma once

#include <string>

#include "keeper/council_message.hpp"

namespace troupe::keeper {

/// The work that a keeper does for its Council.
class CouncilActions {
 public:
  virtual ~CouncilActions() = default;
  /// To another keeper. What cannot be delivered is lost.
  virtual void send(int place, const CouncilMessage& message) = 0;
  /// The keepers have agreed on this roster.
  virtual void seat(const Roster& roster) = 0;
  /// There is no place for the rank that was to be released.
  virtual void keep_rank() = 0;
  /// The programs of all ranks have ended; the job's status.
  virtual void all_have_ended(int status) = 0;
  /// This keeper and its rank end at once: with the whole job, or alone. `why`: empty if others
  /// say it.
  enum class Ending { job, place };
  virtual void end(int status, const std::string& why, Ending ending) = 0;
};

}  // namespace troupe::keeper
