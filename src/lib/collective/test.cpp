#include <troupe/lib/collective.hpp>

#include "bad_arguments.hpp"

namespace troupe::test {
namespace {

TEST_F(BadArguments, OfCollectives) {
  using namespace collective;
  const auto sum = ReduceOp::sum, unknown = static_cast<ReduceOp>(9);
  expect_refused(AllReduce{DType::f64, unknown, 0, 4, x, x});
  expect_refused(AllReduce{DType::f64, sum, 0, 17, x, x});
  expect_refused(AllReduce{DType::c128, sum, 0, 4, x, x}, Errc::unsupported);
  expect_refused(Reduce{DType::f64, sum, 1u << 24, 4, x, x});
  expect_refused(Reduce{DType::f64, unknown, 0, 4, x, x});
  expect_refused(Broadcast{DType::f64, 0, 0, 17, x});
  expect_refused(
      Broadcast{DType::f64, 0, 0, 4, x, {.region = x.region, .buffer = x.buffer, .bytes = 8}});
  expect_refused(Gather{DType::f64, 1u << 24, 0, 4, x, x});
  expect_refused(Gather{DType::f64, 0, 0, 3, x, x});  // likewise
  expect_refused(Scatter{DType::f64, 0, 0, 17, x, x});
  expect_refused(Bundle{DType::u8, 0, 0});
  expect_refused(Bundle{DType::u8, 65, 0});
  expect_refused(Bundle{DType::u8, 1, 0});         // which holds none
  expect_refused(AllGather{DType::f64, 3, x, x});  // 16 is no multiple of 3
  expect_refused(ReduceScatter{DType::f64, sum, 0, 3, x, x});
  auto shorter = x;
  shorter.bytes -= 8;
  expect_refused(AllToAll{DType::f64, 4, x, shorter});
}

}  // namespace
}  // namespace troupe::test
