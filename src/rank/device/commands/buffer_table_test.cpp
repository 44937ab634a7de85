// The buffer table: generations, and what a range must be to name a buffer.
#include "rank/device/commands/buffer_table.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>
#include <vector>

namespace troupe::rank_process {
namespace {

Operand whole(const BufferTable& table, std::uint32_t buffer) {
  const auto& entry = table.at(buffer);
  return {entry.region, buffer, entry.generation.load(), 0, entry.offset, entry.bytes};
}

TEST(BufferTable, ABufferIsCurrentUntilItsContentsGo) {
  BufferTable table;
  const auto buffer = table.add(3, 512, 1024);
  ASSERT_TRUE(buffer.ok());
  const auto before = whole(table, *buffer);
  EXPECT_TRUE(table.current(before));
  table.lose(*buffer, Errc::device_lost);
  EXPECT_FALSE(table.current(before));
  EXPECT_TRUE(table.current(whole(table, *buffer))) << "renewed references name the new contents";
}

TEST(BufferTable, AReferenceThatOutlivedItsBufferNeverMatchesALaterOne) {
  BufferTable table;
  std::set<std::uint32_t> generations;
  std::vector<Operand> old;
  std::uint32_t first = 0;
  for (int i = 0; i < 20; ++i) {
    const auto buffer = table.add(1, 0, 64);
    ASSERT_TRUE(buffer.ok());
    if (i == 0) first = *buffer;
    ASSERT_EQ(*buffer, first) << "the entry is used again";
    for (const auto& operand : old) EXPECT_FALSE(table.current(operand));
    old.push_back(whole(table, *buffer));
    EXPECT_TRUE(table.current(old.back()));
    EXPECT_TRUE(generations.insert(old.back().generation).second);
    table.remove(*buffer);
    EXPECT_FALSE(table.current(whole(table, *buffer)))
        << "a removed buffer is not there, whatever the generation";
  }
}

TEST(BufferTable, ARangeMustLieWithinItsBuffer) {
  BufferTable table;
  const auto buffer = table.add(2, 1000, 100);
  ASSERT_TRUE(buffer.ok());
  const auto with = [&](std::uint32_t region, std::uint64_t offset, std::uint64_t bytes) {
    auto operand = whole(table, *buffer);
    operand.region = region;
    operand.offset = offset;
    operand.bytes = bytes;
    return table.current(operand);
  };
  EXPECT_TRUE(with(2, 1000, 100));
  EXPECT_TRUE(with(2, 1040, 60));
  EXPECT_TRUE(with(2, 1100, 0));
  EXPECT_FALSE(with(3, 1000, 100));
  EXPECT_FALSE(with(2, 999, 100));
  EXPECT_FALSE(with(2, 1000, 101));
  EXPECT_FALSE(with(2, 1041, 60));
  EXPECT_FALSE(with(2, 1101, 0));
  EXPECT_FALSE(with(2, 1008, ~std::uint64_t{0} - 7))
      << "offset + bytes overflows to a small number";
  EXPECT_FALSE(with(2, ~std::uint64_t{0} - 7, 16)) << "so does this";
}

TEST(BufferTable, UnknownIndicesAreNotCurrent) {
  BufferTable table;
  EXPECT_FALSE(table.current({}));
  const auto buffer = table.add(1, 0, 8);
  ASSERT_TRUE(buffer.ok());
  auto operand = whole(table, *buffer);
  for (const auto index : {*buffer + 1, 1024u, BufferTable::kMaxBuffers, ~0u}) {
    operand.buffer = index;
    EXPECT_FALSE(table.current(operand)) << index;
  }
}

TEST(BufferTable, EntriesKeepTheirAddresses) {
  BufferTable table;
  const auto first = table.add(1, 0, 8);
  ASSERT_TRUE(first.ok());
  const auto* entry = &table.at(*first);
  for (int i = 0; i < 5000; ++i) ASSERT_TRUE(table.add(1, 0, 8).ok());
  EXPECT_EQ(&table.at(*first), entry);
  EXPECT_EQ(table.size(), 5001u);
}

TEST(BufferTable, FullIsAnAnswer) {
  BufferTable table;
  for (std::uint32_t i = 0; i < BufferTable::kMaxBuffers; ++i) {
    const auto buffer = table.add(1, i, 1);
    ASSERT_TRUE(buffer.ok());
    ASSERT_EQ(*buffer, i);
  }
  EXPECT_EQ(table.add(1, 0, 1).code(), Errc::out_of_memory);
  table.remove(4711);
  const auto again = table.add(9, 8, 7);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again, 4711u);
  EXPECT_EQ(table.at(4711).region, 9u);
  EXPECT_EQ(table.at(4711).uses.value(), 0u);
}

TEST(BufferTable, GenerationsOnlyGrow) {
  BufferTable table;
  std::mt19937 random(11);
  std::vector<std::uint32_t> live, generation(64, 0);
  for (int i = 0; i < 5000; ++i) {
    if (live.empty() || (live.size() < 64 && random() % 2 == 0)) {
      const auto buffer = table.add(1, 0, 8);
      ASSERT_TRUE(buffer.ok());
      live.push_back(*buffer);
    } else {
      const auto which = random() % live.size();
      if (random() % 2 == 0) {
        table.lose(live[which], Errc::device_lost);
      } else {
        table.remove(live[which]);
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(which));
      }
    }
    for (std::uint32_t buffer = 0; buffer < table.size(); ++buffer) {
      const auto now = table.at(buffer).generation.load();
      ASSERT_GE(now, generation[buffer]);
      generation[buffer] = now;
    }
  }
}

TEST(BufferTable, RestoredItIsValidForAllItsReferencesAndForNoEarlierBuffers) {
  BufferTable table;
  const auto buffer = *table.add(1, 0, 80, DType::f64);
  const auto earlier = whole(table, buffer);
  table.remove(buffer);
  ASSERT_EQ(*table.add(1, 0, 80, DType::f64), buffer);
  const auto first = whole(table, buffer);
  table.lose(buffer, Errc::device_lost);
  const auto second = whole(table, buffer);
  table.lose(buffer, Errc::world_reformed);
  EXPECT_FALSE(table.current(first));
  EXPECT_FALSE(table.current(second));
  table.restore(buffer);
  auto token = first;
  token.region = kTokenRegion, token.reserved = static_cast<std::uint32_t>(DType::f64);
  EXPECT_TRUE(table.current(first));
  EXPECT_TRUE(table.current(second));
  EXPECT_TRUE(table.current(whole(table, buffer)));
  EXPECT_TRUE(table.translate(token).ok());
  EXPECT_FALSE(table.current(earlier));
  EXPECT_EQ(table.explain(earlier), "buffer 0 was freed");
  auto later = whole(table, buffer);
  ++later.generation;
  EXPECT_FALSE(table.current(later));
  table.lose(buffer, Errc::device_lost);
  EXPECT_FALSE(table.current(first)) << "lost anew";
  EXPECT_EQ(table.translate(token).code(), Errc::stale);
  table.restore(buffer);
  table.remove(buffer);
  ASSERT_EQ(*table.add(1, 0, 80, DType::f64), buffer);
  EXPECT_FALSE(table.current(first)) << "another one has its number";
  EXPECT_EQ(table.translate(token).code(), Errc::stale);
}

/// A token of an earlier process of this rank names nothing here, whatever has its number now.
TEST(BufferTable, TokensOfAnEarlierProcessAreOfALostPeer) {
  BufferTable table;
  table.begin_with(1001);
  const auto buffer = *table.add(1, 0, 80, DType::f64);
  auto token = whole(table, buffer);
  token.region = kTokenRegion, token.reserved = static_cast<std::uint32_t>(DType::f64);
  EXPECT_TRUE(table.translate(token).ok());
  token.generation = 1000;
  EXPECT_EQ(table.translate(token).code(), Errc::peer_lost);
  token.generation = 0;
  EXPECT_EQ(table.translate(token).code(), Errc::stale) << "it names nothing";
}

TEST(BufferTable, TranslatesTokensOrSaysWhatIsWrong) {
  BufferTable table;
  const auto buffer = *table.add(3, 4096, 800, DType::f64);
  const auto generation = table.at(buffer).generation.load();
  const Operand good{.region = kTokenRegion,
                     .buffer = buffer,
                     .generation = generation,
                     .reserved = static_cast<std::uint32_t>(DType::f64),
                     .offset = 80,
                     .bytes = 160};
  const auto range = table.translate(good);
  ASSERT_TRUE(range.ok());
  EXPECT_EQ(range->region, 3u);
  EXPECT_EQ(range->offset, 4096u + 80);
  EXPECT_EQ(range->bytes, 160u);
  EXPECT_EQ(range->reserved, 0u);
  EXPECT_TRUE(table.current(*range));
  const auto code = [&](auto change) {
    auto bad = good;
    change(bad);
    return table.translate(bad).code();
  };
  EXPECT_EQ(code([](Operand& o) { o.offset = 0, o.bytes = 800; }), Errc::ok);
  EXPECT_EQ(code([](Operand& o) { o.offset = 800, o.bytes = 0; }), Errc::ok);
  EXPECT_EQ(code([](Operand& o) { o.offset = 0, o.bytes = 801; }), Errc::invalid);
  EXPECT_EQ(code([](Operand& o) { o.offset = 641; }), Errc::invalid);
  EXPECT_EQ(code([](Operand& o) { o.offset = UINT64_MAX - 100; }), Errc::invalid);
  EXPECT_EQ(code([](Operand& o) { o.bytes = UINT64_MAX; }), Errc::invalid);
  EXPECT_EQ(code([](Operand& o) { o.reserved = static_cast<std::uint32_t>(DType::i64); }),
            Errc::invalid);
  EXPECT_EQ(code([](Operand& o) { o.reserved = 77; }), Errc::invalid);
  EXPECT_EQ(code([](Operand& o) { o.buffer = 1; }), Errc::stale);
  EXPECT_EQ(code([](Operand& o) { o.buffer = UINT32_MAX; }), Errc::stale);
  EXPECT_EQ(code([](Operand& o) { ++o.generation; }), Errc::stale);
  table.lose(buffer, Errc::device_lost);
  EXPECT_EQ(table.translate(good).code(), Errc::stale);
}

TEST(BufferTable, SaysWhichBufferAndWhatBecameOfIt) {
  BufferTable table;
  const auto buffer = *table.add(1, 0, 800, DType::f64);
  const Operand range{1, buffer, table.at(buffer).generation, 0, 0, 800};
  table.at(buffer).name = "residual";
  EXPECT_EQ(table.describe(range), "buffer 0 (residual, 100 of f64)");
  auto beyond = range;
  beyond.bytes = 808;
  EXPECT_NE(table.explain(beyond).find("does not lie within buffer 0 (residual"), std::string::npos)
      << table.explain(beyond);
  table.lose(buffer, Errc::device_lost);
  EXPECT_NE(table.explain(range).find("lost with a device host"), std::string::npos);
  EXPECT_NE(table.explain(range).find("left out of the checkpoint"), std::string::npos);
  const Operand second{1, buffer, table.at(buffer).generation, 0, 0, 800};
  table.lose(buffer, Errc::world_reformed);
  EXPECT_NE(table.explain(second).find("lost with an epoch"), std::string::npos);
  const Operand third{1, buffer, table.at(buffer).generation, 0, 0, 800};
  table.remove(buffer);
  EXPECT_EQ(table.explain(third), "buffer 0 (residual) was freed");
  ASSERT_EQ(*table.add(1, 0, 800, DType::i32), buffer);
  EXPECT_EQ(table.explain(third), "buffer 0 was freed") << "another one has its number";
  EXPECT_EQ(table.describe(third), "buffer 0 (200 of i32)") << "and no name";
}

}  // namespace
}  // namespace troupe::rank_process
