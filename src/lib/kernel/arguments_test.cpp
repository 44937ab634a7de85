#include <troupe/lib/kernel.hpp>

#include <cstddef>
#include <cstdint>

#include "bad_arguments.hpp"
#include "compiled.hpp"

namespace troupe::test {
namespace {

TEST_F(BadArguments, OfLaunchesByHand) {
  const auto image = device().pinned<std::uint8_t>(64);
  kernel::Launch good;
  good.image = image.operand();
  good.name_bytes = 1, good.arguments = 2, good.symbol_bytes = 2;
  std::vector<std::byte> data(5 * 8);
  const std::uint32_t sizes[] = {8, 4};
  data[0] = std::byte{'f'}, data[32] = std::byte{'v'};
  std::memcpy(data.data() + 8, sizes, sizeof sizes);
  const TailOperand sound{x, kernel::Launch::argument_tag(0, 0), Access::update, {}};
  ASSERT_TRUE(good.check().ok());
  ASSERT_TRUE(good.check_parts(Parts(std::span(&sound, 1), data)).ok());
  const auto refused = [&](auto change, const char* what) {
    auto op = good;
    auto tail = sound;
    auto bytes = data;
    change(op, tail, bytes);
    EXPECT_TRUE(!op.check().ok() || !op.check_parts(Parts(std::span(&tail, 1), bytes)).ok())
        << what;
    EXPECT_EQ(
        detail::submit(device().submitter(), op, Parts(std::span(&tail, 1), bytes)).wait().code(),
        Errc::invalid)
        << what;
  };
  refused([](auto& op, auto&, auto&) { op.name_bytes = 0; }, "no name");
  refused([](auto& op, auto&, auto&) { op.name_bytes = 64; }, "a name beyond the bytes");
  refused([](auto& op, auto&, auto&) { op.arguments = 3; }, "more arguments than there are");
  refused([](auto& op, auto&, auto&) { op.arguments = ~0u; }, "far more arguments");
  refused([](auto& op, auto&, auto&) { op.symbol_bytes = 1; }, "a name without its end");
  refused([](auto& op, auto&, auto&) { op.image.bytes = 0; }, "no image");
  refused([](auto& op, auto&, auto&) { op.cooperative = 2; }, "an unknown kind of launch");
  refused([](auto&, auto& tail, auto&) { tail.tag = 2; }, "a buffer for no argument");
  refused([](auto&, auto& tail, auto&) { tail.tag = 1; }, "a buffer for a number");
  refused([](auto&, auto& tail, auto&) { tail.tag = kernel::Launch::argument_tag(0, 8); },
          "an address behind its argument");
  refused([](auto&, auto& tail, auto&) { tail.tag = kernel::Launch::kSymbol; },
          "a variable that is written");
  refused([](auto&, auto& tail, auto&) { tail.range = {}; }, "no buffer");
  refused([](auto&, auto&, auto& bytes) { bytes.resize(bytes.size() - 8); },
          "bytes that are missing");
  refused([](auto&, auto&, auto& bytes) { bytes.resize(bytes.size() + 8); }, "bytes too many");
  refused([](auto&, auto&, auto& bytes) { bytes[8] = std::byte{0xff}; },
          "an argument that is too long");
}

}  // namespace
}  // namespace troupe::test
