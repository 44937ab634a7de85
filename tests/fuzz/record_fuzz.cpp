// Whatever the bytes, a command record is refused or is safe to walk, and a second
// reading of an accepted one says the same.
#include <cstddef>
#include <cstdint>
#include <span>

#include <troupe/error.hpp>

#include "common/wire/record.hpp"
#include "fuzz.hpp"
#include "unit/sound_operations.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using troupe::check;
  const auto record = std::as_bytes(std::span(data, size));
  troupe::wire::Command command;
  if (!command.decode(record).ok()) return 0;
  check(command.info().check(command.op()).ok(), "an accepted operation holds its checks");
  check(command.operands().size() <= troupe::OperationInfo::kMaxOperands + troupe::wire::kMaxTail,
        "operands are bounded");
  troupe::wire::Command again;
  check(again.decode(record).ok() && again.name() == command.name(), "reading is repeatable");
  return 0;
}

std::vector<std::vector<std::byte>> fuzz_seeds() {
  std::vector<std::vector<std::byte>> records;
  for (const auto& [info, op, tail, data] : troupe::wire::test::samples())
    records.push_back(troupe::wire::test::record_of(*info, op));
  return records;
}
