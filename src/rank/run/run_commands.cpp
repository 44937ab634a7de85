#include "rank/run/run_commands.hpp"

#include <string>

namespace troupe::rank_process {
namespace {

constexpr auto kLook = std::chrono::milliseconds(5);  ///< between looks at the world, in waits

}  // namespace

bool is_interrupted(WorldCore& core) {
  return core.status().run().is_interrupted();
}

void throw_error(WorldCore& core) {
  if (const auto error = core.device().port().outcomes().take_error()) throw Exception(*error);
}

Result<void> settle_commands(WorldCore& core) {
  const Whereabouts::Wait wait(core.whereabouts(), "World::run for this rank's own commands");
  const auto reached = core.device().port().outcomes().fence().reached;
  while (!reached.wait_for(kLook)) {
    if (is_interrupted(core)) return Error{Errc::world_reformed, 0, "the world is re-formed"};
  }
  return reached.wait();
}

bool is_by_fault(WorldCore& core, Errc code) {
  if (code == Errc::device_lost || code == Errc::world_reformed || ends_the_world(code))
    return true;
  if (code != Errc::stale && code != Errc::peer_lost) return false;
  return is_interrupted(core) || core.status().members().is_one_dead() ||
         core.device().port().transfers().spoilt_in() == core.epoch().value;
}

Error thrown() {
  try {
    throw;
  } catch (const Exception& e) {
    return e.error();
  } catch (const std::exception& e) {
    return {Errc::invalid, 0, std::string("the program has thrown: ") + e.what()};
  } catch (...) {
    return {Errc::invalid, 0, "the program has thrown an exception that is no std::exception"};
  }
}

}  // namespace troupe::rank_process
