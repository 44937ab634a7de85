#include "rank/net/network_loop.hpp"

#include <sys/prctl.h>

#include <utility>

#include "common/core/continuations.hpp"
#include "rank/net/transport.hpp"

namespace troupe::rank_process {
namespace {

constexpr int kTokenMessage = 0;  ///< the only tag
/// Where all ranks are reached through rings: so often the network is looked at, for those that do
/// not reach this one so.
constexpr std::uint32_t kLooksAtRings = 64;

}  // namespace

NetworkLoop::NetworkLoop(Session& session)
    : session_(&session),
      spins_(session.has_cores_to_spare(kCoresToSpin)),
      messages_(session.messages(Session::Channel::tokens)) {}

NetworkLoop::~NetworkLoop() {
  if (!thread_.joinable()) return;
  leave();
  scheduler_->stop();
  thread_.join();
}

void NetworkLoop::start(Work work) {
  work_ = std::move(work);
  thread_ = std::thread([this] { run(); });
}

void NetworkLoop::send(int rank, std::vector<std::byte> bytes) {
  if (rank == session_->rank()) return to_self_.push_back(std::move(bytes));
  if (!messages_) return;
  if (rings_.reaches(rank)) return rings_.send(rank, std::move(bytes));
  messages_->send(rank, kTokenMessage, std::move(bytes));
}

void NetworkLoop::leave() {
  std::unique_lock lock(mutex_);
  if (left_ || !thread_.joinable()) return;
  leaving_.store(true, std::memory_order_release);
  scheduler_->wake();
  has_left_.wait(lock, [this] { return left_; });
}

void NetworkLoop::receive(bool all) {
  while (!to_self_.empty()) {
    heard_ = true;
    auto bytes = std::move(to_self_.front());
    to_self_.pop_front();
    work_.receive(std::move(bytes));
  }
  if (!messages_) return;
  rings_.advance();
  heard_ |= rings_.receive(work_.receive);
  const bool by_rings = rings_.reached() + 1 == static_cast<std::size_t>(session_->size());
  if (!all && by_rings && ++looks_ < kLooksAtRings) return;
  looks_ = 0;
  messages_->advance();
  heard_ |= messages_->receive(
      [this](int, int, std::vector<std::byte> bytes) { work_.receive(std::move(bytes)); });
}

void NetworkLoop::leave_if_asked() {
  if (!messages_ || !leaving_.load(std::memory_order_acquire)) return;
  if (!Session::forsaken()) {
    if (sending()) return;
    // All ranks leave together: a late message must still find its receiver.
    if (!messages_->all_leave()) return;
    receive(true);  // what came while the barrier ended
  }
  messages_.reset();
  const std::lock_guard lock(mutex_);
  left_ = true;
  has_left_.notify_all();
}

void NetworkLoop::run() {
  using Clock = std::chrono::steady_clock;
  detail::this_thread_must_not_wait();
  ::prctl(PR_SET_TIMERSLACK, 1000);  // ns: the shortest pause is shorter than the default slack
  bool looked = false;
  for (auto last = Clock::now(); !scheduler_->stopped();) {
    heard_ = false;
    receive(!looked);
    const bool had_turns = scheduler_->run_ready();
    leave_if_asked();
    const bool under_way = work_.under_way();
    const auto now = Clock::now();
    if (heard_ || (had_turns && under_way)) last = now;
    const auto quiet = now - last;
    if (spins_ && (quiet < kSpinTime || (under_way && quiet < kLongestSpin))) {
      work_.look();
      looked = true;
      continue;
    }
    if (std::exchange(looked, false)) work_.rest();
    scheduler_->sleep(Transport::pause(spins_, sending(), quiet));
  }
  if (looked) work_.rest();
}

}  // namespace troupe::rank_process
