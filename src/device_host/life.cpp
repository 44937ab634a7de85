#include "device_host/life.hpp"

namespace troupe::host {

void Life::lose(const Error& error) {
  if (lost()) return;
  mode_ = Mode::lost;
  rank_->send(wire::from_host::Fatal{error, engine_->is_still_after(error)});
}

bool Life::lose_if_dead(const Result<void>& outcome) {
  if (!ends_the_device(outcome.code())) return false;
  lose(outcome.error());
  return true;
}

void Life::break_communicator(const Error& error) {
  if (!active()) return;  // collectives end like this where others gave the communicator up
  mode_ = Mode::paused;   // until the world halts, nothing behind it can be trusted
  rank_->send(wire::from_host::CommunicatorBroken{error.to_string()});
}

}  // namespace troupe::host
