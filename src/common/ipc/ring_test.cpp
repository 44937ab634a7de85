// The rings between two processes: against a model, and across real processes.
#include "common/ipc/ring.hpp"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <cerrno>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "common/ipc/doorbell.hpp"
#include "common/ipc/shared_memory.hpp"
#include "heap_ring.hpp"

namespace troupe::ipc {
namespace {

std::vector<std::byte> copy_of(std::span<const std::byte> bytes) {
  return {bytes.begin(), bytes.end()};
}

void push(RingProducer& producer, std::span<const std::byte> record) {
  auto room = producer.reserve(record.size());
  ASSERT_TRUE(room.ok() && room->size() == record.size());
  std::copy(record.begin(), record.end(), room->begin());
  (void)producer.commit();
}

TEST(Ring, BehavesLikeABoundedQueue) {
  std::uint64_t full = 0, popped = 0;
  for (std::uint32_t seed = 1; seed <= 300 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    HeapRing ring(std::uint64_t{64} << random() % 6);
    auto producer = ring.producer();
    auto consumer = ring.consumer();
    std::deque<std::vector<std::byte>> model;
    std::uint64_t held = 0;  // bytes the model's records take in the ring, padding included
    const auto bias = random() % 100;
    for (int i = 0; i < 1000 && !HasFailure(); ++i) {
      if (random() % 100 < bias) {
        std::vector<std::byte> record(1 + random() % producer.max_record());
        for (auto& byte : record) byte = static_cast<std::byte>(random());
        const auto need = ring_detail::padded(record.size());
        auto room = producer.reserve(record.size());
        ASSERT_TRUE(room.ok());
        if (room->empty()) {
          // Refused only for want of room, where less than the record's own length may be lost by
          // not wrapping.
          const auto used = producer.position() - ring.control->head;
          ASSERT_GE(used, held);
          ASSERT_GT(used + need + (need - 8) + ring_detail::kWord, ring.capacity);
          ASSERT_FALSE(model.empty());
          ++full;
          continue;
        }
        ASSERT_EQ(room->size(), record.size());
        std::copy(record.begin(), record.end(), room->begin());
        EXPECT_FALSE(producer.commit()) << "nobody had announced to sleep";
        held += need;
        ASSERT_LE(held, ring.capacity);
        model.push_back(std::move(record));
      } else {
        auto record = consumer.front();
        ASSERT_TRUE(record.ok());
        ASSERT_EQ(record->empty(), model.empty());
        ASSERT_EQ(consumer.empty(), model.empty());
        if (model.empty()) continue;
        ASSERT_EQ(copy_of(*record), model.front());
        ASSERT_EQ(copy_of(*consumer.front()), model.front()) << "front() twice is the same record";
        consumer.pop();
        held -= ring_detail::padded(model.front().size());
        model.pop_front();
        ++popped;
      }
    }
  }
  EXPECT_GT(full, 1000u) << "the full ring was hardly tried";
  EXPECT_GT(popped, 10000u);
}

TEST(Ring, TheLargestRecordFitsAnEmptyRingWhereverItStands) {
  for (std::uint64_t lead = 1; lead <= 24; ++lead) {
    HeapRing ring(64);
    auto producer = ring.producer();
    auto consumer = ring.consumer();
    for (int lap = 0; lap < 20; ++lap) {
      for (const auto bytes : {lead, producer.max_record()}) {
        auto room = producer.reserve(bytes);
        ASSERT_TRUE(room.ok() && !room->empty()) << bytes << " bytes in lap " << lap;
        (void)producer.commit();
        ASSERT_EQ(consumer.front()->size(), bytes);
        consumer.pop();
      }
    }
  }
}

TEST(Ring, CommitWakesASleeperOnce) {
  HeapRing ring(256);
  auto producer = ring.producer();
  auto consumer = ring.consumer();
  const auto send = [&] {
    EXPECT_FALSE(producer.reserve(8)->empty());
    return producer.commit();
  };
  EXPECT_FALSE(send());
  consumer.announce_sleep();
  EXPECT_TRUE(send());
  EXPECT_FALSE(send()) << "it has been woken already";
  consumer.announce_sleep();
  consumer.cancel_sleep();
  EXPECT_FALSE(send());
}

TEST(Ring, SkipReadsAheadWithoutFreeing) {
  HeapRing ring(64);
  auto producer = ring.producer();
  for (int i = 0; i < 3; ++i) {
    const auto byte = static_cast<std::byte>(i);
    push(producer, std::span(&byte, 1));
  }
  auto reader = ring.consumer();
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ((*reader.front())[0], static_cast<std::byte>(i));
    reader.skip();
  }
  EXPECT_TRUE(reader.front()->empty());
  EXPECT_TRUE(producer.reserve(1)->empty()) << "nothing was freed";
  auto owner = ring.consumer();
  EXPECT_EQ((*owner.front())[0], std::byte{0});
}

TEST(Ring, AProducerMayTakeOverARingThatIsNotEmpty) {
  HeapRing ring(64);
  auto first = ring.producer();
  for (int i = 0; i < 2; ++i) {
    const auto byte = static_cast<std::byte>(i);
    push(first, std::span(&byte, 1));
  }
  auto second = ring.producer();
  EXPECT_FALSE(second.reserve(1)->empty());
  (void)second.commit();
  auto room = second.reserve(1);
  ASSERT_TRUE(room.ok());
  EXPECT_TRUE(room->empty()) << "it must not overwrite what nobody has read";
  auto consumer = ring.consumer();
  EXPECT_EQ((*consumer.front())[0], std::byte{0});
  consumer.pop();
  EXPECT_FALSE(second.reserve(1)->empty());
}

TEST(Ring, BytesThatLookLikeTheNextLapsWordAreNoRecord) {
  for (std::uint64_t words = 1; words <= 7; ++words) {
    HeapRing ring(128);
    auto producer = ring.producer();
    auto consumer = ring.consumer();
    for (int i = 0; i < 200; ++i) {
      ASSERT_TRUE(consumer.empty());
      ASSERT_TRUE(consumer.front()->empty());
      auto room = producer.reserve(words * 8);
      ASSERT_TRUE(room.ok() && !room->empty());
      for (std::uint64_t at = 0; at < words; ++at) {
        const auto word =
            ring_detail::word_of(producer.position() + 8 * (1 + at) + ring.capacity, 8);
        std::memcpy(room->data() + 8 * at, &word, sizeof word);
      }
      ASSERT_TRUE(consumer.front()->empty()) << "it is not committed";
      (void)producer.commit();
      ASSERT_EQ(consumer.front()->size(), words * 8);
      consumer.pop();
    }
  }
}

TEST(Ring, AProducerMayEndBetweenASkipMarkAndTheRecord) {
  HeapRing ring(64);
  auto first = ring.producer();
  auto consumer = ring.consumer();
  const std::vector<std::byte> record(24);
  push(first, record);
  consumer.pop();
  (void)consumer.front();
  consumer.pop();
  EXPECT_FALSE(first.reserve(17)->empty()) << "it takes the rest of the buffer, and more";
  EXPECT_TRUE(consumer.front()->empty());
  auto second = ring.producer();
  push(second, record);
  EXPECT_EQ(consumer.front()->size(), record.size());
}

TEST(Ring, ANewRingTakesAsMuchAsItSays) {
  HeapRing ring(256);
  auto producer = ring.producer();
  const auto each = ring_detail::padded(24);
  for (std::uint64_t used = 0; used + each <= producer.room_when_new(); used += each)
    push(producer, std::vector<std::byte>(24));
  const auto left = producer.room_when_new() % each;
  ASSERT_EQ(left, 24u);
  push(producer, std::vector<std::byte>(16));
  EXPECT_TRUE(producer.reserve(1)->empty());
}

// Two processes. Record i has a length and bytes that both sides can compute.

constexpr std::uint64_t kRecords = 100'000;
constexpr std::uint64_t kRingBytes = 8192;

struct Stream {
  explicit Stream(std::uint32_t seed) : random(seed) {}
  const std::vector<std::byte>& next() {
    record.resize(8 + random() % 200);
    const auto salt = random();
    for (std::size_t i = 0; i < record.size(); ++i)
      record[i] = static_cast<std::byte>(salt >> i % 4 * 8 ^ i);
    return record;
  }
  std::mt19937 random;
  std::vector<std::byte> record;
};

class RingProcesses : public ::testing::Test {
 protected:
  void SetUp() override {
    auto memory = SharedMemory::create("ring", 4096 + kRingBytes);
    ASSERT_TRUE(memory.ok());
    memory_ = std::move(*memory);
    auto bell = Doorbell::create();
    ASSERT_TRUE(bell.ok());
    bell_ = std::move(*bell);
    data_ = memory_.data() + 4096;
    control_ = reinterpret_cast<RingControl*>(memory_.data());
  }

  /// Writes `count` records; false if the ring is called corrupt.
  bool produce(std::uint64_t count) {
    RingProducer producer(control_, data_, kRingBytes);
    Stream stream(5);
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto& record = stream.next();
      auto room = producer.reserve(record.size());
      while (room.ok() && room->empty()) {
        ::sched_yield();
        room = producer.reserve(record.size());
      }
      if (!room.ok()) return false;
      std::copy(record.begin(), record.end(), room->begin());
      if (producer.commit()) bell_.ring();
    }
    return true;
  }

  /// Reads up to `count` records; returns how many came as they should. Stops early where `wait` is
  /// false and nothing is there.
  std::uint64_t consume(RingConsumer& consumer, Stream& stream, std::uint64_t count,
                        bool wait = true) {
    for (std::uint64_t i = 0; i < count; ++i) {
      auto record = consumer.front();
      while (record.ok() && record->empty()) {
        if (!wait) return i;
        consumer.announce_sleep();
        if (consumer.empty()) {
          pollfd bell{bell_.fd(), POLLIN, 0};
          if (::poll(&bell, 1, 20'000) != 1) return i;  // a lost wake-up
          bell_.clear();
        }
        consumer.cancel_sleep();
        record = consumer.front();
      }
      if (!record.ok() || copy_of(*record) != stream.next()) return i;
      consumer.pop();
    }
    return count;
  }

  SharedMemory memory_;
  Doorbell bell_;
  RingControl* control_ = nullptr;
  std::byte* data_ = nullptr;
};

TEST_F(RingProcesses, FromChildToParent) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(produce(kRecords) ? 0 : 1);
  RingConsumer consumer(control_, data_, kRingBytes);
  Stream stream(5);
  EXPECT_EQ(consume(consumer, stream, kRecords), kRecords);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(consumer.empty());
}

TEST_F(RingProcesses, FromParentToChild) {
  const pid_t child = ::fork();
  if (child == 0) {
    RingConsumer consumer(control_, data_, kRingBytes);
    Stream stream(5);
    ::_exit(consume(consumer, stream, kRecords) == kRecords ? 0 : 1);
  }
  EXPECT_TRUE(produce(kRecords));
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "the child missed a record, or slept through one";
}

TEST_F(RingProcesses, AKilledProducerLeavesAReadablePrefix) {
  for (std::uint32_t round = 0; round < 20; ++round) {
    SetUp();
    const pid_t child = ::fork();
    if (child == 0) ::_exit(produce(~std::uint64_t{0}) ? 0 : 1);
    RingConsumer consumer(control_, data_, kRingBytes);
    Stream stream(5);
    const std::uint64_t before = 100 + round * 37;
    ASSERT_EQ(consume(consumer, stream, before), before);
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "it should have been writing for ever";
    (void)consume(consumer, stream, ~std::uint64_t{0}, false);
    const auto end = consumer.front();
    EXPECT_TRUE(end.ok() && end->empty()) << "what was committed can be read to its end";
  }
}

/// Else the kernel ends processes, of this program or of others.
TEST(SharedMemory, IsLookedForBeforeItIsTaken) {
  const auto more = 2 * total_memory();
  ASSERT_GT(more, 0u);
  const auto refused = SharedMemory::create("unit", more, Look::first);
  EXPECT_EQ(refused.code(), Errc::out_of_memory);
  EXPECT_NE(refused.error().message.find("stay free"), std::string::npos)
      << refused.error().message;
  EXPECT_TRUE(SharedMemory::create("unit", 4096, Look::first).ok());
}

/// A larger one would end the process by a signal.
TEST(SharedMemory, BeyondTheLimitOfFileSizesIsAnErrorThatNamesIt) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit lower{1 << 20, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &lower), 0);
  const auto refused = SharedMemory::create("unit", 2 << 20),
             made = SharedMemory::create("unit", 1 << 20);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(refused.code(), Errc::out_of_memory);
  EXPECT_EQ(refused.error().native, EFBIG);
  EXPECT_NE(refused.error().message.find("1048576 bytes (RLIMIT_FSIZE"), std::string::npos)
      << refused.error().message;
  EXPECT_TRUE(made.ok());
}

}  // namespace
}  // namespace troupe::ipc
