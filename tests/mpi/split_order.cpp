#include "mpi_tests.hpp"

// Splits in which ranks disagree, and one that a fault interrupts.

namespace troupe::test {

/// One rank splits another communicator than the rest: the same error on all ranks, at once.
TROUPE_MPI_CASE(split_disagreement) {
  auto halves = c.world().split(c.world().rank() % 2);
  const auto began = Clock::now();
  try {
    (void)(c.world().rank() == 0 ? halves.split(0) : c.world().split(0));
  } catch (const CollectiveException& e) {
    const std::string text = e.what();
    if (text.find("rank 0: split of group") == std::string::npos || e.code() != Errc::invalid ||
        Clock::now() - began > 10s)
      throw CollectiveException({Errc::internal, 0, "another error, or late: " + text});
    throw;
  }
  throw CollectiveException({Errc::internal, 0, "ranks that split different groups go on"});
}

/// One rank splits the world once more than the others, who go on: they wait in MPI, where only the
/// end of the job is heard.
TROUPE_MPI_CASE(split_counts) {
  (void)c.world().split(0);
  if (c.world().rank() == 1) (void)c.world().split(0);
  c.world().barrier();
  throw CollectiveException({Errc::internal, 0, "ranks that split once and twice go on"});
}

/// The world ends while its ranks split, again and again: each split is made by all of them or by
/// none, so that what they call next is the same.
TROUPE_MPI_CASE(split_at_the_end) {
  auto& world = c.world();
  std::vector<Group> groups;
  const auto end = Clock::now() + 60s;
  for (int i = 0; Clock::now() < end; ++i) {
    if (i == 3 && world.rank() == 1) (void)c.device().inject(memory::FaultKind::kill);
    try {
      groups.push_back(world.split(i % 2 == 0 ? 0 : world.rank()));
    } catch (const Exception& e) {
      if (e.code() == Errc::world_reformed) continue;
      for (const auto made : world.gather_values(std::ssize(groups)))
        c.expect_equal(made, std::ssize(groups), "some ranks have split more often than others");
      throw;
    }
  }
  c.expect(false, "the world outlived its budget");
}

/// In a run a fault meets some ranks in a split to which the others will not come: all repeat it.
TROUPE_MPI_CASE(split_interrupted) {
  auto& world = c.world();
  auto& device = c.device();
  auto x = device.alloc<double>(100);
  device.fill(x, 1.0).get();
  Checkpoint state(device);
  state.add("x", x);
  int visits = 0;
  auto group = world.split(0);
  world.run(state,
            [&](std::int64_t i) {
              if (i == 6) world.barrier();
              if (i == 6 && ++visits == 1 && world.rank() == world.size() - 1) {
                device.inject(memory::FaultKind::kill);
                world.all_reduce(x, ReduceOp::max).get();  // in which the others are not
              }
              if (i == 6) group = world.split(0, -world.rank());
              group.all_reduce(x, ReduceOp::max);
              return i < 9 ? Step::again : Step::done;
            },
            {.commit_every = 3});
  c.expect(visits == 2 && world.recoveries().size() == 1, "a split that was interrupted");
  c.expect_equal(group.job_rank(0), world.size() - 1, "the group is not that of the second split");
  const auto ranks = device.alloc<std::int64_t>(10);
  device.fill(ranks, std::int64_t{1});
  group.all_reduce(ranks, ReduceOp::sum).get();
  for (const auto value : device.download(ranks))
    c.expect_equal(value, world.size(), "a sum over a group whose split was interrupted");
}

}  // namespace troupe::test
