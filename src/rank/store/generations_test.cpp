// Saved states on disk: whole or not there, two generations, and nothing damaged taken for good.
#include "rank/store/generations.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>

#include "rank/store/disk_state.hpp"
#include "rank/store/partners.hpp"
#include "rank/store/state_folder.hpp"

namespace troupe::rank_process {
namespace {

namespace fs = std::filesystem;

class GenerationsTest : public ::testing::Test {
 protected:
  GenerationsTest() {
    char name[] = "/tmp/troupe-store-test-XXXXXX";
    root_ = ::mkdtemp(name);
    states_ = Generations(root_ / "dir" / "program");
    EXPECT_TRUE(states_.prepare().ok());
  }
  ~GenerationsTest() override {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }

  static std::vector<std::int32_t> values(std::int64_t step, int part) {
    std::vector<std::int32_t> list(100 + static_cast<std::size_t>(part));
    for (std::size_t i = 0; i < list.size(); ++i)
      list[i] = static_cast<std::int32_t>(1000 * step + 100 * part) + static_cast<std::int32_t>(i);
    return list;
  }
  /// Writes the parts of a state, all but the publishing.
  Manifest write(std::int64_t step, int parts) {
    Manifest manifest{step, {}, {}};
    for (int part = 0; part < parts; ++part) {
      const auto data = values(step, part);
      const SavedEntry entry{"v", DType::i32, 4, data.size()};
      auto table = lay_out(std::span(&entry, 1));
      table.part = part;
      table.parts = parts;
      table.step = step;
      std::vector<std::byte> image(table.bytes);
      std::memcpy(image.data() + table.places[0].offset, data.data(), table.places[0].bytes);
      seal(table, image);
      const auto path = states_.begin(step, part);
      EXPECT_TRUE(path.ok() && write_file(*path, image).ok());
      manifest.parts.push_back({table.bytes, table.head_crc});
    }
    return manifest;
  }
  void save(std::int64_t step, int parts) {
    const auto manifest = write(step, parts);
    const auto published = states_.publish(manifest);
    ASSERT_TRUE(published.ok()) << published.error().message;
  }
  /// What is wrong with a state; empty: nothing, and it holds what was saved.
  std::string wrong(std::int64_t step) {
    const auto manifest = states_.manifest(step);
    if (!manifest) return manifest.error().message;
    DiskState state(states_, *manifest);
    for (int part = 0; part < state.parts(); ++part) {
      if (const auto good = state.verify(part); !good) return good.error().message;
      const SavedPiece piece{part, "v", 1, 10};
      const auto read = state.read(std::span(&piece, 1));
      if (!read) return read.error().message;
      const auto all = values(step, part);
      EXPECT_EQ(SavedState::as<std::int32_t>(read->front()),
                std::vector(all.begin() + 1, all.begin() + 11));
    }
    return "";
  }
  std::string text(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::stringstream all;
    all << file.rdbuf();
    return all.str();
  }
  fs::path manifest_path(std::int64_t step) {
    return states_.part(step, 0).parent_path() / "manifest.json";
  }
  using Steps = std::vector<std::int64_t>;

  fs::path root_;
  Generations states_{fs::path()};
};

TEST_F(GenerationsTest, AStateIsThereOnceItIsPublished) {
  EXPECT_EQ(states_.steps(), Steps{});
  const auto manifest = write(7, 3);
  EXPECT_EQ(states_.steps(), Steps{});
  ASSERT_TRUE(states_.publish(manifest).ok());
  EXPECT_EQ(states_.steps(), Steps{7});
  EXPECT_EQ(wrong(7), "");
  EXPECT_EQ(*states_.manifest(7), manifest);
}

TEST_F(GenerationsTest, TwoAreKept) {
  for (const std::int64_t step : {5, 10, 100, 105}) save(step, 2);
  EXPECT_EQ(states_.steps(), (Steps{105, 100}));
  EXPECT_EQ(wrong(105), "");
  EXPECT_EQ(wrong(100), "");
  EXPECT_EQ(std::distance(fs::directory_iterator(states_.folder()), fs::directory_iterator()), 2);
}

TEST_F(GenerationsTest, ARunThatBeganAnewReplacesTheLaterStatesOfAnother) {
  for (const std::int64_t step : {50, 60}) save(step, 4);
  save(10, 2);
  EXPECT_EQ(states_.steps(), Steps{10});
  save(20, 2);
  save(10, 3);
  EXPECT_EQ(states_.steps(), Steps{10});
  EXPECT_EQ(wrong(10), "");
  EXPECT_EQ(states_.manifest(10)->parts.size(), 3u);
  EXPECT_EQ(std::distance(fs::directory_iterator(states_.folder()), fs::directory_iterator()), 1);
}

/// Whoever looks, or goes on after a crash, finds the old state or the new one, never neither.
TEST_F(GenerationsTest, AStateIsThereWhileItIsReplaced) {
  save(10, 1);
  std::atomic<bool> done = false;
  int looked = 0, missed = 0;
  std::thread reader([&] {
    while (!done) {
      ++looked;
      missed += !fs::exists(manifest_path(10));
    }
  });
  for (int round = 0; round < 100; ++round) save(10, 1);
  done = true;
  reader.join();
  EXPECT_GT(looked, 0);
  EXPECT_EQ(missed, 0) << "of " << looked;
  EXPECT_EQ(states_.steps(), Steps{10});
  EXPECT_EQ(wrong(10), "");
}

/// Where two folders cannot be exchanged at once, a crash may leave the old state beside its place.
TEST_F(GenerationsTest, AStateWhoseSuccessorNeverCameIsBroughtBack) {
  save(5, 1);
  save(10, 1);
  write(10, 1);
  const auto state = manifest_path(10).parent_path();
  fs::rename(state, state.string() + ".old.tmp");
  ASSERT_TRUE(states_.prepare().ok());
  EXPECT_EQ(states_.steps(), (Steps{10, 5}));
  EXPECT_EQ(wrong(10), "");
  EXPECT_EQ(std::distance(fs::directory_iterator(states_.folder()), fs::directory_iterator()), 2);
}

TEST_F(GenerationsTest, WhatWasLeftHalfWrittenGoes) {
  save(10, 2);
  write(20, 2);
  ASSERT_TRUE(states_.prepare().ok());
  EXPECT_EQ(states_.steps(), Steps{10});
  EXPECT_EQ(std::distance(fs::directory_iterator(states_.folder()), fs::directory_iterator()), 1);
  write(30, 2);
  states_.abandon(30);
  EXPECT_EQ(std::distance(fs::directory_iterator(states_.folder()), fs::directory_iterator()), 1);
}

TEST_F(GenerationsTest, OtherFoldersAndFilesAreNoStates) {
  save(10, 1);
  for (const char* name :
       {"step-", "step-x", "step--3", "step-007", "step-9999999999999999999", "a"})
    fs::create_directory(states_.folder() / name);
  EXPECT_EQ(states_.steps(), Steps{10});
}

TEST_F(GenerationsTest, ReadingManyPartsTakesFewDescriptors) {
  constexpr int kParts = 100;
  const auto open_files = [] {
    return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
  };
  save(10, kParts);
  DiskState state(states_, *states_.manifest(10));
  const auto before = open_files();
  for (int round = 0; round < 2; ++round) {
    for (int part = 0; part < kParts; ++part) {
      ASSERT_TRUE(state.verify(part).ok());
      const SavedPiece piece{part, "v", 0, 1};
      ASSERT_EQ(SavedState::as<std::int32_t>(state.read(std::span(&piece, 1))->front()),
                std::vector{values(10, part)[0]});
    }
  }
  EXPECT_LE(open_files() - before, 16);
}

TEST_F(GenerationsTest, EveryTruncationOfAPartIsSeen) {
  save(10, 2);
  const auto path = states_.part(10, 1);
  const auto whole = text(path);
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, kPartHeaderBytes - 1, kPartHeaderBytes,
        kPartHeaderBytes + 1, kPartHeaderBytes + kPartEntryBytes, std::size_t{511},
        std::size_t{512}, whole.size() - 1}) {
    std::ofstream(path, std::ios::binary) << whole.substr(0, size);
    const auto problem = wrong(10);
    EXPECT_NE(problem.find(path.string() + ": "), std::string::npos) << size << ": " << problem;
  }
  std::ofstream(path, std::ios::binary) << whole << '\0';
  EXPECT_NE(wrong(10), "");
  fs::remove(path);
  EXPECT_NE(wrong(10).find(path.string()), std::string::npos);
  fs::create_directory(path);
  EXPECT_NE(wrong(10).find(path.string()), std::string::npos);
  fs::remove(path);
  std::ofstream(path, std::ios::binary) << whole;
  EXPECT_EQ(wrong(10), "") << "as it was, it is good";
}

TEST_F(GenerationsTest, EveryFlippedBitOfAPartIsSeen) {
  save(10, 1);
  const auto path = states_.part(10, 0);
  const auto whole = text(path);
  std::mt19937 random(5);
  for (int round = 0; round < 400; ++round) {
    auto bad = whole;
    // Header and table, or the entry; what lies between belongs to nobody.
    const auto head = kPartHeaderBytes + kPartEntryBytes;
    const auto at = round % 2 == 0 ? random() % head : 512 + random() % (whole.size() - 512);
    bad[at] = static_cast<char>(bad[at] ^ (1 << random() % 8));
    std::ofstream(path, std::ios::binary) << bad;
    EXPECT_NE(wrong(10), "") << "byte " << at;
  }
}

TEST_F(GenerationsTest, APartOfAnotherStateIsSeen) {
  save(10, 2);
  save(20, 2);
  for (const auto& [from, to] : {std::pair{states_.part(10, 0), states_.part(20, 0)},
                                 {states_.part(20, 0), states_.part(20, 1)}}) {
    const auto before = text(to);
    fs::copy_file(from, to, fs::copy_options::overwrite_existing);
    EXPECT_NE(wrong(20).find("not the part that its manifest names"), std::string::npos);
    std::ofstream(to, std::ios::binary) << before;
    EXPECT_EQ(wrong(20), "");
  }
}

TEST_F(GenerationsTest, ADamagedManifestIsSeen) {
  save(10, 3);
  const auto path = manifest_path(10);
  const auto whole = text(path);
  for (std::size_t size = 0; size + 2 < whole.size(); ++size) {
    std::ofstream(path, std::ios::binary) << whole.substr(0, size);
    EXPECT_NE(wrong(10).find(path.string() + ": "), std::string::npos) << size;
  }
  // A flipped bit in white space, or one that leaves the same meaning, does no harm; no other may
  // pass.
  const auto meaning = *parse_manifest(whole);
  int seen = 0;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      auto bad = whole;
      bad[at] = static_cast<char>(bad[at] ^ (1 << bit));
      std::ofstream(path, std::ios::binary) << bad;
      const auto parsed = parse_manifest(bad);
      const bool same = parsed.ok() && *parsed == meaning;
      EXPECT_EQ(wrong(10).empty(), same) << "byte " << at << ", bit " << bit;
      seen += !same;
    }
  }
  EXPECT_GT(seen, 1000);
  fs::remove(path);
  EXPECT_NE(wrong(10).find(path.string()), std::string::npos);
}

TEST(Manifest, NonsenseIsRefused) {
  for (const char* text : {"", "null", "[]", "{}", "{\"format\":2}", "{\"format\":1}"})
    EXPECT_EQ(parse_manifest(text).code(), Errc::invalid) << text;
  EXPECT_EQ(parse_manifest(std::string(100'000, '[')).code(), Errc::invalid);
  // What follows is refused for its checksum if for nothing else.
  const Manifest one{1, {{1, 2}}, {{"--n", "5"}}};
  const auto good = to_json(one);
  EXPECT_EQ(*parse_manifest(good), one);
  for (const auto& [what, by] : {std::pair{"\"step\": 1", "\"step\": -1"},
                                 {"\"step\": 1", "\"step\": 1e3"},
                                 {"\"step\": 1", "\"step\": 2"},
                                 {"\"ranks\": 1", "\"ranks\": 0"},
                                 {"\"format\": 2", "\"format\": 3"},
                                 {"part-0.troupe", "../x"},
                                 {"\"bytes\": 1", "\"bytes\": 3"},
                                 {"\"crc32\": 2", "\"crc32\": 4294967296"},
                                 {"\"--n\": \"5\"", "\"--n\": 5"},
                                 {"\"--n\": \"5\"", "\"--n\": \"6\""},
                                 {"\"--n\": \"5\"", ""},
                                 {"fingerprint", "fingerprant"}}) {
    auto bad = good;
    ASSERT_NE(bad.find(what), std::string::npos) << what;
    bad.replace(bad.find(what), std::string(what).size(), by);
    EXPECT_EQ(parse_manifest(bad).code(), Errc::invalid) << bad;
  }
}

TEST_F(GenerationsTest, AStateTellsOfTheProblemThatItIsOf) {
  const Fingerprint mine{{"--n", "5"}, {"--name", "\xff\xfe \"quoted\"\n"}, {"--x", ""}};
  states_ = Generations(states_.folder(), mine);
  save(10, 1);
  const auto saved = states_.manifest(10)->fingerprint;
  EXPECT_EQ(difference(saved, states_.fingerprint()), "") << "whatever its bytes are";
  EXPECT_EQ(difference(saved, Generations({}, mine).fingerprint()), "");
  auto other = states_.fingerprint();
  other["--n"] = "6";
  EXPECT_EQ(difference(saved, other), "--n was 5 and is 6");
  other = states_.fingerprint();
  other["--x"] = "new";
  EXPECT_EQ(difference(saved, other), "--x was empty and is new");
  other.erase("--x");
  EXPECT_EQ(difference(saved, other), "--x was empty and is not there");
  other["--x"] = "";
  other["--y"] = "1";
  EXPECT_EQ(difference(saved, other), "--y was not there and is 1");
}

TEST_F(GenerationsTest, AFileCountsByItsContents) {
  const auto write_text = [&](const char* name, const std::string& contents) {
    std::ofstream(root_ / name, std::ios::binary) << contents;
    return root_ / name;
  };
  std::string large(5'000'000, 'a');
  const auto one = contents_of(write_text("one", large)).take();
  EXPECT_EQ(contents_of(write_text("two", large)).take(), one) << "not by its name";
  large[2'500'000] = 'b';
  EXPECT_NE(contents_of(write_text("one", large)).take(), one);
  EXPECT_EQ(contents_of(write_text("empty", "")).take(), "a file of 0 bytes with checksum 0");
  EXPECT_EQ(contents_of(root_ / "missing").code(), Errc::io);
  // Of a very large one (this has a hole and takes no room) begin and end count, and much between.
  const auto vast = write_text("vast", "begin");
  fs::resize_file(vast, (std::uint64_t{3} << 30) + 12'345);
  const auto before = contents_of(vast).take();
  std::fstream(vast, std::ios::in | std::ios::out | std::ios::binary)
      .seekp(-1, std::ios::end)
      .put('x');
  EXPECT_NE(contents_of(vast).take(), before);
}

TEST_F(GenerationsTest, EachRunHasStatesOfItsOwn) {
  const auto folder = root_ / "dir" / "program";
  const auto first = states_;
  const Generations second(folder, {}, {19}), third(folder, {}, {19, kNoEnd});
  EXPECT_EQ(Generations::newest_run(folder), 1u);
  save(15, 1);
  states_ = second;
  ASSERT_TRUE(states_.prepare().ok());
  EXPECT_EQ(states_.steps(), Steps{}) << "the first run's are none of the second's";
  EXPECT_EQ(Generations::newest_run(folder), 1u);
  save(5, 2);
  EXPECT_EQ(first.steps(), Steps{}) << "they make way";
  EXPECT_EQ(Generations::newest_run(folder), 2u);
  EXPECT_EQ(states_.manifest(5)->ends, Ends{19});
  EXPECT_EQ(wrong(5), "");
  // The program is started again, and comes by the first run on its way to the second.
  states_ = first;
  ASSERT_TRUE(states_.prepare().ok());
  EXPECT_TRUE(states_.has_later_run());
  for (const std::int64_t step : {5, 10, 15}) save(step, 1);
  EXPECT_EQ(first.steps(), (Steps{15, 10}));
  EXPECT_EQ(second.steps(), Steps{5}) << "the second run's are still there";
  states_ = third;
  EXPECT_TRUE(states_.prepare().ok());
  EXPECT_FALSE(states_.has_later_run());
  save(7, 1);
  EXPECT_EQ(first.steps(), Steps{});
  EXPECT_EQ(second.steps(), Steps{});
  EXPECT_EQ(states_.manifest(7)->ends, (Ends{19, kNoEnd}));
  // A program that begins anew has no use for what a start before has left of later runs.
  states_ = first;
  states_.begin_anew();
  save(5, 1);
  EXPECT_EQ(third.steps(), Steps{});
  EXPECT_EQ(first.steps(), Steps{5});
}

TEST_F(GenerationsTest, AManifestTellsOfTheRunsBefore) {
  const Manifest first{7, {{512, 1}}, {}, {}}, later{7, {{512, 1}}, {}, {19, kNoEnd, 0}};
  EXPECT_NE(to_json(first).find("\"format\": 2"), std::string::npos)
      << "as states were that knew of one run";
  EXPECT_NE(to_json(later).find("\"format\": 3"), std::string::npos);
  EXPECT_EQ(*parse_manifest(to_json(first)), first);
  EXPECT_EQ(*parse_manifest(to_json(later)), later);
  auto text = to_json(later);
  text.replace(text.find("19"), 2, "18");
  EXPECT_EQ(parse_manifest(text).code(), Errc::invalid);
}

TEST_F(GenerationsTest, AFolderIsOneJobs) {
  const auto folder = root_ / "locked";
  auto first = FolderLock::take(folder, "process 1 on here", "checkpoint-dir");
  ASSERT_TRUE(first.ok()) << first.error().message;
  const auto second = FolderLock::take(folder, "process 2 on there", "checkpoint-dir");
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.code(), Errc::io);
  EXPECT_NE(second.error().message.find(folder.string() + ": another job"), std::string::npos);
  EXPECT_NE(second.error().message.find("(process 1 on here)"), std::string::npos);
  *first = FolderLock();
  EXPECT_TRUE(FolderLock::take(folder, "process 3", "checkpoint-dir").ok());
  std::ofstream(root_ / "file") << "x";
  EXPECT_EQ(FolderLock::take(root_ / "file", "process 4", "checkpoint-dir").code(), Errc::io);

  fs::create_directory(root_ / "linked");
  std::ofstream(root_ / "precious") << "as it was";
  for (const auto* const name : {"lock", "part"})
    fs::create_symlink(root_ / "precious", root_ / "linked" / name);
  EXPECT_EQ(FolderLock::take(root_ / "linked", "process 5", "checkpoint-dir").code(), Errc::io);
  EXPECT_EQ(NewFile::create(root_ / "linked" / "part", 0).code(), Errc::io);
  EXPECT_EQ(fs::file_size(root_ / "precious"), 9u) << "nothing is written through a link";
}

TEST_F(GenerationsTest, RoomForAStateIsLookedFor) {
  EXPECT_TRUE(check_room(root_, 1, "checkpoint-dir").ok());
  const auto none = check_room(root_, UINT64_MAX / 4, "checkpoint-dir");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.code(), Errc::io);
  EXPECT_NE(none.error().message.find("a state takes "), std::string::npos);
}

TEST_F(GenerationsTest, PiecesOutsideOfAnEntryAreRefused) {
  save(10, 2);
  DiskState state(states_, *states_.manifest(10));
  for (const SavedPiece& piece :
       {SavedPiece{0, "w", 0, 1}, SavedPiece{0, "v", 101, 0}, SavedPiece{0, "v", 0, 101},
        SavedPiece{0, "v", 1, UINT64_MAX}, SavedPiece{2, "v", 0, 1}, SavedPiece{-1, "v", 0, 1}}) {
    EXPECT_EQ(state.read(std::span(&piece, 1)).code(), Errc::invalid)
        << piece.part << " " << piece.first << " " << piece.count;
  }
  EXPECT_EQ(state.entries(2).code(), Errc::invalid);
  EXPECT_EQ(state.entries(1)->front().count, 101u);
}

TEST_F(GenerationsTest, AFolderThatCannotBeWrittenIsAnError) {
  std::ofstream(root_ / "file") << "x";
  const Generations states(root_ / "file" / "program");
  EXPECT_EQ(states.prepare().code(), Errc::io);
  EXPECT_EQ(states.begin(1, 0).code(), Errc::io);
  EXPECT_EQ(states.steps(), Steps{});
}

TEST(WriteFile, AFullDiskIsAFailedFile) {
  const std::vector<std::byte> bytes(4096);
  const auto written = write_file("/dev/full", bytes);
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.code(), Errc::io);
  EXPECT_EQ(written.error().native, ENOSPC);
  EXPECT_NE(written.error().message.find("/dev/full: "), std::string::npos);
}

TEST_F(GenerationsTest, AFileThatMayNotBecomeSoLargeIsAFailedFile) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{4096, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto written = write_file(root_ / "large", std::vector<std::byte>(10'000));
  ::setrlimit(RLIMIT_FSIZE, &before);
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.code(), Errc::io);
  EXPECT_EQ(written.error().native, EFBIG);
}

TEST(Partners, AreOnAnotherNodeWhereThereIsOne) {
  const auto expect = [](std::vector<int> nodes, bool apart) {
    const auto partner = partners(nodes);
    std::vector<int> seen(nodes.size());
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const auto other = static_cast<std::size_t>(partner[i]);
      ++seen[other];
      EXPECT_TRUE(other != i || nodes.size() == 1) << i;
      EXPECT_TRUE(!apart || nodes[i] != nodes[other]) << i;
    }
    EXPECT_EQ(seen, std::vector<int>(nodes.size(), 1)) << "everyone keeps one copy";
  };
  expect({0}, false);
  expect({0, 0}, false);
  expect({0, 0, 0, 0}, false);
  expect({0, 0, 2, 2}, true);
  expect({0, 1, 0, 1}, true);
  expect({0, 0, 0, 0, 4, 4, 4, 4}, true);
  expect({0, 0, 2, 3, 3}, true);
  expect({0, 0, 0, 3}, false);
  expect({5, 1, 5, 9, 9, 1, 7}, true);
}

}  // namespace
}  // namespace troupe::rank_process
