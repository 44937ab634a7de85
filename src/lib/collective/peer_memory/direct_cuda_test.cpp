// Small all-reduces by the kernels that write to one another's memory. The ranks are threads, and
// share a GPU.
#include <cuda_fp16.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>
#include <vector>

#include "device_host/engine/cuda/handles.hpp"
#include "device_host/engine/cuda/peer_memory.hpp"
#include "lib/collective/peer_memory/direct_kernels.cuh"

namespace troupe::host::cuda {
namespace {

using kernels::DirectOp;

struct Member {
  std::unique_ptr<PeerMemory> memory;
  kernels::DirectRanks ranks;
  Stream stream;
  DeviceMemory source, destination;
};

class DirectTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kBytes = kernels::kDirectBytes + 64;

  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0)
      GTEST_SKIP() << "no CUDA engine here";
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    ASSERT_EQ(cudaHostAlloc(given_up_.out(), sizeof(std::uint32_t), cudaHostAllocMapped),
              cudaSuccess);
    given_up() = 0;
    ASSERT_EQ(kernels::preload_direct(), cudaSuccess);
  }
  volatile std::uint32_t& given_up() { return *static_cast<std::uint32_t*>(given_up_.get()); }

  void form(int count, std::uint32_t calls_before = 0) {
    members_ = std::vector<Member>(static_cast<std::size_t>(count));
    const std::vector<std::uint32_t> calls(kernels::kDirectBlocks, calls_before);
    std::vector<PeerMemory::Card> cards;
    for (auto& member : members_) {
      auto made = PeerMemory::make(0, kernels::inbox_bytes(count), std::as_bytes(std::span(calls)));
      ASSERT_TRUE(made.ok()) << made.error().to_string();
      member.memory = std::move(*made);
      cards.push_back(member.memory->card());
    }
    ASSERT_TRUE(PeerMemory::can_meet(cards));
    std::vector<std::thread> threads;
    std::vector<Result<void>> met(members_.size());
    for (std::size_t rank = 0; rank < members_.size(); ++rank) {
      threads.emplace_back([&, rank] {
        (void)cudaSetDevice(0);
        met[rank] =
            members_[rank].memory->meet(static_cast<int>(rank), cards, [] { return false; });
      });
    }
    for (auto& thread : threads) thread.join();
    for (std::size_t rank = 0; rank < members_.size(); ++rank) {
      ASSERT_TRUE(met[rank].ok()) << met[rank].error().to_string();
      prepare(members_[rank], static_cast<int>(rank), count);
    }
  }
  void prepare(Member& member, int rank, int count) {
    member.ranks.rank = rank, member.ranks.ranks = count;
    for (int peer = 0; peer < count; ++peer) member.ranks.inbox[peer] = member.memory->of(peer);
    member.ranks.calls =
        reinterpret_cast<std::uint32_t*>(member.memory->own() + kernels::inbox_bytes(count));
    member.ranks.given_up = &given_up();
    ASSERT_EQ(cudaStreamCreateWithFlags(member.stream.out(), cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaMalloc(member.source.out(), kBytes), cudaSuccess);
    ASSERT_EQ(cudaMalloc(member.destination.out(), kBytes), cudaSuccess);
  }

  template <class T>
  void launch(std::size_t rank, DirectOp op, std::size_t count, std::size_t skipped, bool in_place,
              const T* scalar) {
    auto& member = members_[rank];
    const auto* const source = static_cast<const T*>(member.source.get()) + skipped;
    auto* const destination =
        in_place ? const_cast<T*>(source) : static_cast<T*>(member.destination.get()) + skipped;
    kernels::ScalarValue<T> value;
    if (scalar != nullptr) value.value = *scalar;
    ASSERT_EQ(kernels::reduce_directly({member.stream.get(), 1}, member.ranks, op, count,
                                       scalar != nullptr, value, source, destination),
              cudaSuccess);
  }
  /// The result, alike on all ranks. `of(rank, i)`: their elements.
  template <class T, class Of>
  std::vector<T> reduce(DirectOp op, std::size_t count, const Of& of, std::size_t skipped = 0,
                        bool in_place = false, const T* scalar = nullptr) {
    std::vector<T> values(count);
    for (std::size_t rank = 0; rank < members_.size(); ++rank) {
      for (std::size_t i = 0; i < count; ++i) values[i] = of(rank, i);
      EXPECT_EQ(cudaMemcpy(static_cast<T*>(members_[rank].source.get()) + skipped, values.data(),
                           count * sizeof(T), cudaMemcpyHostToDevice),
                cudaSuccess);
    }
    for (std::size_t rank = 0; rank < members_.size(); ++rank)
      launch(rank, op, count, skipped, in_place, scalar);
    std::vector<T> first;
    for (auto& member : members_) {
      EXPECT_EQ(cudaStreamSynchronize(member.stream.get()), cudaSuccess);
      const auto& memory = in_place ? member.source : member.destination;
      EXPECT_EQ(cudaMemcpy(values.data(), static_cast<T*>(memory.get()) + skipped,
                           count * sizeof(T), cudaMemcpyDeviceToHost),
                cudaSuccess);
      if (first.empty())
        first = values;
      else
        EXPECT_EQ(std::memcmp(first.data(), values.data(), count * sizeof(T)), 0);
    }
    return first;
  }

  HostMemory given_up_;
  std::vector<Member> members_;
};

TEST_F(DirectTest, SumsOfAllLengthsAndPlaces) {
  // More would not all be there at once on one GPU.
  for (const int ranks : {2, 3, 4}) {
    form(ranks);
    const auto of = [](std::size_t rank, std::size_t i) {
      return static_cast<float>((rank + 1) * (i % 1000 + 1));
    };
    const auto most = kernels::kDirectBytes / sizeof(float);
    for (const std::size_t count : {std::size_t{1}, std::size_t{2}, std::size_t{63},
                                    std::size_t{1024}, std::size_t{1025}, most - 1, most}) {
      for (const std::size_t skipped : {0, 1, 2}) {
        for (const bool in_place : {false, true}) {
          const auto sums = reduce<float>(DirectOp::sum, count, of, skipped, in_place);
          const auto all = static_cast<float>(ranks * (ranks + 1) / 2);
          for (std::size_t i = 0; i < count; ++i)
            ASSERT_EQ(sums[i], all * static_cast<float>(i % 1000 + 1)) << count << " at " << i;
        }
      }
    }
  }
}

TEST_F(DirectTest, OperationsAndTypes) {
  form(3);
  const auto of = [](std::size_t rank, std::size_t i) {
    return static_cast<int>(i % 5) + static_cast<int>(rank) - 2;
  };
  const auto check = [&]<class T>(T, auto value_of) {
    const auto at = [&](std::size_t rank, std::size_t i) { return T(of(rank, i)); };
    const auto wanted = [&](DirectOp op, std::size_t i) {
      const int a = of(0, i), b = of(1, i), c = of(2, i);
      switch (op) {
        case DirectOp::product: return a * b * c;
        case DirectOp::min: return std::min({a, b, c});
        case DirectOp::max: return std::max({a, b, c});
        case DirectOp::mean: return (a + b + c) / 3;
        default: return a + b + c;
      }
    };
    for (const auto op :
         {DirectOp::sum, DirectOp::product, DirectOp::min, DirectOp::max, DirectOp::mean}) {
      const auto values = reduce<T>(op, 101, at);
      for (std::size_t i = 0; i < values.size(); ++i)
        ASSERT_NEAR(value_of(values[i]), wanted(op, i), 1e-3) << static_cast<int>(op) << " " << i;
    }
  };
  check(float{}, [](float x) { return double{x}; });
  check(double{}, [](double x) { return x; });
  check(std::int8_t{}, [](std::int8_t x) { return double{1} * x; });
  check(std::int32_t{}, [](std::int32_t x) { return double{1} * x; });
  check(std::int64_t{}, [](std::int64_t x) { return static_cast<double>(x); });
  check(__half{}, [](__half x) { return double{__half2float(x)}; });
}

TEST_F(DirectTest, OneRuleForNumbersAtTheEdges) {
  form(2);
  const float nan = std::nanf(""), large = std::numeric_limits<float>::max();
  const auto of = [&](std::size_t rank, std::size_t i) {
    return i == 0 && rank == 0 ? nan : i == 1 && rank == 1 ? nan : i == 2 ? large : 1.0f;
  };
  for (const auto op : {DirectOp::min, DirectOp::max}) {
    const auto values = reduce<float>(op, 4, of);
    EXPECT_TRUE(std::isnan(values[0]) && std::isnan(values[1]));
    EXPECT_EQ(values[2], large);
    EXPECT_EQ(values[3], 1);
  }
  EXPECT_EQ(reduce<float>(DirectOp::mean, 4, of)[2], large) << "the sum would be infinite";
  const float half = 0.5f;
  EXPECT_EQ(reduce<float>(DirectOp::sum, 4, of, 0, false, &half)[3], 1);
}

TEST_F(DirectTest, TheNumberOfACallReturnsToTheFirst) {
  form(2, kernels::kLastCall - 5);
  const auto most = kernels::kDirectBytes / sizeof(std::int32_t);
  for (std::int32_t call = 0; call < 12; ++call) {
    const auto count = call % 3 == 0 ? most : std::size_t{10};
    const auto of = [&](std::size_t rank, std::size_t i) {
      return static_cast<std::int32_t>(i) + 100 * call + static_cast<std::int32_t>(rank);
    };
    const auto sums = reduce<std::int32_t>(DirectOp::sum, count, of);
    for (std::size_t i = 0; i < count; ++i)
      ASSERT_EQ(sums[i], 2 * (static_cast<std::int32_t>(i) + 100 * call) + 1) << "call " << call;
  }
}

TEST_F(DirectTest, BarriersBetweenSumsOrderWhatRanksReadOfOneAnother) {
  form(2, kernels::kLastCall - 6);
  const auto of = [](std::size_t rank, std::size_t) { return static_cast<std::int32_t>(rank); };
  for (int round = 0; round < 8; ++round) {
    for (std::size_t rank = 0; rank < 2; ++rank) {
      auto& member = members_[rank];
      const auto stream = member.stream.get();
      const auto value = static_cast<int>(10 * round) + static_cast<int>(rank);
      ASSERT_EQ(cudaMemsetAsync(member.source.get(), value, kBytes, stream), cudaSuccess);
      ASSERT_EQ(kernels::meet_directly({stream, 1}, member.ranks), cudaSuccess);
      ASSERT_EQ(cudaMemcpyAsync(member.destination.get(), members_[1 - rank].source.get(), kBytes,
                                cudaMemcpyDeviceToDevice, stream),
                cudaSuccess);
      ASSERT_EQ(kernels::meet_directly({stream, 1}, member.ranks), cudaSuccess);
      ASSERT_EQ(cudaMemsetAsync(member.source.get(), 255, kBytes, stream), cudaSuccess);
    }
    for (std::size_t rank = 0; rank < 2; ++rank) {
      std::vector<std::uint8_t> got(kBytes);
      ASSERT_EQ(cudaStreamSynchronize(members_[rank].stream.get()), cudaSuccess);
      ASSERT_EQ(
          cudaMemcpy(got.data(), members_[rank].destination.get(), kBytes, cudaMemcpyDeviceToHost),
          cudaSuccess);
      const auto wanted = static_cast<std::uint8_t>(10 * round + 1 - static_cast<int>(rank));
      ASSERT_EQ(std::count(got.begin(), got.end(), wanted), std::ssize(got)) << "round " << round;
    }
    ASSERT_EQ(reduce<std::int32_t>(DirectOp::sum, 10, of)[0], 1);
  }
}

TEST_F(DirectTest, OneThatIsGivenUpEnds) {
  form(2);
  launch<float>(0, DirectOp::sum, 1000, 0, false, nullptr);  // and nobody else
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(cudaStreamQuery(members_[0].stream.get()), cudaErrorNotReady);
  given_up() = 1;
  EXPECT_EQ(cudaStreamSynchronize(members_[0].stream.get()), cudaSuccess);
}

TEST_F(DirectTest, WhoHasNoMemoryDoesNotMeet) {
  form(2);
  const std::vector<PeerMemory::Card> all{members_[0].memory->card(), {}};
  EXPECT_FALSE(PeerMemory::can_meet(all));
  auto elsewhere = members_[1].memory->card();
  elsewhere.host[0] = static_cast<char>(elsewhere.host[0] + 1);
  EXPECT_FALSE(
      PeerMemory::can_meet(std::vector<PeerMemory::Card>{members_[0].memory->card(), elsewhere}));
}

TEST_F(DirectTest, AMeetingThatIsGivenUpEnds) {
  const std::vector<std::uint32_t> calls(kernels::kDirectBlocks);
  auto mine = PeerMemory::make(0, kernels::inbox_bytes(2), std::as_bytes(std::span(calls)));
  auto theirs = PeerMemory::make(0, kernels::inbox_bytes(2), std::as_bytes(std::span(calls)));
  ASSERT_TRUE(mine.ok() && theirs.ok());
  const std::vector<PeerMemory::Card> cards{(*mine)->card(), (*theirs)->card()};
  EXPECT_EQ((*mine)->meet(0, cards, [] { return true; }).code(), Errc::peer_lost);
}

}  // namespace
}  // namespace troupe::host::cuda
