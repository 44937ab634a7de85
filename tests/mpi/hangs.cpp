#include "mpi_tests.hpp"

namespace troupe::test {

/// A collective that one rank does not call ends at its deadline, on all ranks. Their device hosts
/// live on, whether or not a standby world is there.
TROUPE_MPI_CASE(absent) {
  c.world().barrier();
  const auto before = c.world().recoveries().size();
  const auto epoch = c.world().epoch();
  const auto host = active_host();
  const auto kept = c.device().alloc<double>(1000), data = c.device().alloc<double>(1000);
  c.device().fill(kept, 5.0).get();
  c.device().fill(data, 1.0).get();
  if (c.rank() != c.size() - 1) {
    const auto reduced = c.world().all_reduce(data, ReduceOp::sum);
    const auto reads = c.device().copy(data, kept);
    c.require(reduced.wait_for(kDeadline), "a collective past its deadline does not resolve");
    const auto code = reduced.wait().code();
    c.expect(code == Errc::timeout || code == Errc::world_reformed,
             "a collective past its deadline: " + std::string(to_string(code)));
    c.expect(!data.valid(), "what it was writing is not stale");
    c.require(reads.wait_for(kDeadline), "what reads its result does not resolve");
    c.expect(!reads.wait().ok(), "what reads its result succeeds");
  }
  c.require(settle(c, before + 1), "the world does not come back");
  c.expect_equal(active_host(), host, "the device host was replaced");
  c.expect(c.world().epoch().value > epoch.value, "the epoch did not change");
  const auto recoveries = c.world().recoveries();
  c.expect_equal(recoveries.size(), before + 1, "one absence is one recovery");
  c.expect_equal(recoveries.back().kind, "timeout",
                 "its kind is said to be " + recoveries.back().kind);
  (void)c.device().take_error();
}

/// After an absence the way over the loss of a device host is as quick as ever.
TROUPE_MPI_CASE(loss_after_absence) {
  absent(c);
  const auto before = c.world().recoveries().size();
  c.world().wait_for_standbys(kDeadline);
  const auto memory = c.world().standby_memory();
  c.expect(memory.has_value(), "nobody knows what the standby takes");
  if (c.device().info().engine == "cuda") {
    c.expect(memory.value_or(0) > 50u << 20 && memory.value_or(0) < 8ull << 30,
             "the standby takes " + std::to_string(memory.value_or(0)) + " bytes");
  }
  if (c.rank() == c.size() - 1) c.device().inject(memory::FaultKind::kill);
  c.require(settle(c, before + 1), "the world does not come back from a loss after that");
  const auto loss = c.world().recoveries().back();
  c.expect_equal(loss.kind, "kill", "the loss is said to be " + loss.kind);
  const bool promoted = c.runtime().config().text("standby") == "world";
  c.expect_equal((loss.form_ms == 0), promoted,
                 "forming the communicator took " + std::to_string(loss.form_ms) + " ms");
  (void)c.device().take_error();
}

/// A fault beside a collective whose peer never comes. Ranks of one host do not launch it; between
/// hosts it runs, and on a GPU no call reports the fault before it ends, which the deadline of
/// operations sees to.
TROUPE_MPI_CASE(hidden_fault) {
  c.world().barrier();
  const auto before = c.world().recoveries().size();
  const auto kept = c.device().alloc<double>(1000), data = c.device().alloc<double>(1000);
  c.device().fill(kept, 5.0).get();
  c.device().fill(data, 1.0).get();
  const bool gpu = c.device().info().engine == "cuda";
  c.world().barrier();  // a re-formation refuses fills
  if (c.first()) {
    const auto reduced = c.world().all_reduce(data, ReduceOp::sum);
    c.device().inject(gpu ? memory::FaultKind::illegal_address : memory::FaultKind::kill);
    c.require(reduced.wait_for(kDeadline), "the collective does not resolve");
    c.expect(!reduced.wait().ok(), "a collective of one rank alone succeeds");
  }
  c.require(settle(c, before + 1), "the world does not come back");
  c.expect_equal(c.device().download(kept), std::vector<double>(1000, 5.0),
                 "what nobody was writing has changed");
  (void)c.device().take_error();
}

/// Lanes that do not drain within the grace period cost the device host, of their rank alone where
/// no standby world is promoted.
TROUPE_MPI_CASE(stuck) {
  c.world().barrier();
  const auto before = c.world().recoveries().size();
  const auto host = active_host();
  // Many seconds of work, which nothing can interrupt.
  const std::int64_t n = c.device().info().engine == "cuda" ? 8192 : 1500;
  const auto a = c.device().alloc<double>(n * n), b = c.device().alloc<double>(n * n);
  c.device().fill(a, 0.5).get();
  c.device().fill(b, 0.0).get();
  std::vector<Future<void>> futures;
  if (c.first()) {
    for (int i = 0; i < 500; ++i)
      futures.push_back(c.device().blas().gemm(a, a, b, {.m = n, .n = n, .k = n}, 1.0, 1.0));
  }
  c.require(settle(c, before + 1), "the world does not come back");
  for (const auto& future : futures)
    c.require(future.wait_for(kDeadline), "an operation past its deadline does not resolve");
  c.expect_equal((active_host() != host), c.first(), "another device host than the stuck one went");
  c.expect(b.valid() != c.first(), "what it was writing is not stale");
  c.expect_equal(c.device().download(a.slice(0, 10)), std::vector<double>(10, 0.5),
                 "what nobody was writing has changed");
  const auto recoveries = c.world().recoveries();
  c.expect_equal(recoveries.size(), before + 1, "one rank that is stuck is one recovery");
  c.expect(recoveries.back().kind == "hang" && recoveries.back().rank == 0,
           "it is said to be " + recoveries.back().kind);
  (void)c.device().take_error();
}

}  // namespace troupe::test
