// Whatever the bytes, a message between token routers is refused or is safe to
// act on, a command record in it too, and writing an accepted one gives the same bytes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include <troupe/error.hpp>

#include "common/wire/record.hpp"
#include "fuzz.hpp"
#include "rank/device/commands/buffer_table.hpp"
#include "rank/token/token_execute.hpp"
#include "unit/sound_operations.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using troupe::check;
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto packet = troupe::rank_process::decode_token_message(bytes);
  if (!packet.ok()) return 0;
  check(packet->payload.size() == packet->head.payload_bytes, "the payload is what the head says");
  check(packet->outcome().ok() == (packet->head.code == 0), "an outcome is a value or an error");
  const auto again = troupe::rank_process::encode(packet->head, packet->payload);
  check(std::equal(again.begin(), again.end(), bytes.begin(), bytes.end()), "there and back");

  troupe::rank_process::BufferTable table;
  const auto buffer = table.add(3, 4096, 1 << 20, troupe::DType::f64);
  check(buffer.ok(), "a table with room");
  const auto translated = [&](const troupe::Operand& named) {
    const auto range = table.translate(named);
    if (range.ok()) check(table.current(*range), "what is accepted lies within its buffer");
    return range;
  };
  (void)translated(packet->head.range);
  const auto record = troupe::rank_process::record_of(*packet, 1);
  troupe::wire::Command command;
  if (!record.ok() || !command.decode(*record).ok()) return 0;
  for (const auto& use : command.operands()) (void)translated(*use.range);
  return 0;
}

std::vector<std::vector<std::byte>> fuzz_seeds() {
  using namespace troupe;
  using rank_process::TokenMessage;
  rank_process::BufferTable table;  // the first buffer of a table is the one that is there
  const auto buffer = table.add(3, 4096, 1 << 20, DType::f64);
  check(buffer.ok(), "a table with room");
  const auto record = wire::test::record_of(wire::test::sample_of<blas::Axpy>());
  std::vector<std::vector<std::byte>> seeds;
  for (std::uint32_t kind = 0; kind <= static_cast<std::uint32_t>(TokenMessage::Kind::slab_gone);
       ++kind) {
    TokenMessage head{.kind = static_cast<TokenMessage::Kind>(kind), .from = 1};
    head.range = {.region = 3,
                  .buffer = *buffer,
                  .generation = 1,
                  .reserved = static_cast<std::uint32_t>(DType::f64),
                  .bytes = 4096};
    seeds.push_back(rank_process::encode(head));
    seeds.push_back(
        rank_process::encode(head, Result<void>(Error{Errc::stale, 2, "it was freed"})));
    if (head.kind != TokenMessage::Kind::execute) continue;
    seeds.push_back(rank_process::encode(head, record));
    auto named = record;
    const auto name = std::as_bytes(std::span(info_of<blas::Axpy>.name));
    named.insert(named.end(), name.begin(), name.end());
    head.value = static_cast<std::uint32_t>(name.size());
    seeds.push_back(rank_process::encode(head, named));
  }
  return seeds;
}
