#pragma once

#include <string>
#include <vector>

#include "conformance.hpp"

/// For tests of wrong arguments: they are answered at once, by the caller's side, and launch
/// nothing.
namespace troupe::test {

template <class Op>
void expect_refused(const Op& op, Errc code = Errc::invalid) {
  const auto future = detail::submit(device().submitter(), op);
  ASSERT_TRUE(future.ready()) << Op::kName << " was launched";
  EXPECT_EQ(future.wait().code(), code) << Op::kName;
  if (!future.wait().ok()) {
    EXPECT_TRUE(future.wait().error().message.starts_with(Op::kName))
        << future.wait().error().message;
  }
}

class BadArguments : public ::testing::Test {
 protected:
  GpuRef<double> ref = put(std::vector<double>(16, 1.0));
  GpuRef<std::int32_t> index = put(std::vector<std::int32_t>(16, 0));
  Operand x = ref.operand();
  Operand i = index.operand();
  Operand absent{};
  Operand unaligned = [this] {
    auto operand = x;
    operand.offset += 4;
    operand.bytes -= 8;
    return operand;
  }();
  Scalar one = ScalarArg<double>(1.0).wire();
  Scalar short_scalar = [this] {
    Scalar s;
    s.device = x;
    s.device.bytes = 4;
    return s;
  }();

  void TearDown() override {
    EXPECT_EQ(device().download(ref), std::vector<double>(16, 1.0)) << "something was launched";
    EXPECT_EQ(not_working(device()), "");
  }
};

}  // namespace troupe::test
