#include <unistd.h>

#include <algorithm>
#include <set>

#include "mpi_tests.hpp"

namespace troupe::test {
namespace {

using memory::FaultKind;

/// Orders a fault of these ranks' device hosts, of this rank's if it is among them.
void strike(Context& c, const std::vector<int>& victims, FaultKind kind) {
  if (std::find(victims.begin(), victims.end(), c.rank()) != victims.end()) c.device().inject(kind);
}

/// The faults that this engine can suffer.
std::vector<FaultKind> kinds(Context& c) {
  std::vector<FaultKind> list{FaultKind::kill, FaultKind::segv, FaultKind::exit, FaultKind::hang};
  if (c.device().info().engine == "cuda") {
    list.insert(list.end(), {FaultKind::illegal_address, FaultKind::trap, FaultKind::assertion,
                             FaultKind::misaligned});
  }
  return list;
}

/// Ranks that are there, each once.
std::vector<int> among(Context& c, std::initializer_list<int> wanted) {
  std::vector<int> ranks;
  for (const int rank : wanted) {
    const int there = rank % c.size();
    if (std::find(ranks.begin(), ranks.end(), there) == ranks.end()) ranks.push_back(there);
  }
  return ranks;
}

std::size_t known(Context& c) {
  return c.world().recoveries().size();
}

}  // namespace

/// One, several, rank 0's and all device hosts are lost, idle and in the middle of collectives;
/// whatever the cause, the world works again afterwards, and data that nobody was writing is
/// intact.
TROUPE_MPI_CASE(reformation) {
  const auto kept = c.device().alloc<std::int64_t>(100'000);
  c.device().fill<std::int64_t>(kept, 7 + c.rank()).get();
  std::vector<std::pair<std::vector<int>, FaultKind>> rounds;
  for (const auto kind : kinds(c)) rounds.push_back({among(c, {c.size() - 1}), kind});
  rounds.push_back({among(c, {0}), FaultKind::kill});
  rounds.push_back({among(c, {1, 2}), FaultKind::kill});
  rounds.push_back({among(c, {0, 1, 2, 3}), FaultKind::kill});
  for (std::size_t round = 0; round < rounds.size(); ++round) {
    const auto& [victims, kind] = rounds[round];
    const auto what = "round " + std::to_string(round) + " (" + std::string(to_string(kind)) +
                      " of " + std::to_string(victims.size()) + ")";
    c.world().barrier();  // what the others still check must not fail with the world
    const auto before = known(c);
    const auto epoch = c.world().epoch();
    std::vector<Future<void>> futures;
    const auto data = c.device().alloc<double>(10'000);
    c.device().fill(data, 1.0);
    for (int i = 0; i < 20; ++i) {
      if (i == 10 && round % 2 == 0) strike(c, victims, kind);
      futures.push_back(c.world().all_reduce(data, ReduceOp::max));
    }
    if (round % 2 != 0) strike(c, victims, kind);
    c.require(settle(c, before + victims.size()), what + ": the world does not come back");
    for (const auto& future : futures) {
      c.require(future.wait_for(kDeadline), what + ": a collective does not resolve");
      const auto code = future.wait().code();
      c.expect(code == Errc::ok || code == Errc::device_lost || code == Errc::world_reformed ||
                   code == Errc::stale,
               what + ": " + std::string(to_string(code)));
    }
    c.expect(c.world().epoch().value > epoch.value, what + ": the epoch did not change");
    const auto list = c.world().recoveries();
    for (std::size_t i = before; i < list.size(); ++i) {
      c.expect(std::find(victims.begin(), victims.end(), list[i].rank) != victims.end(),
               what + ": rank " + std::to_string(list[i].rank) + " is said to have failed (" +
                   list[i].kind + ")");
      c.expect_equal(list[i].kind, to_string(kind),
                     what + ": its kind is said to be " + list[i].kind);
    }
    // Faults that come together may be overcome together, but each is reported.
    c.expect_equal(list.size(), before + victims.size(),
                   what + ": " + std::to_string(list.size() - before) + " recoveries reported");
    c.expect(kept.valid(), what + ": an untouched buffer is stale");
    const auto values = c.device().download(kept);
    c.expect_equal(std::count(values.begin(), values.end(), 7 + c.rank()), kept.length(),
                   what + ": untouched data changed");
    (void)c.device().take_error();
  }
  // The same list everywhere.
  std::string mine;
  for (const auto& r : c.world().recoveries())
    mine += std::to_string(r.rank) + r.kind + std::to_string(r.epoch) + " ";
  for (const auto& other : c.world().gather_text(mine))
    c.expect_equal(other, mine, "the ranks report different recoveries");
}

/// A second fault in every phase of the recovery from a first one: of the same rank, of another, of
/// rank 0.
TROUPE_MPI_CASE(phases) {
  for (const auto name : kRecoveryPhases) {
    const std::string phase(name);
    for (const int second : among(c, {0, 1})) {
      const auto what = "a fault of rank " + std::to_string(second) + " in phase " + phase;
      const auto before = known(c);
      if (c.rank() == second)
        c.expect(c.world().inject_in_phase(FaultKind::kill, phase), "there is no phase " + phase);
      strike(c, among(c, {0}), FaultKind::kill);
      c.require(settle(c, before + 1), what + ": the world does not come back");
      (void)c.device().take_error();
    }
  }
  c.expect(!c.world().inject_in_phase(FaultKind::kill, "lunch"),
           "there is a phase that there is not");
}

/// A collective belongs to the epoch that the program has acknowledged.
TROUPE_MPI_CASE(epochs) {
  const auto x = c.device().alloc<float>(100);
  c.device().fill(x, 1.0f).get();
  const auto old = c.world().epoch();
  const auto before = known(c);
  c.world().barrier();
  strike(c, among(c, {1}), FaultKind::kill);
  const auto end = Clock::now() + kDeadline;
  while (known(c) == before && Clock::now() < end) std::this_thread::sleep_for(1ms);
  c.require(known(c) > before, "the world does not come back");
  // The new epoch is there, this program has not asked for it.
  c.expect_equal(c.world().epoch(), old, "the epoch changed behind the program's back");
  const auto late = c.world().all_reduce(x, ReduceOp::sum);
  c.require(late.wait_for(kDeadline), "a collective of an ended epoch does not resolve");
  c.expect_equal(late.wait().code(), Errc::world_reformed,
                 "a collective of an ended epoch: " + std::string(to_string(late.wait().code())));
  c.expect_equal(c.device().download(x), std::vector<float>(100, 1.0f),
                 "what is no collective does not care");
  const auto now = c.world().wait_active();
  c.expect(now.ok() && now->value == old.value + 1 && c.world().epoch() == *now,
           "wait_active() gives the next epoch");
  c.world().barrier();
  c.world().all_reduce(x, ReduceOp::sum).get();
  c.expect_equal(c.device().download(x), std::vector<float>(100, static_cast<float>(c.size())),
                 "an all_reduce in the new epoch");
  (void)c.device().take_error();
}

/// While nothing is to be done, all threads of a rank and of its device hosts sleep, and nothing
/// but their timers wakes them. A machine that is busy with other things makes neither untrue.
TROUPE_MPI_CASE(idle) {
  c.require(eventually([&] { return hosts().size() == 2 && c.world().standby_ready(); }),
            "an active and a standby device host");
  c.world().barrier();
  std::vector<pid_t> processes = {::getpid()};
  for (const auto& host : hosts()) processes.push_back(host.pid);

  // A thread that spins is never seen asleep.
  std::set<pid_t> seen_asleep = {::gettid()};
  std::string awake;
  const bool slept = eventually([&] {
    awake.clear();
    for (const auto process : processes) {
      for (const auto& thread : threads_of(process)) {
        if (thread.asleep) seen_asleep.insert(thread.id);
        if (!seen_asleep.contains(thread.id)) {
          awake += " " + thread.name + "(" + std::to_string(thread.id) + " of " +
                   std::to_string(process) + ")";
        }
      }
    }
    return awake.empty();
  });
  c.expect(slept, "threads that never sleep:" + awake);

  // A device host that looked at its ring instead of waiting for the bell would wake thousands of
  // times a second; its heart beats four times.
  constexpr double kPerSecond = 50;
  const auto wakeups = [&] {
    std::uint64_t sum = 0;
    for (const auto& host : hosts())
      for (const auto& thread : threads_of(host.pid)) sum += thread.wakeups;
    return sum;
  };
  const auto start = Clock::now();
  const auto before = wakeups();
  std::this_thread::sleep_for(1s);
  const auto woken = wakeups() - before;
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const double rate = static_cast<double>(woken) / seconds;
  c.report("wake-ups of rank 0's device hosts: " + std::to_string(rate) + " a second");
  // What the CUDA driver's and NCCL's own threads do is not for this test to say.
  c.expect(rate < kPerSecond || c.device().info().engine == "cuda",
           "idle device hosts wake " + std::to_string(rate) + " times a second");
}

}  // namespace troupe::test
