#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "common/core/narrow_float.hpp"
#include "cpu_engine_rig.hpp"

namespace troupe::host {
namespace {

template <class T>
struct Real {
  using type = T;
  static T make(double value) { return static_cast<T>(value); }
  static double read(T value) { return static_cast<double>(value); }
};
template <class T>
requires requires {
  typename std::enable_if_t<!std::is_arithmetic_v<T>>;
}
struct Real<T> {
  static T make(double value) { return troupe::narrow<T>(static_cast<float>(value)); }
  static double read(T value) { return troupe::widen(value); }
};

constexpr ReduceOp kReduceOps[] = {ReduceOp::sum, ReduceOp::prod, ReduceOp::min, ReduceOp::max,
                                   ReduceOp::avg};

/// Small integers, so that every result is exact in every dtype.
double element(int rank, std::size_t i) {
  return static_cast<double>((static_cast<std::size_t>(rank) * 3 + i) % 4);
}

double reduced(ReduceOp op, int size, std::size_t i, bool integer) {
  double result = element(0, i);
  for (int rank = 1; rank < size; ++rank) {
    const double value = element(rank, i);
    switch (op) {
      case ReduceOp::sum:
      case ReduceOp::premul_sum:
      case ReduceOp::avg: result += value; break;
      case ReduceOp::prod: result *= value; break;
      case ReduceOp::min: result = std::min(result, value); break;
      case ReduceOp::max: result = std::max(result, value); break;
    }
  }
  if (op != ReduceOp::avg) return result;
  return integer ? std::trunc(result / size) : result / size;
}

template <class T>
class CollectiveTyped : public ::testing::Test {};
using Reducibles =
    ::testing::Types<Half, BFloat16, float, double, Float8E4M3, Float8E5M2, std::int8_t,
                     std::uint8_t, std::int32_t, std::uint32_t, std::int64_t, std::uint64_t>;
TYPED_TEST_SUITE(CollectiveTyped, Reducibles);

TYPED_TEST(CollectiveTyped, ReductionsAgreeWithTheComputedAnswer) {
  using T = TypeParam;
  for (const int size : {1, 2, 4}) {
    World world(size);
    world.connect();
    world.on_all([&](int rank, Rig& rig) {
      for (const auto op : kReduceOps) {
        for (const std::size_t count : {1u, 5u, 1000u}) {
          rig.reset();
          const auto ranks = static_cast<std::size_t>(size);
          std::vector<T> source(count * ranks);
          for (std::size_t i = 0; i < source.size(); ++i)
            source[i] = Real<T>::make(element(rank, i));
          const auto expect = [&](const Operand& where, std::size_t first) {
            const auto values = rig.get<T>(where);
            for (std::size_t i = 0; i < count; ++i) {
              const double answer =
                  Real<T>::read(Real<T>::make(reduced(op, size, first + i, std::is_integral_v<T>)));
              ASSERT_EQ(Real<T>::read(values[i]), answer) << to_string(op) << " at " << i;
            }
          };
          auto in = rig.put(source);
          in.bytes = count * sizeof(T);
          const auto out = rig.put(std::vector<T>(count));
          ASSERT_TRUE(rig.execute(collective::AllReduce{dtype_of<T>, op, 0, count, in, out}));
          expect(out, 0);
          const auto root = static_cast<std::uint32_t>(size - 1);
          const bool at_root = rank == size - 1;
          ASSERT_TRUE(rig.execute(
              collective::Reduce{dtype_of<T>, op, root, count, in, at_root ? out : Operand{}}));
          if (at_root) expect(out, 0);

          in.bytes = source.size() * sizeof(T);
          ASSERT_TRUE(rig.execute(collective::ReduceScatter{dtype_of<T>, op, 0, count, in, out}));
          expect(out, static_cast<std::size_t>(rank) * count);
          auto own = in;  // in place, as NCCL allows it
          own.offset += static_cast<std::size_t>(rank) * count * sizeof(T);
          own.bytes = count * sizeof(T);
          ASSERT_TRUE(rig.execute(collective::ReduceScatter{dtype_of<T>, op, 0, count, in, own}));
          expect(own, static_cast<std::size_t>(rank) * count);

          auto same = rig.put(source);
          same.bytes = count * sizeof(T);
          ASSERT_TRUE(rig.execute(
              collective::Reduce{dtype_of<T>, op, 0, count, same, rank == 0 ? same : Operand{}}));
          if (rank == 0) expect(same, 0);
          same = rig.put(source);
          same.bytes = count * sizeof(T);
          ASSERT_TRUE(rig.execute(collective::AllReduce{dtype_of<T>, op, 0, count, same, same}));
          expect(same, 0);
        }
      }
    });
  }
}

TEST(Collective, IntegersWrapAroundAndAveragesTruncate) {
  World world(2);
  world.connect();
  world.on_all([&](int rank, Rig& rig) {
    const auto x = rig.put(std::vector<std::int8_t>{100, -3, static_cast<std::int8_t>(rank)});
    const auto y = rig.put(std::vector<std::int8_t>(3));
    ASSERT_TRUE(rig.execute(collective::AllReduce{DType::i8, ReduceOp::sum, 0, 3, x, y}));
    EXPECT_EQ(rig.get<std::int8_t>(y), (std::vector<std::int8_t>{-56, -6, 1}));
    const auto z = rig.put(std::vector<std::int8_t>{-3, static_cast<std::int8_t>(rank)});
    ASSERT_TRUE(rig.execute(collective::AllReduce{DType::i8, ReduceOp::avg, 0, 2, z, z}));
    EXPECT_EQ(rig.get<std::int8_t>(z), (std::vector<std::int8_t>{-3, 0}));
  });
}

/// A mean is what its exact value rounds to, though the sum may be beyond the range; and dividing
/// in two steps gives the bits of one division.
TEST(Collective, MeansAreThoseOfTheExactSum) {
  for (const int size : {2, 3, 4}) {
    World world(size);
    world.connect();
    world.on_all([&](int rank, Rig& rig) {
      constexpr float kMost = std::numeric_limits<float>::max();
      std::vector<float> source{kMost, -kMost, 0x1p-140f};
      std::vector<float> expected{kMost, -kMost, 0x1p-140f};
      for (int i = 0; i < 1000; ++i) {
        source.push_back(static_cast<float>(i * (rank + 1)) / 8);  // their sums are exact
        expected.push_back(static_cast<float>(i * size * (size + 1) / 2) / 8 /
                           static_cast<float>(size));
      }
      const auto count = source.size();
      const auto in = rig.put(source), out = rig.put(std::vector<float>(count));
      ASSERT_TRUE(rig.execute(collective::AllReduce{DType::f32, ReduceOp::avg, 0, count, in, out}));
      EXPECT_EQ(rig.get<float>(out), expected);
      EXPECT_EQ(rig.get<float>(in), source);
    });
  }
}

TEST(Collective, LargeReductionsInManySegments) {
  constexpr std::size_t kCount = 3'000'017;
  World world(3, std::uint64_t{64} << 20);
  world.connect();
  world.on_all([&](int rank, Rig& rig) {
    std::vector<std::int32_t> source(kCount);
    for (std::size_t i = 0; i < kCount; ++i) source[i] = static_cast<std::int32_t>(i) * (rank + 1);
    const auto expect = [&](const Operand& where) {
      const auto values = rig.get<std::int32_t>(where);
      for (std::size_t i = 0; i < kCount; ++i)
        ASSERT_EQ(values[i], static_cast<std::int32_t>(i) * 6) << i;
    };
    const auto in = rig.put(source), out = rig.put(std::vector<std::int32_t>(kCount));
    ASSERT_TRUE(rig.execute(collective::AllReduce{DType::i32, ReduceOp::sum, 0, kCount, in, out}));
    expect(out);
    ASSERT_TRUE(rig.execute(
        collective::Reduce{DType::i32, ReduceOp::sum, 1, kCount, in, rank == 1 ? in : Operand{}}));
    if (rank == 1) expect(in);
  });
}

TEST(Collective, MovesDataOfEveryDtype) {
  for (const int size : {1, 2, 4}) {
    World world(size);
    world.connect();
    world.on_all([&](int rank, Rig& rig) {
      const auto ranks = static_cast<std::size_t>(size);
      const auto byte = [](int from, std::size_t i) {
        return static_cast<std::uint8_t>(from * 50 + static_cast<int>(i % 47));
      };
      for (std::size_t d = 0; d < kDTypeCount; ++d) {
        const auto dtype = static_cast<DType>(d);
        for (const std::size_t count : {1u, 100u, 20000u}) {
          rig.reset();
          const std::size_t bytes = count * size_of(dtype);
          std::vector<std::uint8_t> own(bytes * ranks);
          for (std::size_t i = 0; i < own.size(); ++i) own[i] = byte(rank, i);

          auto data = rig.put(own);
          data.bytes = bytes;
          ASSERT_TRUE(rig.execute(
              collective::Broadcast{dtype, static_cast<std::uint32_t>(size - 1), 0, count, data}));
          auto values = rig.get<std::uint8_t>(data);
          for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(values[i], byte(size - 1, i));

          auto in = rig.put(own);
          in.bytes = bytes;
          const auto out = rig.put(std::vector<std::uint8_t>(bytes * ranks));
          ASSERT_TRUE(rig.execute(collective::AllGather{dtype, count, in, out}));
          const auto expect_gathered = [&](const Operand& where) {
            const auto gathered = rig.get<std::uint8_t>(where);
            for (std::size_t i = 0; i < gathered.size(); ++i) {
              ASSERT_EQ(gathered[i], byte(static_cast<int>(i / bytes), i % bytes));
            }
          };
          expect_gathered(out);
          rig.reset();
          const auto place = rig.put(std::vector<std::uint8_t>(bytes * ranks));  // in place
          auto part = place;
          part.offset += static_cast<std::size_t>(rank) * bytes;
          part.bytes = bytes;
          std::memcpy(rig.slab.base + part.offset, own.data(), bytes);
          ASSERT_TRUE(rig.execute(collective::AllGather{dtype, count, part, place}));
          expect_gathered(place);

          in = rig.put(own);
          const auto exchanged = rig.put(std::vector<std::uint8_t>(bytes * ranks));
          ASSERT_TRUE(rig.execute(collective::AllToAll{dtype, count, in, exchanged}));
          values = rig.get<std::uint8_t>(exchanged);
          for (std::size_t i = 0; i < values.size(); ++i) {
            ASSERT_EQ(values[i], byte(static_cast<int>(i / bytes),
                                      static_cast<std::size_t>(rank) * bytes + i % bytes));
          }
        }
      }
    });
  }
}

TEST(Collective, ExchangeMatchesMessagesInOrder) {
  for (const int size : {1, 3}) {
    World world(size);
    world.connect();
    world.on_all([&](int rank, Rig& rig) {
      // To every rank, itself included, three messages of different lengths, the last one empty;
      // sends stand before receives at even ranks and behind them at odd ones. Large enough not to
      // fit into a socket.
      const std::array<std::size_t, 3> lengths = {400000, 3, 0};
      std::vector<TailOperand> sends, receives;
      for (int peer = 0; peer < size; ++peer) {
        for (std::size_t k = 0; k < lengths.size(); ++k) {
          const auto mark = static_cast<std::uint8_t>(rank * 16 + peer * 4 + static_cast<int>(k));
          const auto other = static_cast<std::uint32_t>(peer);
          sends.push_back(
              collective::sent(rig.put(std::vector<std::uint8_t>(lengths[k], mark)), other));
          receives.push_back(
              collective::received(rig.put(std::vector<std::uint8_t>(lengths[k], 0xff)), other));
        }
      }
      auto tail = rank % 2 == 0 ? sends : receives;
      const auto& rest = rank % 2 == 0 ? receives : sends;
      tail.insert(tail.end(), rest.begin(), rest.end());
      ASSERT_TRUE(rig.execute(collective::Exchange{DType::u8}, tail));
      for (std::size_t i = 0; i < receives.size(); ++i) {
        const auto k = i % 3;
        const auto mark =
            static_cast<std::uint8_t>(receives[i].tag * 16 + static_cast<unsigned>(rank) * 4 + k);
        ASSERT_EQ(rig.get<std::uint8_t>(receives[i].range),
                  std::vector<std::uint8_t>(lengths[k], mark));
      }
    });
  }
}

TEST(Collective, BadArgumentsAreRefusedAtOnce) {
  Rig rig;
  const auto x = rig.put(std::vector<float>{1, 2});
  EXPECT_EQ(rig.queue(collective::AllReduce{DType::f32, ReduceOp::sum, 0, 1, x, x}).code(),
            Errc::world_reformed);
  connect_alone(*rig.engine);
  EXPECT_EQ(rig.queue(collective::Broadcast{DType::f32, 1, 0, 1, x}).code(), Errc::invalid);
  const std::array<TailOperand, 1> stranger = {collective::sent(x, 1)};
  EXPECT_EQ(rig.queue(collective::Exchange{DType::f32}, stranger).code(), Errc::invalid);
  const std::array<TailOperand, 1> unmatched = {collective::sent(x, 0)};
  EXPECT_EQ(rig.queue(collective::Exchange{DType::f32}, unmatched).code(), Errc::invalid);
  EXPECT_EQ(rig.engine->collectives().contribute({3, 2}).code(), Errc::invalid);
  EXPECT_EQ(rig.engine->collectives().connect({0, 2}, {}).code(), Errc::invalid);
}

TEST(Collective, PartsThatTheWorldDoesNotHaveRoomForAreRefused) {
  // Records whose own check() holds: what is wrong with them shows only beside the world's size.
  World world(3);
  world.connect();
  world.on_all([&](int rank, Rig& rig) {
    const auto one = rig.put(std::vector<float>(4)), two = rig.put(std::vector<float>(8));
    const auto three = rig.put(std::vector<float>(12));
    const auto refused = [&](const auto& op) {
      ASSERT_TRUE(op.check().ok());
      EXPECT_EQ(rig.queue(op).code(), Errc::invalid) << op.kName;
    };
    refused(collective::AllGather{DType::f32, 4, one, two});
    refused(collective::ReduceScatter{DType::f32, ReduceOp::sum, 0, 4, two, one});
    refused(collective::AllToAll{DType::f32, 4, two, two});
    refused(collective::Broadcast{DType::f32, 3, 0, 4, one});
    refused(collective::Reduce{DType::f32, ReduceOp::sum, 3, 4, one, one});
    const auto own = static_cast<std::uint32_t>(rank);
    refused(collective::Reduce{DType::f32, ReduceOp::sum, own, 4, one, {}});
    // Nothing was queued: the world goes on, also with a destination at the root alone.
    EXPECT_TRUE(rig.execute(collective::AllGather{DType::f32, 4, one, three}).ok());
    EXPECT_TRUE(rig.execute(collective::Reduce{DType::f32, ReduceOp::sum, 1, 4, one,
                                               rank == 1 ? two : Operand{}})
                    .ok());
  });
}

TEST(Collective, DifferingLengthsAreAnErrorAndNotACrash) {
  World world(2);
  world.connect();
  world.on_all([&](int rank, Rig& rig) {
    const auto x = rig.put(std::vector<std::uint8_t>(100));
    auto data = x;
    if (rank == 1) data.bytes = 50;
    const std::array<TailOperand, 1> tail = {TailOperand{data, static_cast<std::uint32_t>(1 - rank),
                                                         rank == 1 ? Access::write : Access::read}};
    const auto moved = rig.execute(collective::Exchange{DType::u8}, tail);
    EXPECT_EQ(rank == 1 ? moved.code() : Errc::library, Errc::library);
  });
}

}  // namespace
}  // namespace troupe::host
