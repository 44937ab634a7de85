#include "rank/net/session.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>

#include "common/ipc/doorbell.hpp"
#include "rank/net/links/link_session.hpp"
#include "rank/net/mpi/mpi_session.hpp"

namespace troupe::rank_process {
namespace {

std::atomic<bool> others_forsaken{false};

}  // namespace

std::shared_ptr<Session> Session::open(int* argc, char*** argv) {
  static std::mutex mutex;
  static std::weak_ptr<Session> newest;
  const std::lock_guard lock(mutex);
  if (auto open = newest.lock()) return open;
  std::shared_ptr<Session> made =
      KeeperLine::is_there() ? LinkSession::open() : MpiSession::open(argc, argv);
  newest = made;
  return made;
}

bool Session::has_keeper() {
  return KeeperLine::is_there();
}
std::optional<Session::Waiting> Session::waiting() {
  if (!KeeperLine::is_there() || KeeperLine::place().rank != keeper::Job::kSpare)
    return std::nullopt;
  const auto& place = KeeperLine::place();
  const auto cores = static_cast<int>(place.cores);
  return Waiting{
      .local_rank = place.own.local_rank,
      .ranks = place.size(),
      .cores = cores > 0 ? cores : std::max(1, ipc::usable_cores() / place.own.local_size),
      .one_node = place.several_hosts == 0};
}

bool Session::mpi_is_initialised() {
  return MpiSession::is_initialised();
}

bool Session::has_cores_to_spare(int each) const {
  return ipc::usable_cores() >= each * local_size();
}

void Session::forsake() noexcept {
  others_forsaken = true;
}
bool Session::forsaken() noexcept {
  return others_forsaken;
}

void Session::abort(int status) {
  if (KeeperLine::is_there()) {
    LinkSession::abort(status);
  } else {
    MpiSession::abort(status);
  }
  std::_Exit(status);
}

std::string Session::library_version() {
  return MpiSession::library_version();
}

}  // namespace troupe::rank_process
