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
  std::size_t visits = 0;
  command.visit([&](const auto& op) {
    ++visits;
    check(op.check().ok(), "an accepted operation holds its checks");
  });
  check(visits == 1, "an opcode names one operation");
  std::size_t operands = 0;
  command.for_each_operand(
      [&](std::string_view, const troupe::Operand&, troupe::Access) { ++operands; });
  check(operands <= troupe::detail::CommandView::kMaxOperands + troupe::wire::kMaxTail,
        "operands are bounded");
  troupe::wire::Command again;
  check(again.decode(record).ok() && again.name() == command.name(), "reading is repeatable");
  return 0;
}

namespace {

template <class... Ops>
std::vector<std::vector<std::byte>> records(troupe::OperationList<Ops...>) {
  return {troupe::wire::test::record_of(troupe::wire::test::sound<Ops>())...};
}

}  // namespace

std::vector<std::vector<std::byte>> fuzz_seeds() {
  return records(troupe::Operations{});
}
