// Command records: every operation there and back, and what is not one refused.
#include "common/wire/record.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "sound_operations.hpp"

namespace troupe::wire {
namespace {

using namespace test;

template <class Op>
class EveryOperation : public ::testing::Test {};
template <class... Ops>
::testing::Types<Ops...> types_of(OperationList<Ops...>);
TYPED_TEST_SUITE(EveryOperation, decltype(types_of(Operations{})));

/// A sound record of each operation.
struct Sample {
  std::string_view name;
  std::vector<std::byte> record;
};
template <class... Ops>
std::vector<Sample> samples_of(OperationList<Ops...>) {
  return {Sample{Ops::kName, record_of(sound<Ops>())}...};
}
const std::vector<Sample>& samples() {
  static const auto all = samples_of(Operations{});
  return all;
}

using Visited = std::tuple<std::string, std::uint32_t, std::uint64_t, Access>;

template <class Source>
std::vector<Visited> operands_of(Source&& visit_all) {
  std::vector<Visited> seen;
  visit_all([&](std::string_view name, const Operand& operand, Access access) {
    seen.emplace_back(std::string(name), operand.buffer, operand.offset, access);
  });
  return seen;
}

/// What visit() shows of a command; apart from the tests of each operation, so that it is made once
/// and not for each.
struct Shown {
  int visits = 0;
  std::string name;
  std::vector<std::byte> bytes;
};
Shown shown(const Command& command) {
  Shown all;
  command.visit([&]<class Op>(const Op& op) {
    ++all.visits;
    all.name = Op::kName;
    all.bytes.resize(sizeof op);
    std::memcpy(all.bytes.data(), &op, sizeof op);
  });
  return all;
}
std::vector<Visited> operands_shown(const Command& command) {
  return operands_of([&](auto visit) { command.for_each_operand(visit); });
}

TYPED_TEST(EveryOperation, ComesBackAsItWasSent) {
  const auto op = sound<TypeParam>();
  const auto record = record_of(op);
  Command command;
  const auto decoded = command.decode(record);
  ASSERT_TRUE(decoded.ok()) << decoded.error().to_string();
  EXPECT_EQ(command.name(), TypeParam::kName);
  EXPECT_EQ(operation_name(command.header().opcode), TypeParam::kName);
  EXPECT_EQ(command.header().ticket, 77u);
  EXPECT_EQ(command.header().epoch, 9u);
  EXPECT_EQ(command.header().flags, 0u);
  const auto got = shown(command);
  EXPECT_EQ(got.visits, 1);
  EXPECT_EQ(got.name, TypeParam::kName);
  ASSERT_EQ(got.bytes.size(), sizeof op);
  EXPECT_EQ(std::memcmp(got.bytes.data(), &op, sizeof op), 0);
  const auto tail = HasTail<TypeParam> ? some_tail() : std::vector<PeerTransfer>{};
  ASSERT_EQ(command.tail().size(), tail.size());
  const auto sent = operands_of([&](auto visit) { for_each_operand(op, tail, visit); });
  EXPECT_EQ(operands_shown(command), sent);
  EXPECT_EQ(sent.size(), std::tuple_size_v<decltype(TypeParam::kOperands)> + tail.size());
}

/// What both sides of the ring say to an operation: the rank before it submits, the device host
/// when it reads the record.
template <class Op>
Errc judged(const Op& op) {
  Recorder recorder;
  const auto submitted = troupe::detail::submit(recorder, op).wait().code();
  auto record = record_of(sound<Op>());
  std::memcpy(record.data() + sizeof(CommandHeader), &op, sizeof op);
  Command command;
  EXPECT_EQ(command.decode(record).code(), submitted) << "the two sides differ";
  return submitted;
}

TYPED_TEST(EveryOperation, HasWhatItWritesForItselfOrInPlaceAsItDeclares) {
  using Op = TypeParam;
  struct Use {
    std::string_view name;
    Access access;
    Operand& (*in)(Op& op);
  };
  std::vector<Use> uses;
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (..., uses.push_back({std::get<I>(Op::kOperands).name, std::get<I>(Op::kOperands).access,
                          [](Op& op) -> Operand& {
                            return operand_of(op.*(std::get<I>(Op::kOperands).member));
                          }}));
  }
  (std::make_index_sequence<std::tuple_size_v<decltype(Op::kOperands)>>());
  const auto rules = troupe::detail::in_place_rules<Op>();
  for (const auto& one : uses) {
    for (const auto& other : uses) {
      if (one.name == other.name || one.access == Access::read) continue;
      const bool in_place = std::any_of(rules.begin(), rules.end(), [&](const InPlace& rule) {
        return (rule.one == one.name && rule.other == other.name) ||
               (rule.one == other.name && rule.other == one.name);
      });
      auto op = sound<Op>();
      auto& moved = one.in(op);
      const auto& fixed = other.in(op);
      const auto what =
          std::string(Op::kName) + ": " + std::string(one.name) + " and " + std::string(other.name);
      moved = fixed;
      EXPECT_EQ(judged(op), in_place ? Errc::ok : Errc::invalid) << what;
      moved.offset = fixed.offset + fixed.bytes - 64;
      EXPECT_EQ(judged(op), Errc::invalid) << what << " overlap in part";
      moved.offset = fixed.offset + fixed.bytes;
      EXPECT_EQ(judged(op), Errc::ok) << what << " lie side by side";
    }
  }
}

TEST(Overlap, APartOfAGatheredRangeIsAPart) {
  collective::AllGather op = sound<collective::AllGather>();
  op.source = op.destination;
  op.source.bytes = op.destination.bytes / 4;
  for (const std::uint64_t part : {0, 1, 3}) {
    op.source.offset = op.destination.offset + part * op.source.bytes;
    EXPECT_EQ(judged(op), Errc::ok) << part;
  }
  op.source.offset = op.destination.offset + op.source.bytes / 2;
  EXPECT_EQ(judged(op), Errc::invalid) << "between two parts";
}

TEST(Overlap, OperandsOfOtherRanksOverlapWithinTheirBuffer) {
  auto op = sound<memory::Copy>();
  op.source = {kTokenRegion | 1u, 7, 1, 0, 0, 64};
  op.destination = op.source;
  EXPECT_EQ(judged(op), Errc::invalid);
  op.destination.buffer = 8;
  EXPECT_EQ(judged(op), Errc::ok);
}

TEST(Overlap, WhatIsReceivedLiesApartFromAllElseOfAnExchange) {
  const Operand base{1, 2, 3, 0, 0, 4096};
  const auto part = [&](std::uint64_t offset, std::uint64_t bytes, std::uint32_t receive) {
    PeerTransfer one{base, 0, receive};
    one.data.offset = offset;
    one.data.bytes = bytes;
    return one;
  };
  const auto says = [](std::vector<PeerTransfer> tail) {
    Recorder recorder;
    return troupe::detail::submit(recorder, collective::Exchange{DType::f64}, tail).wait().code();
  };
  EXPECT_EQ(says({part(0, 64, 0), part(0, 64, 0), part(32, 64, 0)}), Errc::ok) << "sent twice";
  EXPECT_EQ(says({part(0, 64, 0), part(64, 64, 1), part(128, 8, 1)}), Errc::ok);
  EXPECT_EQ(says({part(0, 64, 1), part(0, 64, 0)}), Errc::invalid);
  EXPECT_EQ(says({part(0, 64, 1), part(56, 64, 1)}), Errc::invalid);
  EXPECT_EQ(says({part(0, 1024, 0), part(8, 8, 0), part(512, 8, 1)}), Errc::invalid)
      << "within a long one that came first";
  EXPECT_EQ(says({part(0, 1024, 1), part(8, 0, 0), part(2048, 8, 0)}), Errc::ok) << "nothing";
  std::vector<PeerTransfer> many;
  for (std::uint64_t i = 0; i < 1000; ++i) many.push_back(part(64 * i, 64, i % 2));
  EXPECT_EQ(says(many), Errc::ok);
  many.push_back(part(64 * 500 + 8, 8, 1));
  EXPECT_EQ(says(many), Errc::invalid);
}

TEST(Record, IsRefusedAtAnyOtherLength) {
  Command command;
  for (const auto& [name, record] : samples()) {
    for (std::size_t length = 0; length < record.size(); ++length) {
      EXPECT_EQ(command.decode(std::span(record).first(length)).code(), Errc::invalid)
          << name << ", " << length;
    }
    auto longer = record;
    longer.resize(record.size() + 8);
    EXPECT_EQ(command.decode(longer).code(), Errc::invalid) << name;
  }
}

TEST(Record, IsRefusedWithAWrongHeader) {
  for (const auto& [name, record] : samples()) {
    const auto refused = [&record](void (*change)(CommandHeader&)) {
      auto wrong = record;
      CommandHeader header;
      std::memcpy(&header, wrong.data(), sizeof header);
      change(header);
      std::memcpy(wrong.data(), &header, sizeof header);
      Command command;
      return command.decode(wrong).code() == Errc::invalid;
    };
    EXPECT_TRUE(refused([](auto& header) { header.opcode ^= 1; })) << name;
    EXPECT_TRUE(refused([](auto& header) {
      header.op_bytes = static_cast<std::uint16_t>(header.op_bytes + 8);
    })) << name;
    EXPECT_TRUE(refused([](auto& header) { ++header.tail_count; })) << name;
    EXPECT_TRUE(refused([](auto& header) { header.tail_count = 0xffff; })) << name;
  }
}

TYPED_TEST(EveryOperation, IsRefusedWithADTypeItDoesNotHave) {
  if (std::tuple_size_v<decltype(TypeParam::kOperands)> == 0) return;  // it touches no elements
  auto op = sound<TypeParam>();
  for (unsigned dtype = 0; dtype < 256; ++dtype) {
    if (TypeParam::kDTypes.has(static_cast<DType>(dtype))) continue;
    op.dtype = static_cast<DType>(dtype);
    EXPECT_EQ(op.check().code(), Errc::unsupported) << dtype;
  }
}

void shrink(Operand& operand) {
  operand.bytes = 7;
}
void shrink(Scalar& scalar) {
  scalar.device.bytes = 3;
}

TYPED_TEST(EveryOperation, IsRefusedIfAnOperandIsTooShort) {
  if (std::is_same_v<TypeParam, memory::Fence>) return;  // of any range
  std::apply(
      [](const auto&... use) {
        [[maybe_unused]] const auto one = [](const auto& which) {
          auto op = sound<TypeParam>();
          shrink(op.*(which.member));
          EXPECT_EQ(op.check().code(), Errc::invalid) << which.name;
        };
        (..., one(use));
      },
      TypeParam::kOperands);
}

constexpr auto kHuge = std::int64_t{1} << 62;

template <class Op, class Change>
void expect_invalid(Change change, std::string_view what) {
  auto op = sound<Op>();
  change(op);
  EXPECT_EQ(op.check().code(), Errc::invalid) << Op::kName << ": " << what;
}

TEST(Checks, ExtentsThatDoNotHold) {
  expect_invalid<blas::Axpy>([](auto& op) { op.n = -1; }, "negative n");
  expect_invalid<blas::Axpy>([](auto& op) { op.incx = 0; }, "increment 0");
  expect_invalid<blas::Axpy>([](auto& op) { op.incy = kHuge; }, "n * inc overflows");
  expect_invalid<blas::Dot>([](auto& op) { op.x.region = 0; }, "missing x");
  expect_invalid<blas::Dot>([](auto& op) { op.x.offset = 4; }, "misaligned x");
  expect_invalid<blas::Gemv>([](auto& op) { op.lda = 3; }, "lda < m");
  expect_invalid<blas::Gemv>([](auto& op) { op.transpose = static_cast<blas::Transpose>(2); },
                             "transpose");
  expect_invalid<blas::Gemm>([](auto& op) { op.k = -1; }, "negative k");
  expect_invalid<blas::Gemm>([](auto& op) { op.n = op.ldb = kHuge, op.k = kHuge; },
                             "size overflows");
  expect_invalid<blas::Gemm>([](auto& op) { op.ldc = 200; }, "c too short for ldc");
  expect_invalid<sparse::Spmv>([](auto& op) { op.index_dtype = DType::u32; }, "index type");
  expect_invalid<sparse::Spmv>([](auto& op) { op.rows = 1024; }, "row_begin too short");
  expect_invalid<sparse::Gather>([](auto& op) { op.index_dtype = DType::f32; }, "index type");
  expect_invalid<rng::Uniform>([](auto& op) { op.subsequence = 1u << 24; }, "subsequence");
  expect_invalid<rng::Normal>([](auto& op) { op.n = 3; }, "odd n");
  expect_invalid<memory::Fill>([](auto& op) { op.count = ~std::uint64_t{0}; }, "huge count");
  expect_invalid<memory::Copy>(
      [](auto& op) { op.source.region = op.destination.region = kPinnedRegion | 1; },
      "host to host");
  expect_invalid<memory::Fault>(
      [](auto& op) { op.kind = static_cast<memory::FaultKind>(memory::kFaultKindCount); },
      "fault kind");
  expect_invalid<collective::AllReduce>([](auto& op) { op.op = static_cast<ReduceOp>(5); },
                                        "reduction");
  expect_invalid<collective::Broadcast>([](auto& op) { op.root = 1u << 24; }, "root");
  expect_invalid<collective::AllGather>([](auto& op) { op.count = 3; },
                                        "destination is no multiple");
  expect_invalid<collective::AllGather>([](auto& op) { op.destination.bytes = 0; },
                                        "no room for one rank");
  expect_invalid<collective::ReduceScatter>([](auto& op) { op.source.bytes = 0; },
                                            "no room for one rank");
  expect_invalid<collective::AllToAll>([](auto& op) { op.source.bytes /= 2; }, "lengths differ");
}

TEST(Checks, EmptyWorkIsAllowed) {
  auto axpy = sound<blas::Axpy>();
  axpy.n = 0;
  EXPECT_TRUE(axpy.check().ok());
  auto gemm = sound<blas::Gemm>();
  gemm.m = gemm.n = gemm.k = 0;
  EXPECT_TRUE(gemm.check().ok());
  auto reduce = sound<collective::Reduce>();
  reduce.destination = {};
  EXPECT_TRUE(reduce.check().ok()) << "the result is at the root only";
}

TEST(Record, ATailHasABound) {
  std::vector<PeerTransfer> tail(kMaxTail);
  Recorder recorder;
  ASSERT_TRUE(
      troupe::detail::submit(recorder, collective::Exchange{DType::f32}, tail, 1).wait().ok());
  Command command;
  EXPECT_TRUE(command.decode(recorder.record).ok());
  tail.emplace_back();
  ASSERT_TRUE(
      troupe::detail::submit(recorder, collective::Exchange{DType::f32}, tail, 1).wait().ok());
  EXPECT_EQ(command.decode(recorder.record).code(), Errc::invalid);
}

TEST(Record, NamesOfUnknownOpcodes) {
  EXPECT_EQ(operation_name(0), "unknown");
}

/// Changes up to eight bytes of a sound record, or replaces all after the header: decode() must
/// answer, and what it accepts must be safe to walk.
void mutate(std::mt19937& random, Command& command, std::uint64_t& refused) {
  for (const auto& sample : samples()) {
    auto record = sample.record;
    if (random() % 8 == 0) {
      for (auto at = sizeof(CommandHeader); at < record.size(); ++at)
        record[at] = static_cast<std::byte>(random());
    } else {
      for (auto left = 1 + random() % 8; left > 0; --left)
        record[random() % record.size()] = static_cast<std::byte>(random());
    }
    if (!command.decode(record).ok()) {
      ++refused;
      continue;
    }
    command.for_each_operand(
        [](std::string_view name, const Operand&, Access) { EXPECT_FALSE(name.empty()); });
  }
}

TEST(Record, RandomBytesNeverCrash) {
  std::uint64_t refused = 0;
  for (std::uint32_t seed = 1; seed <= 2000 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    Command command;
    mutate(random, command, refused);
    std::vector<std::byte> noise(random() % 600);
    for (auto& byte : noise) byte = static_cast<std::byte>(random());
    EXPECT_FALSE(command.decode(noise).ok());
  }
  EXPECT_GT(refused, 2000u);
}

}  // namespace
}  // namespace troupe::wire
