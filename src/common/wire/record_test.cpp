// Command records: every operation there and back, and what is not one refused.
#include "common/wire/record.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "random_cases.hpp"
#include "sound_operations.hpp"

#include <troupe/lib/operation_table.hpp>
#include <troupe/lib/outside.hpp>

namespace troupe::wire {
namespace {

using namespace test;

/// Calls test(info, op) with a sound operation of each kind; failures name it.
template <class Test>
void each_operation(Test test) {
  for (const auto& [info, op, tail, data] : samples()) {
    SCOPED_TRACE(std::string(info->name));
    test(*info, op);
  }
}

/// Where, for whom and how.
std::vector<std::tuple<std::uint32_t, std::uint64_t, Access>> places(
    std::span<const OperandUse> uses) {
  std::vector<std::tuple<std::uint32_t, std::uint64_t, Access>> all;
  for (const auto& use : uses) all.emplace_back(use.range->buffer, use.range->offset, use.access);
  return all;
}

TEST(EveryOperation, HasASample) {
  for (const auto* info : all_operations()) {
    EXPECT_TRUE(std::any_of(samples().begin(), samples().end(), [&](const Sample& sample) {
      return sample.info->opcode == info->opcode;
    })) << info->name;
  }
}

TEST(EveryOperation, ComesBackAsItWasSent) {
  each_operation([](const OperationInfo& info, const std::vector<std::byte>& op) {
    const auto record = record_of(info, op);
    Command command;
    const auto decoded = command.decode(record);
    ASSERT_TRUE(decoded.ok()) << decoded.error().to_string();
    EXPECT_EQ(command.name(), info.name);
    EXPECT_EQ(operation_name(command.header().opcode), info.name);
    EXPECT_EQ(command.header().ticket, 77u);
    EXPECT_EQ(command.header().epoch, 9u);
    EXPECT_EQ(command.header().flags, 0u);
    EXPECT_EQ(std::memcmp(command.op(), op.data(), op.size()), 0);
    const auto& tail = sample_of(info).tail;
    ASSERT_EQ(command.tail().size(), tail.size());
    const troupe::detail::CommandView sent(info, op, tail);
    const auto present = static_cast<std::size_t>(std::count_if(
        info.operands.begin(), info.operands.end(),
        [&](const OperandInfo& operand) { return info.operand(op.data(), operand).present(); }));
    EXPECT_EQ(sent.uses().size(), present);
    EXPECT_EQ(places(command.operands().first(sent.uses().size())), places(sent.uses()));
    ASSERT_EQ(command.operands().size(), present + tail.size());
    for (std::size_t i = 0; i < tail.size(); ++i) {
      const auto& use = command.operands()[present + i];
      EXPECT_EQ(use.range->buffer, tail[i].range.buffer);
      EXPECT_EQ(use.access, tail[i].access);
    }
  });
}

TEST(EveryOperation, SaysOfNothingThatItWritesMoreThanItHas) {
  each_operation([](const OperationInfo& info, const std::vector<std::byte>& op) {
    for (const auto& operand : info.operands) {
      const auto access = info.access(op.data(), operand);
      EXPECT_TRUE(access != Access::write || info.written(op.data(), operand) <= 4096)
          << operand.name;
      // What is declared an update may be read alone, by what the operation says.
      EXPECT_TRUE(access == Access::read ? operand.access != Access::write
                                         : operand.access != Access::read)
          << operand.name;
    }
  });
}

/// With all that a record may have beside the operation's struct.
struct Weigh {
  static constexpr std::string_view kName = "record_test.weigh";
  static constexpr DTypes kDTypes = DTypes::reals();
  static constexpr std::string_view kTail = "part";
  static constexpr std::uint32_t kData = 16;

  OpDType dtype;
  Operand result;

  static constexpr std::array kOperands{write("result", &Weigh::result)};
  static constexpr auto kCell = &Weigh::result;
  Result<void> check() const { return {}; }
  Result<void> check_parts(const Parts& parts) const {
    if (parts.tail.size() * 8 == parts.data.size()) return {};
    return Error{Errc::invalid, 0, "record_test.weigh: a weight for each part"};
  }
};

TEST(Parts, ComeBackAsTheyWereSentAndAreChecked) {
  const Library library{tables_of(List<Weigh>{})};
  const Weigh op{DType::f64, troupe::test::cell_in(1)};
  const auto bytes = std::as_bytes(std::span(&op, 1));
  const std::vector<TailOperand> tail{{troupe::test::range_in(2), 5, Access::read},
                                      {troupe::test::range_in(3), 6, Access::read}};
  const std::vector<std::int64_t> weights{-1, std::int64_t{1} << 60};
  const auto record = [&](const Parts& parts) {
    const troupe::detail::CommandView view(info_of<Weigh>, bytes, parts);
    std::vector<std::byte> out(record_bytes(view));
    encode(view, 1, out);
    return out;
  };
  Command command;
  ASSERT_TRUE(command.decode(record({tail, std::as_bytes(std::span(weights))})).ok());
  EXPECT_EQ(command.parts().tail.size(), 2u);
  ASSERT_EQ(command.parts().data.size(), 16u);
  EXPECT_EQ(std::memcmp(command.parts().data.data(), weights.data(), 16), 0);
  EXPECT_EQ(command.operands().size(), 3u);

  const auto refused = [&](const Parts& parts, const std::string& what) {
    EXPECT_NE(check_operation(info_of<Weigh>, bytes.data(), parts).error().message.find(what),
              std::string::npos);
    EXPECT_FALSE(command.decode(record(parts)).ok());
  };
  refused({tail, std::as_bytes(std::span(weights)).first(8)}, "a weight for each part");
  const std::vector<std::int64_t> many(3);
  refused({tail, std::as_bytes(std::span(many))}, "24 inline bytes, above 16");
  auto neither = tail;
  neither[0].access = {};
  refused({neither, std::as_bytes(std::span(weights))}, "neither read nor written");

  const auto axpy = sample_of<blas::Axpy>();
  EXPECT_EQ(check_operation(info_of<blas::Axpy>, reinterpret_cast<const std::byte*>(&axpy), tail)
                .error()
                .message,
            "blas.axpy: it has no further operands");
  const Weigh elsewhere{DType::f64, troupe::test::range_in(1)};
  EXPECT_EQ(check_operation(info_of<Weigh>, reinterpret_cast<const std::byte*>(&elsewhere), {})
                .error()
                .message,
            "record_test.weigh: its result cell is not in pinned memory");
}

TEST(Access, WithBetaZeroWhatIsWrittenIsNotRead) {
  const auto of_c = [](const blas::Gemm& op) {
    return std::pair(info_of<blas::Gemm>.access(reinterpret_cast<const std::byte*>(&op),
                                                info_of<blas::Gemm>.operands.back()),
                     info_of<blas::Gemm>.written(reinterpret_cast<const std::byte*>(&op),
                                                 info_of<blas::Gemm>.operands.back()));
  };
  auto gemm = sample_of<blas::Gemm>();
  EXPECT_EQ(of_c(gemm).first, Access::update) << "beta is in device memory: nobody knows it";
  gemm.beta = {};
  EXPECT_EQ(of_c(gemm).first, Access::write);
  EXPECT_EQ(of_c(gemm).second, 0u) << "there are gaps between the columns";
  gemm.beta = Scalar::of(-0.0);
  EXPECT_EQ(of_c(gemm).first, Access::write);
  gemm.ldc = gemm.m;
  EXPECT_EQ(of_c(gemm).second, 4u * 4u * 8u);
  gemm.beta = Scalar::of(1e-300);
  EXPECT_EQ(of_c(gemm).first, Access::update);
}

TEST(Access, AProductWithAnEmptyMatrixWritesNothingForSure) {
  auto gemv = sample_of<blas::Gemv>();
  gemv.beta = {};
  const auto& info = info_of<blas::Gemv>;
  const auto written = [&] {
    return info.written(reinterpret_cast<const std::byte*>(&gemv), info.operands.back());
  };
  EXPECT_EQ(written(), 4u * 8u);
  gemv.n = 0;
  EXPECT_EQ(written(), 0u) << "y stays what it is, also with beta = 0";
  gemv.n = 4;
  gemv.incy = 2;
  EXPECT_EQ(written(), 0u) << "there are gaps";
}

/// What both sides of the ring say to an operation: the rank before it submits, the device host
/// when it reads the record.
Errc judged(const OperationInfo& info, std::span<const std::byte> op) {
  Recorder recorder;
  const auto& sample = sample_of(info);
  const Parts parts(sample.tail, some_data(info));
  const auto submitted = troupe::detail::submit(recorder, info, op, parts).wait().code();
  auto record = record_of(info, sample.op);
  std::memcpy(record.data() + sizeof(CommandHeader), op.data(), op.size());
  Command command;
  EXPECT_EQ(command.decode(record).code(), submitted) << "the two sides differ";
  return submitted;
}
template <Operation Op>
Errc judged(const Op& op) {
  return judged(info_of<Op>, std::as_bytes(std::span(&op, 1)));
}

/// Whether it is a factor that the operation takes by value alone: its sample has none in device
/// memory, and one there is refused.
bool host_only(const OperationInfo& info, const std::vector<std::byte>& sample,
               const OperandInfo& operand) {
  auto op = sample;
  auto& range = info.operand(op.data(), operand);
  if (range.present()) return false;
  range = range_in(90);
  return info.check(op.data()).code() == Errc::invalid;
}

bool is_outside(const OperationInfo& info, const std::vector<std::byte>& sample,
                const OperandInfo& operand) {
  return outside::is_outside(info.operand(sample.data(), operand));
}

TEST(EveryOperation, HasWhatItWritesForItselfOrInPlaceAsItDeclares) {
  each_operation([](const OperationInfo& info, const std::vector<std::byte>& sample) {
    for (const auto& one : info.operands) {
      for (const auto& other : info.operands) {
        if (one.name == other.name || info.access(sample.data(), one) == Access::read) continue;
        if (&one == info.cell || &other == info.cell) continue;  // in pinned memory: apart
        if (is_outside(info, sample, one) || is_outside(info, sample, other))
          continue;  // no memory
        if (host_only(info, sample, one) || host_only(info, sample, other)) continue;
        const bool in_place =
            std::any_of(info.in_place.begin(), info.in_place.end(), [&](const InPlace& rule) {
              return (rule.one == one.name && rule.other == other.name) ||
                     (rule.one == other.name && rule.other == one.name);
            });
        auto op = sample;
        auto& moved = info.operand(op.data(), one);
        const auto& fixed = info.operand(op.data(), other);
        const auto what = std::string(one.name) + " and " + std::string(other.name);
        moved = fixed;
        EXPECT_EQ(judged(info, op), in_place ? Errc::ok : Errc::invalid) << what;
        moved.offset = fixed.offset + fixed.bytes - 64;
        EXPECT_EQ(judged(info, op), Errc::invalid) << what << " overlap in part";
        moved.offset = fixed.offset + fixed.bytes;
        EXPECT_EQ(judged(info, op), Errc::ok) << what << " lie side by side";
      }
    }
  });
}

TEST(Overlap, APartOfAGatheredRangeIsAPart) {
  collective::AllGather op = sample_of<collective::AllGather>();
  op.source = op.destination;
  op.source.bytes = op.destination.bytes / 4;
  for (const std::uint64_t part : {0u, 1u, 3u}) {
    op.source.offset = op.destination.offset + part * op.source.bytes;
    EXPECT_EQ(judged(op), Errc::ok) << part;
  }
  op.source.offset = op.destination.offset + op.source.bytes / 2;
  EXPECT_EQ(judged(op), Errc::invalid) << "between two parts";
}

TEST(Overlap, OperandsOfOtherRanksOverlapWithinTheirBuffer) {
  auto op = sample_of<memory::Copy>();
  op.source = {kTokenRegion | 1u, 7, 1, 0, 0, 64};
  op.destination = op.source;
  EXPECT_EQ(judged(op), Errc::invalid);
  op.destination.buffer = 8;
  EXPECT_EQ(judged(op), Errc::ok);
}

TEST(Overlap, WhatIsReceivedLiesApartFromAllElseOfAnExchange) {
  const Operand base{1, 2, 3, 0, 0, 4096};
  const auto part = [&](std::uint64_t offset, std::uint64_t bytes, std::uint32_t receive) {
    TailOperand one{base, 0, receive != 0 ? Access::write : Access::read};
    one.range.offset = offset;
    one.range.bytes = bytes;
    return one;
  };
  const auto says = [](std::vector<TailOperand> tail) {
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
  std::vector<TailOperand> many;
  for (std::uint64_t i = 0; i < 1000; ++i) many.push_back(part(64 * i, 64, i % 2));
  EXPECT_EQ(says(many), Errc::ok);
  many.push_back(part(64 * 500 + 8, 8, 1));
  EXPECT_EQ(says(many), Errc::invalid);
}

TEST(Record, IsRefusedAtAnyOtherLength) {
  Command command;
  for (const auto& [info, op, tail, data] : samples()) {
    const auto name = info->name;
    const auto record = record_of(*info, op);
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
  for (const auto& [info, op, tail, data] : samples()) {
    const auto name = info->name;
    const auto record = record_of(*info, op);
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

TEST(EveryOperation, IsRefusedWithADTypeItDoesNotHave) {
  each_operation([](const OperationInfo& info, std::vector<std::byte> op) {
    if (info.operands.empty()) return;  // it touches no elements
    for (unsigned dtype = 0; dtype < 256; ++dtype) {
      if (info.dtypes.has(static_cast<DType>(dtype))) continue;
      op[0] = static_cast<std::byte>(dtype);  // where all operations have it
      EXPECT_EQ(info.check(op.data()).code(), Errc::unsupported) << dtype;
    }
  });
}

TEST(EveryOperation, IsRefusedIfAnOperandIsTooShort) {
  each_operation([](const OperationInfo& info, const std::vector<std::byte>& sample) {
    for (const auto opcode :
         {opcode_of<memory::Fence>, opcode_of<memory::Flip>, opcode_of<memory::StrayWrite>})
      if (info.opcode == opcode) return;  // of any range
    for (const auto& operand : info.operands) {
      if (info.opcode == opcode_of<memory::Digest> && operand.name == "source")
        continue;  // likewise
      if (host_only(info, sample, operand)) continue;
      if (info.library() == "file" && &operand != info.cell) continue;  // bytes, of any number
      if (info.library() == "channel") continue;                        // likewise
      auto op = sample;
      info.operand(op.data(), operand).bytes = 3;
      EXPECT_EQ(info.check(op.data()).code(), Errc::invalid) << operand.name;
    }
  });
}

constexpr auto kHuge = std::int64_t{1} << 62;

template <class Op, class Change>
void expect_invalid(Change change, std::string_view what) {
  auto op = sample_of<Op>();
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
  expect_invalid<blas::Gemv>([](auto& op) { op.transpose = static_cast<blas::Transpose>(3); },
                             "transpose");
  expect_invalid<blas::Gemm>([](auto& op) { op.k = -1; }, "negative k");
  expect_invalid<blas::Gemm>([](auto& op) { op.n = op.ldb = kHuge, op.k = kHuge; },
                             "size overflows");
  expect_invalid<blas::Gemm>([](auto& op) { op.ldc = 200; }, "c too short for ldc");
  expect_invalid<sparse::Spmv>([](auto& op) { op.a.index_dtype = DType::u32; }, "index type");
  expect_invalid<sparse::Spmv>([](auto& op) { op.a.rows = 1024; }, "x too short");
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
  expect_invalid<collective::AllReduce>(
      [](auto& op) { op.op = static_cast<ReduceOp>(collective::kReduceOpCount); }, "reduction");
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
  auto axpy = sample_of<blas::Axpy>();
  axpy.n = 0;
  EXPECT_TRUE(axpy.check().ok());
  auto gemm = sample_of<blas::Gemm>();
  gemm.m = gemm.n = gemm.k = 0;
  EXPECT_TRUE(gemm.check().ok());
  auto reduce = sample_of<collective::Reduce>();
  reduce.destination = {};
  EXPECT_TRUE(reduce.check().ok()) << "the result is at the root only";
}

TEST(Record, ATailHasABound) {
  std::vector<TailOperand> tail(kMaxTail);
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
  static const auto sound_records = [] {
    std::vector<std::vector<std::byte>> all;
    for (const auto& [info, op, tail, data] : samples()) all.push_back(record_of(*info, op));
    return all;
  }();
  for (auto record : sound_records) {
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
    for (const auto& use : command.operands()) EXPECT_FALSE(use.name.empty());
  }
}

TEST(Record, RandomBytesNeverCrash) {
  std::uint64_t refused = 0;
  const auto seeds = troupe::test::fewer_if_brief(2000);
  for (std::uint32_t seed = 1; seed <= seeds && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    Command command;
    mutate(random, command, refused);
    std::vector<std::byte> noise(random() % 600);
    for (auto& byte : noise) byte = static_cast<std::byte>(random());
    EXPECT_FALSE(command.decode(noise).ok());
  }
  EXPECT_GT(refused, seeds);
}

}  // namespace
}  // namespace troupe::wire
