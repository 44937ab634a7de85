// Operations as data: how they are found, and how processes see that they mean the same by them.
#include <gtest/gtest.h>

#include <algorithm>

#include <troupe/lib/operation_table.hpp>
#include <troupe/lib/operations.hpp>

#include "common/wire/collective_call.hpp"
#include "common/wire/library_stamps.hpp"

namespace troupe {
namespace {

/// An operation of a program's own.
struct Halve {
  static constexpr std::string_view kName = "registry_test.halve";
  static constexpr DTypes kDTypes = DTypes::reals();

  OpDType dtype;
  std::int64_t n = 0;
  Scalar factor;
  Operand x, y;

  static constexpr std::array kOperands{write("y", &Halve::y), read("x", &Halve::x),
                                        read("factor", &Halve::factor)};
  Result<void> check() const { return {}; }
};

/// A library of one operation, given by its table.
Library library_of(const OperationInfo& info) {
  const std::array operations{&info};
  return Library(std::span<const OperationInfo* const>(operations));
}

TEST(Registry, FindsAnOperationBehindALibrary) {
  EXPECT_EQ(find_operation(opcode_of<Halve>).info, nullptr);
  EXPECT_EQ(operation_name(opcode_of<Halve>), "unknown");
  const auto before = all_operations().size();
  const Library library{tables_of(List<Halve>{})};
  EXPECT_EQ(find_operation(opcode_of<Halve>).info, &info_of<Halve>);
  EXPECT_EQ(operation_name(opcode_of<Halve>), "registry_test.halve");
  const Library once_more{tables_of(List<Halve>{})};
  EXPECT_EQ(all_operations().size(), before + 1);
  EXPECT_EQ(find_operation(opcode_of<blas::Gemm>).info->name, "blas.gemm");
}

TEST(Registry, DealsEachLibraryALane) {
  const Library library{tables_of(List<Halve>{})};
  EXPECT_EQ(to_string(library_lane("registry_test")), "registry_test");
  EXPECT_EQ(lane_of(Halve{}), library_lane("registry_test"));
  EXPECT_NE(lane_of(Halve{}), lane_of(blas::Gemm{}));
  EXPECT_EQ(lane_of(blas::Axpy{}), lane_of(blas::Gemm{}));
  EXPECT_EQ(lane_of(collective::AllReduce{}), Lane::collective);
  EXPECT_LT(static_cast<std::size_t>(library_lane("blas")), lanes_in_use());
}

TEST(Registry, RefusesTwoOperationsOfOneOpcode) {
  static auto other = info_of<blas::Axpy>;
  other.name = "registry_test.other";
  EXPECT_THROW(library_of(other), Exception);
  EXPECT_EQ(operation_name(other.opcode), "blas.axpy");
}

/// Two libraries of one name: y = 2 x, with the operands in either order.
struct Twice {
  static constexpr std::string_view kName = "registry_twice.twice";
  static constexpr DTypes kDTypes = DTypes::reals();
  OpDType dtype;
  Operand x, y;
  static constexpr std::array kOperands{read("x", &Twice::x), write("y", &Twice::y)};
  Result<void> check() const { return {}; }
};
struct Swapped {
  static constexpr std::string_view kName = Twice::kName;
  static constexpr DTypes kDTypes = DTypes::reals();
  OpDType dtype;
  Operand y, x;
  static constexpr std::array kOperands{read("x", &Swapped::x), write("y", &Swapped::y)};
  Result<void> check() const { return {}; }
};
/// The same fields as Twice has, but another struct: nobody knows whether it means the same.
struct Thrice {
  static constexpr std::string_view kName = Twice::kName;
  static constexpr DTypes kDTypes = DTypes::reals();
  OpDType dtype;
  Operand x, y;
  static constexpr std::array kOperands{read("x", &Thrice::x), write("y", &Thrice::y)};
  Result<void> check() const { return {}; }
};

template <Operation Op>
std::string refused(const std::source_location& place) {
  try {
    const Library second(tables_of(List<Op>{}), place);
  } catch (const Exception& exception) {
    return exception.error().message;
  }
  return "it is taken";
}

TEST(Registry, RefusesTwoOperationsOfOneName) {
  const auto first = std::source_location::current();
  const auto second = std::source_location::current();
  const Library library(tables_of(List<Twice>{}), first);
  const Library once_more(tables_of(List<Twice>{}), second);
  for (const auto& said : {refused<Swapped>(second), refused<Thrice>(second)}) {
    EXPECT_EQ(said.find("registry_twice.twice is two operations: "), 0u) << said;
    EXPECT_NE(said.find("registry_test.cpp:" + std::to_string(first.line())), std::string::npos)
        << said;
    EXPECT_NE(said.find("registry_test.cpp:" + std::to_string(second.line())), std::string::npos)
        << said;
  }
  EXPECT_EQ(find_operation(opcode_of<Twice>).info, &info_of<Twice>);
  static auto other = info_of<Twice>;
  other.bytes += 8;  // the same struct, compiled in another way
  EXPECT_THROW(library_of(other), Exception);
}

struct WithHole {
  OpDType dtype;
  std::uint32_t n = 0;
  Operand x;
};
struct WithHoleAtTheEnd {
  OpDType dtype;
  Operand x;
  std::uint32_t n = 0;
};
struct Filled {
  OpDType dtype;
  std::uint32_t n = 0, reserved = 0;
  double factor = 0;
  Operand x;
};
static_assert(!detail::WithoutHoles<WithHole> && !detail::WithoutHoles<WithHoleAtTheEnd>);
static_assert(detail::WithoutHoles<Filled>);

TEST(OperationInfo, HoldsWhatIsDeclaredAndIsSafeElse) {
  const auto& info = info_of<Halve>;
  Halve op;
  auto* const bytes = reinterpret_cast<std::byte*>(&op);
  ASSERT_EQ(info.operands.size(), 3u);
  EXPECT_EQ(info.library(), "registry_test");
  EXPECT_EQ(info.operands[0].name, "y");
  EXPECT_EQ(&info.operand(bytes, info.operands[0]), &op.y);
  EXPECT_EQ(&info.operand(bytes, info.operands[1]), &op.x);
  EXPECT_EQ(&info.operand(bytes, info.operands[2]), &op.factor.device);
  EXPECT_EQ(info.access(bytes, info.operands[0]), Access::write);
  EXPECT_EQ(info.written(bytes, info.operands[0]), 0u) << "it has not said how much";
  EXPECT_FALSE(info.traits.repeatable || info.traits.remote || info.traits.collective ||
               info.traits.blocking);
  EXPECT_EQ(info.agreement, nullptr);
  EXPECT_EQ(info.describe, nullptr);
  EXPECT_EQ(info.check_world, nullptr);
  EXPECT_EQ(info.lane, nullptr) << "its library's";
  EXPECT_EQ(info.max_data, 0u);
  EXPECT_EQ(info.cell, nullptr);
  EXPECT_EQ(info.verdict, nullptr);
}

TEST(CollectiveCall, IsToldInTheWordsOfItsOperationWhateverItHolds) {
  const collective::Reduce reduce{DType::f32, ReduceOp::max, 3, 64, {}, {}};
  auto call =
      wire::call_of(info_of<collective::Reduce>, reinterpret_cast<const std::byte*>(&reduce));
  EXPECT_EQ(wire::to_string(call), "collective.reduce of 64 f32, max, root 3");
  call.refused = 1;
  EXPECT_EQ(wire::to_string(call), "collective.reduce of 64 f32, max, root 3, refused there");
  call = {call.opcode, 0, {1000, 1000, Agreement::kNone, 5}};  // from memory that others write
  EXPECT_EQ(wire::to_string(call), "collective.reduce of 5");
  call.opcode = 1;
  EXPECT_EQ(wire::to_string(call), "unknown");
}

TEST(Scalar, HoldsAFactorOfAnyType) {
  EXPECT_EQ(Scalar::of(std::int64_t{9'007'199'254'740'993}).as<std::int64_t>(),
            9'007'199'254'740'993);
  const std::complex<double> factor(1.0 / 3, -2e300);
  EXPECT_EQ(Scalar::of(factor).as<std::complex<double>>(), factor);
  EXPECT_TRUE(Scalar::of(std::complex<float>(0, -0.0f)).is_zero(DType::c64));
  EXPECT_FALSE(Scalar::of(std::complex<float>(0, 1e-44f)).is_zero(DType::c64));
  EXPECT_TRUE(Scalar::of(Half{0x8000}).is_zero(DType::f16));
  EXPECT_FALSE(Scalar::of(Half{1}).is_zero(DType::f16));
  EXPECT_TRUE(Scalar::of(Float8E5M2{0x80}).is_zero(DType::f8e5m2));
  EXPECT_FALSE(Scalar::of(std::int32_t{-1}).is_zero(DType::i32));
  EXPECT_TRUE(Scalar::of(std::uint64_t{0}).is_zero(DType::u64));
  Scalar in_memory;
  in_memory.device.region = 1;
  EXPECT_FALSE(in_memory.is_zero(DType::f64)) << "nobody knows yet";
}

TEST(LibraryStamps, DifferOnlyForALibraryThatBothKnowDifferently) {
  const auto own = wire::library_stamps().take();
  EXPECT_TRUE(wire::compare_stamps(own, "rank 3", "rank 0").ok());
  const auto blas = static_cast<std::size_t>(
      std::find_if(own.begin(), own.end(),
                   [](const auto& stamp) { return stamp.name.data() == std::string("blas"); }) -
      own.begin());
  ASSERT_LT(blas, own.size());
  auto others = own;
  others[blas].fingerprint ^= 1;
  const auto different = wire::compare_stamps(others, "rank 3", "rank 0");
  ASSERT_EQ(different.code(), Errc::invalid);
  EXPECT_NE(different.error().message.find("rank 3 and rank 0"), std::string::npos);
  EXPECT_NE(different.error().message.find("library blas"), std::string::npos);
  others[blas].name[0] = 'c';
  EXPECT_TRUE(wire::compare_stamps(others, "rank 3", "rank 0").ok()) << "only one has clas";
}

}  // namespace
}  // namespace troupe
