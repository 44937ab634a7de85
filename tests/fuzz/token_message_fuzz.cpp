// Whatever the bytes, a message between token routers is refused or is safe to
// act on, a command record in it too, and writing an accepted one gives the same bytes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include <troupe/error.hpp>

#include "common/core/field_bytes.hpp"
#include "common/wire/record.hpp"
#include "fuzz.hpp"
#include "rank/device/commands/buffer_table.hpp"
#include "rank/token/token_execute.hpp"
#include "unit/sound_operations.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace troupe;
  using namespace troupe::rank_process;
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto packet = decode_token_message(bytes);
  if (!packet.ok()) return 0;
  const auto again = encode(packet->from, packet->message);
  check(std::equal(again.begin(), again.end(), bytes.begin(), bytes.end()), "there and back");

  BufferTable table;
  const auto buffer = table.add(3, 4096, 1 << 20, DType::f64);
  check(buffer.ok(), "a table with room");
  const auto translate = [&](const Operand& named) {
    const auto range = table.translate(named);
    if (range.ok()) check(table.current(*range), "what is accepted lies within its buffer");
  };
  std::visit(
      [&](const auto& said) {
        if constexpr (requires { said.range; }) translate(said.range);
      },
      packet->message);
  const auto* const request = std::get_if<routed::Execute>(&packet->message);
  if (request == nullptr) return 0;
  const auto record = record_of(*request, 1);
  wire::Command command;
  if (!record.ok() || !command.decode(*record).ok()) return 0;
  for (const auto& use : command.operands()) translate(*use.range);
  return 0;
}

std::vector<std::vector<std::byte>> fuzz_seeds() {
  using namespace troupe;
  using namespace troupe::rank_process;
  BufferTable table;  // the first buffer of a table is the one that is there
  const auto buffer = table.add(3, 4096, 1 << 20, DType::f64);
  check(buffer.ok(), "a table with room");
  const Operand range{.region = 3,
                      .buffer = *buffer,
                      .generation = 1,
                      .reserved = static_cast<std::uint32_t>(DType::f64),
                      .bytes = 4096};
  std::vector<std::vector<std::byte>> seeds;
  for (std::size_t kind = 0; kind < std::variant_size_v<TokenMessage>; ++kind) {
    TokenMessage message;
    const auto fill = [&](auto& said) {
      if constexpr (requires { said.range; }) said.range = range;
    };
    emplace_alternative(kind, message, fill);
    seeds.push_back(encode(1, message));
    const auto fail = [](auto& said) {
      const Error error{Errc::stale, 2, "it was freed"};
      if constexpr (requires { said.outcome; }) said.outcome = error;
      if constexpr (requires { said.why; }) said.why = error;
    };
    std::visit(fail, message);
    seeds.push_back(encode(1, message));
  }
  seeds.push_back(encode(
      1, routed::Execute{.operation = std::string(info_of<blas::Axpy>.name),
                         .record = wire::test::record_of(wire::test::sample_of<blas::Axpy>())}));
  return seeds;
}
