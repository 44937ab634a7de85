#include <algorithm>
#include <random>

#include "mpi_tests.hpp"

namespace troupe::test {
namespace {

using memory::FaultKind;

/// What every element of rank `rank` is in `round`.
std::int64_t value_of(int rank, int round) {
  return 1000 * (round + 1) + rank;
}

bool all_are(const std::vector<std::int64_t>& values, std::int64_t wanted) {
  return std::all_of(values.begin(), values.end(), [&](auto value) { return value == wanted; });
}

}  // namespace

/// Device hosts die at the destination and at the source in the middle of transfers: a transfer
/// that succeeded is right in every byte, the destination of one that failed is what it was or is
/// stale, and nothing else has changed.
TROUPE_MPI_CASE(token_faults) {
  constexpr std::int64_t kLength = 3'000'000;
  constexpr std::int64_t kUntouched = -5;
  constexpr int kRounds = 12;
  const int peer = (c.rank() + 1) % c.size();
  const auto bystander = c.device().alloc<std::int64_t>(100'000);
  c.device().fill(bystander, kUntouched).get();
  auto source = c.device().alloc<std::int64_t>(kLength);
  auto fetched = c.device().alloc<std::int64_t>(kLength);
  auto box = c.device().alloc<std::int64_t>(kLength);
  std::mt19937 random(7);
  int succeeded = 0, failed = 0;
  for (int round = 0; round < kRounds; ++round) {
    const auto what = "round " + std::to_string(round);
    const int victim = static_cast<int>(random()) & (c.size() - 1);
    const auto pause = std::chrono::microseconds(random() % 150'000);
    for (auto* buffer : {&source, &fetched, &box}) {
      if (!buffer->valid()) buffer->renew();
    }
    c.device().fill(source, value_of(c.rank(), round)).get();
    c.device().fill(fetched, kUntouched).get();
    c.device().fill(box, kUntouched).get();
    const auto sources = c.world().gather_values(source.token());
    const auto boxes = c.world().gather_values(box.token());
    const auto before = c.world().recoveries().size();
    c.world().barrier();
    const auto fetch = c.world().fetch(sources[static_cast<std::size_t>(peer)], fetched);
    const auto put = c.world().put(source, boxes[static_cast<std::size_t>(peer)]);
    if (victim == c.rank()) {
      std::this_thread::sleep_for(pause);
      c.expect(kill_active(), "there is no device host to kill");
    }
    c.require(settle(c, before + 1), what + ": the world does not come back");
    c.require(fetch.wait_for(kDeadline) && put.wait_for(kDeadline),
              what + ": a transfer does not resolve");
    for (const auto& future : {fetch, put}) {
      const auto code = future.wait().code();
      c.expect(code == Errc::ok || code == Errc::device_lost || code == Errc::world_reformed ||
                   code == Errc::stale || code == Errc::peer_lost,
               what + ": " + (code == Errc::ok ? "" : future.wait().error().to_string()));
      (code == Errc::ok ? succeeded : failed) += 1;
    }
    // Whether its put succeeded the other rank knows.
    const auto puts = c.world().gather_values<int>(put.wait().ok());
    const int writer = (c.rank() + c.size() - 1) % c.size();
    const auto intact = [&](const GpuRef<std::int64_t>& buffer, bool arrived, std::int64_t wanted,
                            const std::string& which) {
      if (!buffer.valid()) return c.expect(!arrived, what + ": " + which + " is stale");
      const auto values = c.device().download(buffer);
      c.expect(all_are(values, wanted) || (!arrived && all_are(values, kUntouched)),
               what + ": " + which + (arrived ? " is wrong" : " is torn"));
    };
    intact(fetched, fetch.wait().ok(), value_of(peer, round), "the destination of a fetch");
    intact(box, puts[static_cast<std::size_t>(writer)] != 0, value_of(writer, round),
           "the destination of a put");
    c.expect(source.valid() && all_are(c.device().download(source), value_of(c.rank(), round)),
             what + ": a source has changed");
    c.expect(bystander.valid() && all_are(c.device().download(bystander), kUntouched),
             what + ": a bystander has changed");
    (void)c.device().take_error();
    c.world().barrier();
  }
  c.report("rank 0: " + std::to_string(succeeded) + " transfers succeeded, " +
           std::to_string(failed) + " failed");

  // A buffer that is being written when its device host dies is gone, for others too.
  auto doomed = c.device().alloc<std::int64_t>(kLength);
  std::vector<GpuToken> tokens;
  bool gone = false;
  for (int attempt = 0; attempt < 20 && !gone; ++attempt) {  // the writes may be done in time
    const auto before = c.world().recoveries().size();
    c.device().fill(doomed, kUntouched).get();
    tokens = c.world().gather_values(doomed.token());
    if (c.rank() == 0) {
      for (int i = 0; i < 100; ++i) c.device().fill(doomed, std::int64_t{i});
      c.device().inject(memory::FaultKind::kill);
    }
    c.require(settle(c, before + 1), "the world does not come back");
    gone = c.world().gather_values(!doomed.valid())[0];
  }
  if (c.rank() != 0) {
    const auto late =
        c.world().fetch(tokens[0], fetched.valid() ? fetched : (fetched.renew(), fetched));
    c.require(late.wait_for(kDeadline), "a fetch of what is gone does not resolve");
    c.expect_equal(late.wait().code(), Errc::stale,
                   "a fetch of what is gone: " + std::string(to_string(late.wait().code())));
  } else {
    c.expect(!doomed.valid(), "a buffer that was being written is valid");
  }
  (void)c.device().take_error();
  c.world().barrier();
}

}  // namespace troupe::test
