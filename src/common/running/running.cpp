#include <troupe/running.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>
#include <troupe/lib/operation_info.hpp>

#include "common/core/ticks.hpp"
#include "common/running/flight_view.hpp"
#include "common/running/processes.hpp"

namespace troupe {

struct RunningRanks::State {
  /// A segment: its rank's process, and its number among those of the system.
  using Key = std::pair<int, std::uint64_t>;
  struct Known {
    running::FlightView view;
    std::string command;
    std::uint64_t newest = 0, looked = 0;  ///< at the look before; looked: 0, there was none
    TimePoint time{};
  };
  TickScale scale;
  std::map<Key, Known> known;

  void find();
  RunningRank describe(const Key& key, Known& known);
  void describe_commands(Known& known, RunningRank& rank);
};

namespace {

std::string host_state(int host, int rank) {
  if (host == 0) return "none";
  if (host == rank) return "in the rank";
  switch (running::state_of(host)) {
    case '\0':
    case 'X':
    case 'Z': return "is gone";
    case 'T':
    case 't': return "is stopped";
    default: return "runs";
  }
}

std::string name_of(std::uint32_t opcode) {
  const auto name = operation_name(opcode);
  return name == "unknown" ? fmt::format("operation {:#x}", opcode) : std::string(name);
}

}  // namespace

RunningRanks::RunningRanks() : state_(std::make_unique<State>()) {}
RunningRanks::~RunningRanks() = default;

/// Forgets those that are gone, and maps those that are new.
void RunningRanks::State::find() {
  std::map<Key, Known> there;
  for (const int pid : running::own_processes()) {
    for (const auto& fd : running::shared_memory_of(pid, wire::kFlightLabel)) {
      struct stat info {};
      if (::fstat(fd.get(), &info) != 0) continue;
      const Key key{pid, info.st_ino};
      if (const auto at = known.find(key); at != known.end()) {
        there.emplace(key, std::move(at->second));
        known.erase(at);
        continue;
      }
      auto view = running::FlightView::map(fd);
      // Device hosts have it too.
      if (!view.ok() || view->board().pid.load(std::memory_order_acquire) != pid) continue;
      there.emplace(key, Known{std::move(*view), running::command_line(pid)});
    }
  }
  known = std::move(there);
}

RunningRank RunningRanks::State::describe(const Key& key, Known& one) {
  const auto& board = one.view.board();
  RunningRank rank;
  rank.job = running::text_in(board.job);
  rank.command = one.command;
  rank.pid = key.first;
  rank.rank = board.rank;
  rank.size = board.size;
  if (board.described.load(std::memory_order_acquire) != 0)
    rank.device = running::text_in(board.device);
  rank.active = board.active.load(std::memory_order_relaxed) != 0;
  rank.epoch = board.epoch.load(std::memory_order_relaxed);
  rank.recoveries = board.recoveries.load(std::memory_order_relaxed);
  rank.held_bytes = board.held_bytes.load(std::memory_order_relaxed);
  rank.seconds =
      std::chrono::duration<double>(SteadyClock::time() - TimePoint(board.began_ns)).count();
  rank.host_pid = board.host_pid.load(std::memory_order_relaxed);
  rank.host_state = host_state(rank.host_pid, rank.pid);
  describe_commands(one, rank);
  return rank;
}

void RunningRanks::State::describe_commands(Known& one, RunningRank& rank) {
  rank.recorded = one.view.capacity() != 0;
  if (!rank.recorded) return;
  auto commands = one.view.commands();
  // What a device host that was lost had under way it never ended.
  const auto host_since = one.view.board().host_since.load(std::memory_order_relaxed);
  std::erase_if(commands, [&](const auto& command) {
    return command.completed == 0 && command.issued < host_since;
  });
  const auto reading = scale.read();
  const auto now = ticks();
  const auto newest = commands.empty() ? 0 : commands.back().ticket;
  rank.commands = newest;
  auto since = one.looked;
  if (one.looked != 0) {
    const std::chrono::duration<double> time = reading.now() - one.time;
    rank.commands_per_second =
        static_cast<double>(newest - std::min(newest, one.newest)) / time.count();
  }
  // A record that is full begins later than its rank's work did.
  if (commands.size() == one.view.capacity() || since == 0)
    since = std::max(since, commands.empty() ? now : commands.front().issued);
  for (const auto& [queue, share] : running::busy_shares(commands, since, now))
    rank.queues.push_back({static_cast<int>(queue), share});
  const auto oldest = std::find_if(commands.begin(), commands.end(),
                                   [](const auto& command) { return command.completed == 0; });
  if (oldest != commands.end()) {
    rank.under_way = name_of(oldest->opcode);
    const std::chrono::duration<double> time = reading.now() - reading.time_of(oldest->issued);
    rank.under_way_seconds = std::max(0.0, time.count());
  }
  one.newest = newest;
  one.looked = now;
  one.time = reading.now();
}

std::vector<RunningRank> RunningRanks::look() {
  state_->find();
  std::vector<RunningRank> ranks;
  for (auto& [key, known] : state_->known) ranks.push_back(state_->describe(key, known));
  std::sort(ranks.begin(), ranks.end(), [](const RunningRank& a, const RunningRank& b) {
    return std::tie(a.job, a.rank, a.pid) < std::tie(b.job, b.rank, b.pid);
  });
  return ranks;
}

}  // namespace troupe
