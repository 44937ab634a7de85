#include <numeric>

#include <troupe/sequence.hpp>

#include "mpi_tests.hpp"

// Other ranks' memory, read where it is by commands of this rank, between barriers of the devices.

namespace troupe::test {
namespace {

using memory::FaultKind;

std::vector<std::int64_t> counted(std::int64_t count, std::int64_t first) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), first);
  return values;
}
std::int64_t of_rank(int rank, std::int64_t round) {
  return 1'000'000 * (rank + 1) + 1000 * round;
}

Errc code_of(Context& c, const Future<void>& future, const std::string& what) {
  c.require(future.wait_for(kDeadline), what + " does not resolve");
  return future.wait().code();
}

}  // namespace

/// Each rank reads what the next one has written in this round, and nothing else, with barriers
/// alone between the writes and the reads; by calls, by sequences, and in groups.
TROUPE_MPI_CASE(maps) {
  constexpr std::int64_t kLength = 40'000;
  auto& device = c.device();
  const auto mine = device.alloc<std::int64_t>(kLength), here = device.alloc<std::int64_t>(kLength);
  const auto among = [&](Collectives& ranks, const std::string& what) {
    const auto all = ranks.map_all(mine);
    c.expect_equal(std::ssize(all), std::int64_t{ranks.size()}, what + ": so many are mapped");
    const int next = (ranks.rank() + 1) % ranks.size(), its_rank = ranks.job_rank(next);
    const auto& theirs = all[static_cast<std::size_t>(next)];
    c.expect(theirs.valid() && theirs.length() == kLength, what + ": the mapping");
    const auto step = [&] {
      ranks.device_barrier({mine, theirs});
      device.copy(theirs, here);
      ranks.device_barrier({theirs, mine});
    };
    const auto sequence = device.record(step);
    for (std::int64_t round = 0; round < 6; ++round) {
      device.fill(mine, of_rank(c.world().rank(), round));
      round % 2 == 0 ? step() : void(sequence.run());
      device.fill(mine, std::int64_t{-1});
      const auto got = device.download(here);
      c.expect_equal(
          std::count(got.begin(), got.end(), of_rank(its_rank, round)), kLength,
          what + ", round " + std::to_string(round) + ": it is " + std::to_string(got[0]));
    }
    const Future<void> last = ranks.device_barrier({});
    c.expect_equal(code_of(c, last, "a barrier"), Errc::ok, what + ": a barrier of no ranges");
  };
  among(c.world(), "the world");
  auto pairs = c.world().split(c.rank() / 2);
  among(pairs, "pairs");

  // Rows, out of a slice into a slice.
  device.upload<std::int64_t>(counted(kLength, of_rank(c.rank(), 0)), mine);
  const auto tokens = c.world().gather_values(mine.slice(100, 5'000).token());
  for (int peer = 0; peer < c.size(); ++peer) {
    const auto mapped = c.world().map<std::int64_t>(tokens[static_cast<std::size_t>(peer)]).get();
    device.fill(here, std::int64_t{-1});
    c.world().device_barrier({mine, mapped});
    device.copy_rows(mapped.slice(7, 4'000), here.slice(1, 300),
                     {.rows = 30, .length = 3, .source_leading = 70, .destination_leading = 10});
    c.world().device_barrier({mine, mapped});
    std::vector<std::int64_t> wanted(static_cast<std::size_t>(kLength), -1);
    for (std::int64_t i = 0; i < 30; ++i) {
      for (std::int64_t j = 0; j < 3; ++j)
        wanted[static_cast<std::size_t>(1 + 10 * i + j)] = of_rank(peer, 0) + 107 + 70 * i + j;
    }
    c.expect_equal(device.download(here), wanted, "rows of rank " + std::to_string(peer));
    c.expect_equal(code_of(c, device.copy_rows(mapped, here, {.rows = 2, .length = 5'000}), "rows"),
                   Errc::invalid, "rows beyond the end");
  }
  (void)device.take_error();

  // A buffer stays while it is mapped, also when its owner has let go of it, and goes then.
  auto gone = device.alloc<std::int64_t>(1'000);
  device.upload<std::int64_t>(counted(1'000, of_rank(c.rank(), 1)), gone).get();
  const auto freed = c.world().gather_values(gone.token());
  const int next = (c.rank() + 1) % c.size();
  const auto token = freed[static_cast<std::size_t>(next)];
  auto kept = c.world().map<std::int64_t>(token).get();
  c.world().barrier();
  gone = {};
  const auto reuse = device.alloc<std::int64_t>(1'000);
  device.fill(reuse, std::int64_t{0}).get();
  c.world().barrier();
  const auto saved = here.slice(0, 1'000);
  device.copy(kept, saved);
  c.expect_equal(device.download(saved), counted(1'000, of_rank(next, 1)), "what is mapped stays");
  kept = {};
  c.expect(
      eventually([&] { return c.world().map<std::int64_t>(token).wait().code() == Errc::stale; }),
      "what is mapped no longer goes");
  (void)device.take_error();

  // Wrong tokens and ranges.
  auto bad = tokens[static_cast<std::size_t>(next)];
  bad.generation += 1;
  c.expect_equal(c.world().map<std::int64_t>(bad).wait().code(), Errc::stale, "no such contents");
  bad = tokens[static_cast<std::size_t>(next)];
  c.expect_equal(c.world().map<double>(bad).wait().code(), Errc::invalid, "another dtype");
  bad.offset = kLength;
  c.expect_equal(c.world().map<std::int64_t>(bad).wait().code(), Errc::invalid, "beyond the end");
  bad.rank = c.size();
  c.expect_equal(c.world().map<std::int64_t>(bad).wait().code(), Errc::peer_lost, "of no rank");
  c.expect_equal(code_of(c, device.copy(MappedRef<std::int64_t>(), here), "a copy of nothing"),
                 Errc::stale, "an empty reference");
  auto bundle = c.world().bundle();
  c.expect_equal(code_of(c, bundle.device_barrier({mine}), "a barrier in a bundle"),
                 Errc::unsupported, "a barrier in a bundle");
  (void)device.take_error();
  c.world().barrier();
}

/// Where bytes take another way there is nothing to map: all ranks are told.
TROUPE_MPI_CASE(maps_refused) {
  const auto mine = c.device().alloc<float>(100);
  const auto tokens = c.world().gather_values(mine.token());
  const auto next = static_cast<std::size_t>((c.rank() + 1) % c.size());
  c.expect_equal(c.world().map<float>(tokens[next]).wait().code(), Errc::unsupported, "map");
  (void)c.device().take_error();
  try {
    (void)c.world().map_all(mine);
    c.expect(false, "all ranks map one another's memory");
  } catch (const CollectiveException& e) {
    c.expect_equal(e.code(), Errc::unsupported, std::string("map_all: ") + e.what());
  }
  c.expect(c.device().take_error().ok(), "whoever asks for all deals with it");
}

/// Device hosts die between the reads: a mapping is of its epoch, and steps that map again go on.
TROUPE_MPI_CASE(maps_faults) {
  constexpr std::int64_t kLength = 2'000, kSteps = 20;
  auto& device = c.device();
  auto mine = device.alloc<std::int64_t>(kLength), next = device.alloc<std::int64_t>(kLength);
  device.fill(mine, of_rank(c.rank(), 0));
  device.fill(next, std::int64_t{0}).get();
  Checkpoint state(device);
  state.add("mine", mine);
  state.add_scratch(next);
  const auto right = static_cast<std::size_t>((c.rank() + 1) % c.size());
  std::vector<MappedRef<std::int64_t>> all;
  Epoch epoch(0);
  const auto map = [&] {
    if (!all.empty() && all[right].valid()) return;
    all = c.world().map_all(mine);
    epoch = c.world().epoch();
  };
  std::set<std::int64_t> strikes{4, 9, 10, 16};
  const auto step = [&](std::int64_t i, const std::function<void()>& strike) {
    map();
    c.world().device_barrier({mine, all[right]});
    device.copy(all[right], next);
    c.world().device_barrier({mine, all[right]});
    if (strikes.erase(i) != 0 && c.rank() == i % c.size()) strike();
    device.copy(next, mine);
    return (i + 1) % kSteps != 0 ? Step::again : Step::done;
  };
  const auto expect = [&](std::int64_t steps) {
    const auto wanted = of_rank(static_cast<int>((c.rank() + steps) % c.size()), 0);
    const auto got = device.download(mine);
    c.expect_equal(std::count(got.begin(), got.end(), wanted), kLength,
                   "after " + std::to_string(steps) + " steps it is " + std::to_string(got[0]));
  };
  c.world().run(state,
                [&](std::int64_t i) { return step(i, [&] { device.inject(FaultKind::kill); }); },
                {.commit_every = 3});
  expect(kSteps);
  // The same by steps that are recorded.
  strikes = {kSteps + 7, kSteps + 12};
  c.world().run(state, [&](std::int64_t i) { return step(i, [] { (void)kill_active(); }); },
                {.first_step = kSteps, .commit_every = 4, .record = true});
  expect(2 * kSteps);
  c.expect(c.world().recoveries().size() >= 3, "no fault was overcome");

  // Behind another fault the old mapping is refused, and so is a sequence that reads by it.
  map();
  const auto sequence = device.record([&] { device.copy(all[right], next); });
  sequence.run().get();
  c.world().barrier();
  const auto before = c.world().recoveries().size();
  if (c.first()) c.expect(kill_active(), "there is no device host to kill");
  c.require(settle(c, before + 1), "the world does not come back");
  for (auto* buffer : {&mine, &next}) {
    if (!buffer->valid()) buffer->renew();
  }
  c.expect(!all[right].valid(), "a mapping outlives its epoch");
  c.expect_equal(code_of(c, device.copy(all[right], next), "a copy"), Errc::stale, "a copy");
  c.expect_equal(code_of(c, c.world().device_barrier({all[right]}), "a barrier"), Errc::stale,
                 "a barrier");
  c.expect_equal(code_of(c, sequence.run(), "a sequence"), Errc::stale, "a sequence");
  (void)device.take_error();
  map();
  device.copy(all[right], next).get();
  c.expect(epoch == c.world().epoch(), "it is mapped again");
  c.world().barrier();
}

}  // namespace troupe::test
