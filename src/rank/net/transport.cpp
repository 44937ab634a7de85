#include "rank/net/transport.hpp"

#include <sys/prctl.h>

#include <algorithm>

#include "common/core/continuations.hpp"

namespace troupe::rank_process {

namespace {

/// So often all ranks say that they leave: what answers the messages of before the first time comes
/// before the second.
constexpr int kLeaves = 2;
constexpr int kMessage = 0, kAreYouThere = 1, kHere = 2;  ///< tags; only messages have contents

}  // namespace

/// See watch().
struct Transport::Watch {
  using Time = std::chrono::steady_clock::time_point;

  std::chrono::nanoseconds patience;
  std::function<void(const std::vector<int>&, bool)> lost;
  std::vector<Time> heard;  ///< by rank
  Time asked{};
  Time found{};  ///< when some were lost
  int told = 0;
};

/// The thread's own.
struct Transport::Traffic {
  Messages& messages;
  Watch* watch = nullptr;
};

Transport::Transport(Session& session, Channel channel, Receiver receiver)
    : session_(&session),
      messages_(session.messages(channel)),
      channel_(channel),
      receiver_(std::move(receiver)),
      thread_([this] { run(); }) {}

Transport::~Transport() {
  leave();
}

void Transport::leave() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

/// Puts a message behind the last one that waits for its turn, if that goes to the same rank: on
/// the way they are one, which costs the network as much as each of them. With mutex_ held.
bool Transport::join(int rank, std::span<const std::byte> bytes) {
  if (channel_ != Channel::actors || outgoing_.empty()) return false;
  auto& last = outgoing_.back();
  if (last.rank != rank || last.bytes.size() + bytes.size() > kJoined) return false;
  last.bytes.insert(last.bytes.end(), bytes.begin(), bytes.end());
  return true;
}

void Transport::send(int rank, std::vector<std::byte> bytes) {
  {
    const std::lock_guard lock(mutex_);
    if (join(rank, bytes)) return;
    outgoing_.push_back({rank, std::move(bytes)});
  }
  wake_.notify_one();
}

void Transport::watch(std::chrono::nanoseconds patience,
                      std::function<void(const std::vector<int>&, bool)> lost) {
  auto watch = std::make_unique<Watch>();
  watch->patience = patience;
  watch->lost = std::move(lost);
  watch->heard.assign(static_cast<std::size_t>(session_->size()), std::chrono::steady_clock::now());
  const std::lock_guard lock(mutex_);
  if (!watch_) watch_ = std::move(watch);
}

void Transport::look_at_others(Traffic& traffic) {
  auto& watch = *traffic.watch;
  const auto now = std::chrono::steady_clock::now();
  if (now - watch.asked > watch.patience / 8) {
    watch.asked = now;
    for (int rank = 0; rank < session_->size(); ++rank) {
      if (rank != session_->rank()) traffic.messages.send(rank, kAreYouThere, {});
    }
  }
  std::vector<int> lost;
  for (int rank = 0; rank < session_->size(); ++rank) {
    if (rank != session_->rank() &&
        now - watch.heard[static_cast<std::size_t>(rank)] > watch.patience)
      lost.push_back(rank);
  }
  if (lost.empty() || watch.told == 2) return;
  if (watch.told == 1 && now - watch.found < watch.patience) return;
  watch.found = now;
  watch.lost(lost, watch.told++ == 1);
}

bool Transport::receive(Traffic& traffic) {
  bool any = false;
  traffic.messages.receive([&](int rank, int tag, std::vector<std::byte> bytes) {
    if (traffic.watch != nullptr)
      traffic.watch->heard[static_cast<std::size_t>(rank)] = std::chrono::steady_clock::now();
    if (tag == kAreYouThere) {
      traffic.messages.send(rank, kHere, {});
    } else if (tag == kMessage) {
      receiver_(std::move(bytes));
      any = true;
    }
  });
  return any;
}

std::chrono::nanoseconds Transport::pause(bool to_spare, bool sending,
                                          std::chrono::nanoseconds quiet) {
  if (!to_spare)
    return std::clamp<std::chrono::nanoseconds>(quiet / kPauseShare, kBusyPause, kLongestPause);
  return sending || quiet < kBusyTime ? kBusyPause : kIdlePause;
}

void Transport::run() {
  detail::this_thread_must_not_wait();
  ::prctl(PR_SET_TIMERSLACK, 1000);  // ns: kBusyPause is shorter than the default slack
  auto& messages = *messages_;
  Traffic traffic{.messages = messages};
  auto last_traffic = std::chrono::steady_clock::now();
  int to_leave = kLeaves;
  const bool to_spare = session_->has_cores_to_spare(kCoresToSpin),
             spins = to_spare && channel_ == Channel::actors;
  for (;;) {
    std::deque<Outgoing> outgoing;
    bool stop = false;
    {
      std::unique_lock lock(mutex_);
      const auto quiet = std::chrono::steady_clock::now() - last_traffic;
      if (!spins || quiet > kSpinTime)
        wake_.wait_for(lock, pause(to_spare, messages.sending(), quiet),
                       [&] { return !outgoing_.empty() || (stop_ && !messages.leaves()); });
      outgoing.swap(outgoing_);
      stop = stop_;
      traffic.watch = watch_.get();
    }
    bool any = !outgoing.empty();
    for (auto& message : outgoing) {
      if (message.rank == session_->rank()) {
        receiver_(std::move(message.bytes));
        continue;
      }
      messages.send(message.rank, kMessage, std::move(message.bytes));
    }
    messages.advance();
    any |= receive(traffic);
    if (traffic.watch != nullptr) look_at_others(traffic);
    if (any) last_traffic = std::chrono::steady_clock::now();
    if (stop && Session::forsaken()) return;
    if (!stop || messages.sending()) continue;
    // All ranks leave together: a late message must still find its receiver.
    if (!messages.leaves()) {
      const std::lock_guard lock(mutex_);
      if (!outgoing_.empty()) continue;
      last_traffic = std::chrono::steady_clock::now();
    }
    if (!messages.all_leave()) continue;
    receive(traffic);  // what came while the barrier ended
    if (--to_leave == 0) return;
  }
}

}  // namespace troupe::rank_process
