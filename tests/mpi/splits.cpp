#include <algorithm>
#include <numeric>

#include "mpi_tests.hpp"

// Groups: who is in them, several at once, and what faults do to them.

namespace troupe::test {
namespace {

using memory::FaultKind;

std::vector<int> ranks_of(Context& c, const Collectives& group) {
  std::vector<int> ranks;
  for (int rank = 0; rank < group.size(); ++rank) ranks.push_back(group.job_rank(rank));
  c.expect(group.size() == 0 || ranks[static_cast<std::size_t>(group.rank())] ==
                                    c.world().job_rank(c.world().rank()),
           "a rank of a group is not at its place");
  return ranks;
}

/// A sum over the group, and one of its host, are those of its ranks.
void expect_sum(Context& c, Collectives& group, const std::string& what) {
  const auto ranks = ranks_of(c, group);
  const auto expected = std::accumulate(ranks.begin(), ranks.end(), std::int64_t{0});
  const std::int64_t mine = c.world().job_rank(c.world().rank());
  const auto data = c.device().alloc<std::int64_t>(100);
  c.device().fill(data, mine);
  const auto reduced = group.all_reduce(data, ReduceOp::sum);
  c.require(reduced.wait_for(kDeadline), what + ": an all_reduce of a group does not resolve");
  c.expect(reduced.wait().ok(),
           what + ": " + (reduced.wait().ok() ? "" : reduced.wait().error().to_string()));
  if (!reduced.wait().ok()) return;
  for (const auto value : c.device().download(data))
    c.expect_equal(
        value, expected,
        what + ": a sum of " + std::to_string(value) + ", not " + std::to_string(expected));
  const auto values = group.gather_values(mine);
  c.expect_equal(std::accumulate(values.begin(), values.end(), std::int64_t{0}), expected,
                 what + ": the host's sum");
}

/// Rows and columns of a grid with two columns.
struct Grid {
  Group row, column;
  explicit Grid(Context& c)
      : row(c.world().split(c.world().rank() / 2)), column(c.world().split(c.world().rank() % 2)) {}
  void expect(Context& c, const std::string& what) {
    expect_sum(c, row, what + ", row");
    expect_sum(c, column, what + ", column");
  }
};

/// A call that is refused before it submits anything leaves an unread error like any other.
void refusals(Context& c, Group& group) {
  auto& device = c.device();
  const auto data = device.alloc<float>(8);
  const auto code_of = [&](const std::function<void()>& call) {
    try {
      call();
    } catch (const Exception& e) {
      return e.code();
    }
    return Errc::ok;
  };
  (void)device.take_error();
  const auto is_heard = [&](const std::function<void()>& call, const std::string& what) {
    call();
    const auto unread = device.unread_errors();
    c.expect(unread.count == 1 && unread.first.code == Errc::invalid,
             what + ": " + std::to_string(unread.count) + " errors");
    c.expect_equal(device.take_error().code(), Errc::invalid, what + ": take_error");
  };
  is_heard([&] { group.all_reduce(data, ReduceOp::sum); }, "an all_reduce of an empty group");
  is_heard([&] { group.send(data, Rank(0)); }, "a message in an empty group");
  is_heard([&] { (void)group.all_gather(data, data.slice(0, 1)); }, "an all_gather of one");
  c.expect_equal(code_of([&] {
                   (void)device.record([&] {
                     device.fill(data, 1.0f);
                     group.all_reduce(data, ReduceOp::sum);
                   });
                 }),
                 Errc::invalid, "a recording leaves the all_reduce of an empty group out");
  Future<void> kept;
  is_heard(
      [&] {
        auto bundle = c.world().bundle();
        kept = bundle.all_reduce(data, ReduceOp::sum);
      },
      "a bundle that is never submitted");
  c.expect(kept.ready() && kept.wait().code() == Errc::invalid, "its future");
  c.expect_equal(code_of([&] {
                   (void)device.record([&] {
                     device.fill(data, 1.0f);
                     auto bundle = c.world().bundle();
                     bundle.all_reduce(data, ReduceOp::sum);
                   });
                 }),
                 Errc::invalid, "a recording leaves out a bundle that is never submitted");
  try {
    auto bundle = c.world().bundle();
    kept = bundle.all_reduce(data, ReduceOp::sum);
    throw 1;
  } catch (int) {
  }
  c.expect(kept.ready() && device.unread_errors().count == 0,
           "a bundle that an exception takes away is an error");
  c.expect_equal(code_of([&] {
                   (void)device.record([&] {
                     device.fill(data, 1.0f);
                     c.world().device(Rank(c.world().rank())).nop();
                   });
                 }),
                 Errc::unsupported, "a request to a rank's device is recorded");
  c.expect_equal(device.unread_errors().count, 0, "there is an error behind");
}

void empty_group(Context& c, Group& group) {
  refusals(c, group);
  const auto data = c.device().alloc<float>(8);
  c.expect(!group && group.rank() == -1 && group.size() == 0, "an empty group has ranks");
  c.expect_equal(group.all_reduce(data, ReduceOp::sum).wait().code(), Errc::invalid,
                 "an all_reduce of an empty group");
  c.expect_equal(group.send(data, Rank(0)).wait().code(), Errc::invalid,
                 "a message in an empty group");
  try {
    group.barrier();
    c.expect(false, "a barrier of an empty group");
  } catch (const Exception& e) {
    c.expect_equal(e.code(), Errc::invalid,
                   "a barrier of an empty group: " + std::string(e.what()));
  }
  try {
    (void)group.split(0);
    c.expect(false, "an empty group can be split");
  } catch (const Exception& e) {
    c.expect_equal(e.code(), Errc::invalid, "a split of an empty group: " + std::string(e.what()));
  }
  (void)c.device().take_error();
}

/// A group of no world: whatever is called on it throws.
void never_made(Context& c, Group& group) {
  const auto data = c.device().alloc<float>(8);
  c.expect(!group && group.rank() == -1 && group.size() == 0, "a group that was never made");
  const auto throws = [&](const std::function<void()>& call, const std::string& what) {
    try {
      call();
      c.expect(false, what + " of a group that was never made");
    } catch (const Exception& e) {
      c.expect_equal(e.code(), Errc::invalid, what + ": " + e.what());
    }
  };
  throws([&] { group.all_reduce(data, ReduceOp::sum); }, "an all_reduce");
  throws([&] { group.send(data, Rank(0)); }, "a message");
  throws([&] { group.barrier(); }, "a barrier");
  throws([&] { (void)group.split(0); }, "a split");
  throws(
      [&] {
        auto bundle = group.bundle();
        bundle.all_reduce(data, ReduceOp::sum);
        bundle.submit();
      },
      "a bundle");
}

/// What does not fit the group is wrong, whatever the world is like.
void wrong_use(Context& c, Group& group) {
  const auto data = c.device().alloc<float>(8);
  c.device().fill(data, 1.0f);
  const auto past = group.broadcast(data, Rank(group.size()));
  c.require(past.wait_for(kDeadline), "a root outside of the group does not resolve");
  c.expect_equal(past.wait().code(), Errc::invalid, "a root outside of the group");
  const auto to = c.device().alloc<float>(8 * c.world().size() + 8);
  const auto gathered = group.all_gather(data, to);
  c.expect(gathered.wait().code() == Errc::invalid &&
               gathered.wait().error().message.find("a group of " + std::to_string(group.size())) !=
                   std::string::npos,
           "an all_gather of the wrong length");
  const auto different =
      group.all_reduce(group.rank() == 0 ? data.slice(0, 4) : data, ReduceOp::sum);
  c.require(different.wait_for(kDeadline), "collectives that differ in a group do not resolve");
  c.expect(group.size() == 1 || different.wait().code() == Errc::invalid,
           "collectives that differ in a group");
  expect_sum(c, group, "after wrong use");
  (void)c.device().take_error();
}

std::size_t known(Context& c) {
  return c.world().recoveries().size();
}

void strike(Context& c, int victim, FaultKind kind) {
  if (c.world().rank() == victim % c.world().size()) c.device().inject(kind);
}

}  // namespace

/// Colours, keys, groups of groups, several at once, and how many come and go.
TROUPE_MPI_CASE(splits) {
  auto& world = c.world();
  const int me = world.rank(), size = world.size();
  auto all = world.split(7, -me);
  std::vector<int> backwards(static_cast<std::size_t>(size));
  std::iota(backwards.rbegin(), backwards.rend(), 0);
  c.expect_equal(ranks_of(c, all), backwards, "keys do not order a group");
  expect_sum(c, all, "all");
  auto some = world.split(me == 0 ? -1 : me % 2);
  if (me == 0) {
    empty_group(c, some);
  } else {
    c.expect(static_cast<bool>(some), "a group is empty");
    for (const int rank : ranks_of(c, some))
      c.expect(rank % 2 == me % 2 && rank != 0, "a rank of another colour is in the group");
    expect_sum(c, some, "some");
    wrong_use(c, some);
  }
  Group never;
  never_made(c, never);

  Grid grid(c);
  grid.expect(c, "grid");
  auto cell = grid.row.split(grid.row.rank());
  c.expect_equal(cell.size(), 1, "a group of a group of one");
  expect_sum(c, cell, "cell");
  auto again = all.split(all.rank() / 2);
  expect_sum(c, again, "a group of a group");
  // Collectives of several groups in one stream, none waited for.
  const auto data = c.device().alloc<double>(1000);
  c.device().fill(data, 1.0);
  double expected = 1;
  for (int i = 0; i < 20; ++i) {
    grid.row.all_reduce(data, ReduceOp::sum), expected *= grid.row.size();
    grid.column.all_reduce(data, ReduceOp::avg);
    world.all_reduce(data, ReduceOp::max);
    all.broadcast(data, Rank(i % size));
    if (i % 4 == 3) c.device().blas().scal(1.0 / expected, data), expected = 1;
  }
  // Rows of different lengths: the longest wins.
  if (size % 2 == 0) {
    for (const double value : c.device().download(data))
      c.expect_equal(value, expected, "a stream of collectives of several groups went wrong");
  }
  for (int i = 0; i < 30; ++i) {
    auto passing = world.split(me % (1 + i % 3), i % 2 == 0 ? me : -me);
    if (i % 10 == 0) expect_sum(c, passing, "a group that comes and goes");
  }
  grid.expect(c, "grid afterwards");
}

/// A device host dies before, during and right after a split: the group is there all the same.
TROUPE_MPI_CASE(split_faults) {
  auto& world = c.world();
  for (int round = 0; round < 6; ++round) {
    const auto what = "round " + std::to_string(round);
    const auto before = known(c);
    world.barrier();
    if (round % 3 == 0) strike(c, round, FaultKind::kill);
    auto group = world.split(world.rank() % 2);
    if (round % 3 == 1) strike(c, round, FaultKind::kill);
    auto second = world.split(0, -world.rank());
    if (round % 3 == 2) strike(c, round, FaultKind::kill);
    auto third = group.split(0);
    c.require(settle(c, before + 1), what + ": the world does not come back");
    expect_sum(c, group, what + ", first");
    expect_sum(c, second, what + ", second");
    expect_sum(c, third, what + ", third");
    (void)c.device().take_error();
  }
}

/// Groups are there again after a recovery, whoever died and however it was overcome.
TROUPE_MPI_CASE(group_faults) {
  auto& world = c.world();
  Grid grid(c);
  auto all = world.split(0, -world.rank());
  auto inner = all.split(all.rank() / 2);
  for (int round = 0; round < 4; ++round) {
    const auto what = "round " + std::to_string(round);
    // Once from the standbys' world, once without waiting for it.
    if (c.runtime().config().text("standby") == "world" && round % 2 == 0)
      world.wait_for_standbys(kDeadline);
    const auto before = known(c);
    world.barrier();
    const auto data = c.device().alloc<double>(1000);
    c.device().fill(data, 1.0);
    std::vector<Future<void>> futures;
    for (int i = 0; i < 10; ++i) {
      if (i == 5) strike(c, round, FaultKind::kill);
      futures.push_back(grid.row.all_reduce(data, ReduceOp::max));
      futures.push_back(grid.column.all_reduce(data, ReduceOp::max));
      futures.push_back(world.all_reduce(data, ReduceOp::max));
    }
    c.require(settle(c, before + 1), what + ": the world does not come back");
    for (const auto& future : futures)
      c.require(future.wait_for(kDeadline), what + ": a collective of a group does not resolve");
    grid.expect(c, what);
    expect_sum(c, all, what + ", all");
    expect_sum(c, inner, what + ", inner");
    (void)c.device().take_error();
    if (round == 1) {  // one that others let go of
      all = Group();
      all = world.split(0, -world.rank());
    }
  }
}

/// A run whose steps use groups that it has made itself: after a fault it goes on from the last
/// commit, with the numbers that it would have without one.
TROUPE_MPI_CASE(groups_in_run) {
  auto& world = c.world();
  auto& device = c.device();
  auto x = device.alloc<double>(100), part = device.alloc<double>(100);
  Checkpoint state(device);
  std::optional<Grid> grid;
  std::int64_t executed = 0;
  const RunOptions options{.commit_every = 10, .prepare = [&] {
                             if (world.epoch().value == 1) strike(c, 1, FaultKind::kill);
                             grid.emplace(c);
                             device.fill(x, 1.0 + world.rank());
                             state.add("x", x);
                             state.add_scratch(part);
                           }};
  world.run(
      state,
      [&](std::int64_t i) {
        if (executed++ == 25) strike(c, 0, FaultKind::kill);
        grid->row.all_reduce(x, part, ReduceOp::avg);
        device.blas().axpy(0.25, part, x);
        grid->column.all_reduce(x, part, ReduceOp::avg);
        device.blas().axpy(0.5, part, x);
        return i + 1 < 40 ? Step::again : Step::done;
      },
      options);
  // The same on the host.
  const int size = world.size();
  std::vector<double> host(static_cast<std::size_t>(size));
  std::iota(host.begin(), host.end(), 1.0);
  const auto average = [&](const std::function<int(int)>& colour, double factor) {
    auto next = host;
    for (int rank = 0; rank < size; ++rank) {
      double sum = 0;
      int count = 0;
      for (int other = 0; other < size; ++other) {
        if (colour(other) != colour(rank)) continue;
        sum += host[static_cast<std::size_t>(other)];
        ++count;
      }
      next[static_cast<std::size_t>(rank)] += factor * sum / count;
    }
    host = next;
  };
  for (int i = 0; i < 40; ++i) {
    average([](int rank) { return rank / 2; }, 0.25);
    average([](int rank) { return rank % 2; }, 0.5);
  }
  const auto expected = host[static_cast<std::size_t>(world.rank())];
  for (const auto value : device.download(x))
    c.expect(
        std::abs(value - expected) <= 1e-12 * expected,
        "a run over groups gives " + std::to_string(value) + ", not " + std::to_string(expected));
  c.expect(world.recoveries().size() >= 2, "no fault was overcome");
}

/// --on-loss shrink: while a rank is out of the world the others let go of a group that it has.
/// When it is back that group is gone, and all others are there.
TROUPE_MPI_CASE(group_gone) {
  auto& world = c.world();
  const bool lost = world.rank() == 1;
  auto gone = world.split(0), kept = world.split(0, -world.rank());
  const auto until = [&](const std::string& kind) {
    const auto end = Clock::now() + kDeadline;
    const auto has = [&] {
      const auto list = world.recoveries();
      return std::any_of(list.begin(), list.end(), [&](const auto& r) { return r.kind == kind; });
    };
    while (!has() && Clock::now() < end) {
      (void)world.wait_active();
      std::this_thread::sleep_for(1ms);
    }
    c.require(has(), "no recovery of the kind " + kind);
    (void)world.wait_active();
    (void)c.device().take_error();
  };
  world.barrier();
  strike(c, 1, FaultKind::kill);
  until("failed");
  if (!lost) gone = Group();
  until("rejoin");
  c.require(settle(c, 2), "the world is not whole again");
  (void)c.device().take_error();
  expect_sum(c, kept, "a group that all have kept");
  if (lost) {
    c.expect(gone.rank() == -1 && gone.size() == 0, "a group that is gone has ranks");
    const auto data = c.device().alloc<float>(8);
    c.device().fill(data, 1.0f);
    const auto refused = gone.all_reduce(data, ReduceOp::sum), sent = gone.send(data, Rank(0));
    for (const auto* one : {&refused, &sent}) {
      c.require(one->wait_for(kDeadline), "a collective of a group that is gone does not resolve");
      c.expect_equal(one->wait().code(), Errc::stale, "a collective of a group that is gone");
    }
    const auto throws = [&](const std::function<void()>& call, const std::string& what) {
      try {
        call();
        c.expect(false, what + " of a group that is gone");
      } catch (const Exception& e) {
        c.expect_equal(e.code(), Errc::stale, what + " of a group that is gone: " + e.what());
      }
    };
    throws([&] { gone.barrier(); }, "a barrier");
    throws([&] { (void)gone.split(0); }, "a split");
  }
  auto fresh = world.split(0);
  c.expect_equal(fresh.size(), world.size(), "a split of the world that is whole again");
  expect_sum(c, fresh, "a new group");
}

/// --on-loss shrink: a rank that is lost is missing in its groups, and in them again when it is
/// back.
TROUPE_MPI_CASE(group_members) {
  auto& world = c.world();
  const int me = world.rank(), all = world.size();
  auto halves = world.split(me % 2), backwards = world.split(0, -me);
  const auto until = [&](const std::string& kind, const std::string& what) {
    const auto end = Clock::now() + kDeadline;
    const auto has = [&] {
      const auto list = world.recoveries();
      return std::any_of(list.begin(), list.end(), [&](const auto& r) { return r.kind == kind; });
    };
    while (!has() && Clock::now() < end) {
      (void)world.wait_active();
      std::this_thread::sleep_for(1ms);
    }
    c.require(has(), what);
    (void)world.wait_active();
    (void)c.device().take_error();
  };
  world.barrier();
  strike(c, 1, FaultKind::kill);
  until("failed", "the loss goes unnoticed");
  const bool back = c.runtime().config().duration("rejoin-after").count() != 0;
  if (!back && me == 1) {
    c.expect(world.spectator() && halves.rank() == -1 && backwards.size() == 0,
             "a spectator is in its groups");
    return;
  }
  if (!back) {
    c.expect(backwards.size() == all - 1 && backwards.job_rank(0) == all - 1,
             "the group is not what is left of it");
    for (const int rank : ranks_of(c, halves))
      c.expect(rank % 2 == me % 2 && rank != 1, "a lost rank is in its group");
    expect_sum(c, halves, "half of those that are left");
    expect_sum(c, backwards, "all that are left");
    auto fresh = world.split(0);
    c.expect_equal(fresh.size(), all - 1, "a split of a smaller world");
    expect_sum(c, fresh, "a new group");
    return;
  }
  until("rejoin", "the lost rank does not come back");
  c.require(settle(c, 2), "the world is not whole again");
  (void)c.device().take_error();
  c.expect(halves.size() == (all + 1 - me % 2) / 2 && backwards.size() == all,
           "a rank that is back is not in its groups");
  expect_sum(c, halves, "half, again");
  expect_sum(c, backwards, "all, again");
}

}  // namespace troupe::test
