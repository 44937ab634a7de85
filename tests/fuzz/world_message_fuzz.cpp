// Whatever the bytes, a message of the world, its recovery reports and contributions are refused or
// come back from a second encoding as the same bytes.
#include <algorithm>
#include <span>

#include <troupe/error.hpp>

#include "fuzz.hpp"
#include "rank/protocol/message.hpp"

using namespace troupe::rank_process;

namespace {

template <class Decoded>
void same_again(const Decoded& decoded, std::span<const std::byte> bytes) {
  if (!decoded.ok()) return;
  const auto again = encode(*decoded);
  troupe::check(std::equal(again.begin(), again.end(), bytes.begin(), bytes.end()),
                "what was accepted is encoded as it was");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  same_again(decode_world_message(bytes), bytes);
  same_again(decode_reports(bytes), bytes);
  same_again(decode_blobs(bytes), bytes);
  return 0;
}

std::vector<std::vector<std::byte>> fuzz_seeds() {
  using Kind = WorldMessage::Kind;
  std::vector<std::vector<std::byte>> seeds;
  const std::vector<std::byte> blob(40, std::byte{7});
  for (std::uint32_t kind = 0; kind <= static_cast<std::uint32_t>(Kind::stop); ++kind) {
    seeds.push_back(encode(WorldMessage{.kind = static_cast<Kind>(kind),
                                        .phase = Phase::form,
                                        .round = 3,
                                        .epoch = 2,
                                        .rank = 5,
                                        .text = "kill",
                                        .payload = blob,
                                        .parts = {{1, 2, blob}, {4, -1, {}}},
                                        .excluded = {2, 3}}));
  }
  seeds.push_back(encode(
      std::vector<troupe::Recovery>{{.rank = 1, .kind = "segv"}, {.rank = 2, .kind = "kill"}}));
  seeds.push_back(encode(std::vector<std::vector<std::byte>>{blob, {}, {}, blob}));
  return seeds;
}
