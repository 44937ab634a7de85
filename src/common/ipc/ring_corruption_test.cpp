// Rings whose other side writes nonsense: an error, and never a step out of bounds (which
// AddressSanitizer would see).
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "heap_ring.hpp"

namespace troupe::ipc {
namespace {

TEST(RingCorruption, AConsumerRefusesImpossibleTails) {
  for (const std::uint64_t tail : {std::uint64_t{1}, std::uint64_t{12}, std::uint64_t{64 + 8},
                                   std::uint64_t{1} << 63, ~std::uint64_t{0}, ~std::uint64_t{7}}) {
    HeapRing ring(64);
    auto consumer = ring.consumer();
    ring.control->tail = tail;
    EXPECT_EQ(consumer.front().code(), Errc::internal) << tail;
  }
  HeapRing ring(64);
  ring.control->head = 16;
  auto consumer = ring.consumer();
  ring.control->tail = 8;
  EXPECT_EQ(consumer.front().code(), Errc::internal) << "a tail behind the head";
}

TEST(RingCorruption, AConsumerRefusesImpossibleLengths) {
  for (const std::uint64_t length :
       {std::uint64_t{0}, std::uint64_t{9}, std::uint64_t{17}, std::uint64_t{64}, std::uint64_t{65},
        std::uint64_t{1} << 63, ~std::uint64_t{0} - 1, ~std::uint64_t{7}}) {
    HeapRing ring(64);
    auto consumer = ring.consumer();
    ring.put(0, length);
    ring.control->tail = 16;
    EXPECT_EQ(consumer.front().code(), Errc::internal) << length;
  }
  HeapRing ring(64);
  ring.control->head = 48;
  ring.control->tail = 48 + 64;
  auto consumer = ring.consumer();
  ring.put(48, 16);
  EXPECT_EQ(consumer.front().code(), Errc::internal) << "a record across the end of the buffer";
}

TEST(RingCorruption, AConsumerRefusesImpossibleSkips) {
  HeapRing ring(64);
  ring.control->head = 40;
  ring.control->tail = 48;
  auto consumer = ring.consumer();
  ring.put(40, ring_detail::kSkip);
  EXPECT_EQ(consumer.front().code(), Errc::internal) << "a skip beyond the tail";
  HeapRing full(64);
  auto lapping = full.consumer();
  full.put(0, ring_detail::kSkip);
  full.control->tail = 64;
  const auto record = lapping.front();
  EXPECT_TRUE(!record.ok() || record->empty()) << "a ring of nothing but a skip holds no record";
}

TEST(RingCorruption, AConsumerThatStartsAtAMisalignedHeadStaysInBounds) {
  for (std::uint64_t head = 57; head < 64; ++head) {
    HeapRing ring(64);
    ring.control->head = head;
    ring.control->tail = 64;
    auto consumer = ring.consumer();
    EXPECT_EQ(consumer.front().code(), Errc::internal) << head;
  }
}

/// Two records that take all of a ring of 64 bytes.
void fill(RingProducer& producer) {
  for (int i = 0; i < 2; ++i) {
    const auto room = producer.reserve(24);
    ASSERT_TRUE(room.ok() && !room->empty());
    (void)producer.commit();
  }
}

TEST(RingCorruption, AProducerRefusesImpossibleHeads) {
  for (const std::uint64_t head :
       {std::uint64_t{4}, std::uint64_t{64 + 8}, std::uint64_t{1} << 63, ~std::uint64_t{7}}) {
    HeapRing ring(64);
    auto producer = ring.producer();
    fill(producer);
    ring.control->head = head;
    EXPECT_EQ(producer.reserve(24).code(), Errc::internal) << head;
  }
  HeapRing ring(64);
  auto producer = ring.producer();
  fill(producer);
  ring.control->head = 64;
  fill(producer);
  ring.control->head = 32;
  EXPECT_EQ(producer.reserve(24).code(), Errc::internal) << "a head that goes back";
}

TEST(RingCorruption, RandomNonsenseIsAnErrorOrARecordWithinTheRing) {
  std::uint64_t errors = 0, records = 0;
  for (std::uint32_t seed = 1; seed <= 20'000 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    HeapRing ring(128);
    ring.control->head = random() % 4 == 0 ? random() : random() % 32 * 8;
    ring.control->tail = random() % 4 == 0 ? random() : ring.control->head + random() % 20 * 8;
    for (std::uint64_t at = 0; at < ring.capacity; at += 8) {
      const auto kind = random() % 8;
      ring.put(at, kind == 0 ? ring_detail::kSkip : kind == 1 ? random() : random() % 64);
    }
    auto consumer = ring.consumer();
    for (int i = 0; i < 100; ++i) {
      const auto record = consumer.front();
      errors += record.ok() ? 0 : 1;
      if (!record.ok() || record->empty()) break;
      ++records;
      ASSERT_GE(record->data(), ring.data.get());
      ASSERT_LE(record->data() + record->size(), ring.data.get() + ring.capacity);
      ASSERT_LT(i, 16) << "more records than the ring can hold";
      consumer.pop();
    }
  }
  EXPECT_GT(errors, 1000u);
  EXPECT_GT(records, 1000u);
}

}  // namespace
}  // namespace troupe::ipc
