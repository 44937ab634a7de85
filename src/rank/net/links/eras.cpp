#include "rank/net/links/eras.hpp"

namespace troupe::rank_process {

void Eras::interrupt() const {
  std::function<Error()> interruption;
  {
    const std::lock_guard lock(mutex_);
    interruption = interruption_;
  }
  const auto error =
      interruption ? interruption() : Error{Errc::world_reformed, 0, "a rank has died"};
  if (error.code == Errc::world_reformed) throw Exception(error);
  throw CollectiveException(error);
}

}  // namespace troupe::rank_process
