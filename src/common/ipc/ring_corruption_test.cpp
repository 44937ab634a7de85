// Rings whose other side writes nonsense: an error, and never a step out of bounds (which
// AddressSanitizer would see).
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "heap_ring.hpp"

namespace troupe::ipc {
namespace {

using ring_detail::word_of;

TEST(RingCorruption, AConsumerRefusesImpossibleLengths) {
  for (const std::uint32_t length : {57u, 64u, 65u, 1u << 31, ~0u - 1}) {
    HeapRing ring(64);
    auto consumer = ring.consumer();
    ring.put(0, word_of(0, length));
    EXPECT_EQ(consumer.front().code(), Errc::internal) << length;
  }
  HeapRing ring(64);
  ring.control->head = 48;
  auto consumer = ring.consumer();
  ring.put(48, word_of(48, 16));
  EXPECT_EQ(consumer.front().code(), Errc::internal) << "a record across the end of the buffer";
  ring.put(48, word_of(48, 0));
  EXPECT_EQ(consumer.front().code(), Errc::internal) << "a record without bytes";
}

TEST(RingCorruption, AConsumerRefusesWordsOfOtherPlaces) {
  for (const std::uint64_t place : {0, 8, 16 + 8, 16 + 64, 16 + 128}) {
    HeapRing ring(64);
    ring.control->head = 16;
    auto consumer = ring.consumer();
    ring.put(16, word_of(place, 8));
    EXPECT_EQ(consumer.front().code(), Errc::internal) << place;
  }
  HeapRing ring(64);
  auto consumer = ring.consumer();
  for (const std::uint64_t word : {std::uint64_t{1} << 60, ~std::uint64_t{0}}) {
    ring.put(0, word);
    EXPECT_EQ(consumer.front().code(), Errc::internal) << word;
  }
}

TEST(RingCorruption, AConsumerGoesRoundNoMoreThanOnce) {
  HeapRing ring(64);
  for (std::uint64_t at = 0; at < 64; at += 16) ring.put(at, word_of(at, 8));
  auto consumer = ring.consumer();
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(consumer.front()->size(), 8u);
    consumer.pop();
  }
  EXPECT_EQ(consumer.front().code(), Errc::internal) << "the words are those of the lap before";
}

TEST(RingCorruption, AConsumerRefusesImpossibleSkips) {
  HeapRing ring(64);
  auto consumer = ring.consumer();
  ring.put(0, word_of(0, ring_detail::kSkip));
  EXPECT_EQ(consumer.front().code(), Errc::internal) << "a skip of the whole buffer";
  HeapRing second(64);
  second.control->head = 40;
  auto skipping = second.consumer();
  second.put(40, word_of(40, ring_detail::kSkip));
  second.put(0, word_of(64, ring_detail::kSkip));
  EXPECT_EQ(skipping.front().code(), Errc::internal) << "a skip behind a skip";
}

TEST(RingCorruption, AConsumerThatStartsAtAMisalignedHeadStaysInBounds) {
  for (std::uint64_t head = 57; head < 64; ++head) {
    HeapRing ring(64);
    ring.control->head = head;
    auto consumer = ring.consumer();
    EXPECT_EQ(consumer.front().code(), Errc::internal) << head;
    EXPECT_TRUE(consumer.empty());
  }
}

void push(RingProducer& producer, std::uint64_t bytes) {
  const auto room = producer.reserve(bytes);
  ASSERT_TRUE(room.ok() && !room->empty());
  (void)producer.commit();
}
/// Two records that take all of a ring of 64 bytes.
void fill(RingProducer& producer) {
  push(producer, 24);
  push(producer, 16);
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
  ring.control->head = 56;
  push(producer, 24);
  ring.control->head = 32;
  EXPECT_EQ(producer.reserve(24).code(), Errc::internal) << "a head that goes back";
}

TEST(RingCorruption, RandomNonsenseIsAnErrorOrARecordWithinTheRing) {
  std::uint64_t errors = 0, records = 0;
  for (std::uint32_t seed = 1; seed <= 20'000 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    HeapRing ring(128);
    const auto head = random() % 4 == 0 ? random() : random() % 32 * 8;
    ring.control->head = head;
    for (std::uint64_t at = 0; at < ring.capacity; at += 8) {
      const auto kind = random() % 16;
      // Where the consumer comes by, if it does.
      const auto ahead = (at - head) % ring.capacity;
      const auto length = kind < 2 ? ring_detail::kSkip : static_cast<std::uint32_t>(random() % 64);
      ring.put(at, kind == 2 ? random() : kind == 3 ? 0 : word_of(head + ahead, length));
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
