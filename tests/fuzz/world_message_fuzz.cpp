// A message of the world is refused, or a second encoding gives the same bytes, whatever they are.
#include <algorithm>
#include <span>

#include <troupe/error.hpp>

#include "fuzz.hpp"
#include "rank/protocol/message.hpp"

using namespace troupe::rank_process;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto decoded = decode_world_message(bytes);
  if (!decoded.ok()) return 0;
  const auto again = encode(*decoded);
  troupe::check(std::equal(again.begin(), again.end(), bytes.begin(), bytes.end()),
                "what was accepted is encoded as it was");
  return 0;
}

std::vector<std::vector<std::byte>> fuzz_seeds() {
  const std::vector<std::byte> blob(40, std::byte{7});
  const troupe::Error error{troupe::Errc::library, 2, "a peer is gone"};
  const std::vector<WorldMessage> messages{
      from_rank::Fault{.rank = 5, .round = 3, .kind = "kill"},
      from_rank::Loss{.rank = 5, .kind = "segv", .lost_buffers = 2},
      from_rank::Done{.rank = 1,
                      .covered = 4,
                      .round = 3,
                      .phase = Phase::replace,
                      .contributions = {{1, blob}, {4, blob}},
                      .iterations = {{2, 17}}},
      from_rank::Failed{.rank = 2, .error = error},
      from_rank::Finished{.rank = 0, .covered = 6, .epoch = 2, .ends = {{0, 9}, {5, 10}}},
      from_rank::Left{.rank = 2, .run = 4, .error = error},
      from_rank::Prepared{.rank = 3, .formation = 2, .error = error, .contributions = {{3, blob}}},
      from_rank::Health{.rank = 1, .event = {.rank = 1, .text = "Xid 64", .xid = 64}},
      from_rank::Late{.rank = 0, .round = 3, .phase = Phase::form, .ranks = {2, 3}},
      from_rank::Standing{.rank = 4, .text = "waiting in barrier", .awaits = Awaits::host_call},
      from_rank::Library{.rank = 1, .library = {"blas", {{"cuBLAS", "13.0", "libcublas.so"}}}},
      from_rank::Splitting{.rank = 1, .call = {2, 7, {0, 1}, "split", "split"}},
      from_rank::AtCall{.rank = 1, .awaits = Awaits::end_of_program, .place = "the end"},
      from_supervisor::Order{.round = 3,
                             .phase = Phase::form,
                             .contributions = {8, {{0, blob}, {7, blob}}},
                             .asked = {5},
                             .excluded = {2, 3}},
      from_supervisor::Prepare{.formation = 2, .contributions = {2, {{1, blob}}}},
      from_supervisor::Activate{.epoch = 2, .reports = {{.rank = 1, .kind = "segv"}}},
      from_supervisor::Stable{.step = 40, .stopping = true},
      from_supervisor::RunLeft{.rank = 2, .run = 4, .error = error},
      from_supervisor::Stop{.error = error}};
  std::vector<std::vector<std::byte>> seeds;
  for (const auto& message : messages) seeds.push_back(encode(message));
  return seeds;
}
