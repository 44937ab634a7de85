#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <future>

#include "account.hpp"
#include "holdings.hpp"
#include "oracle.hpp"
#include "program.hpp"
#include "reduce.hpp"
#include "threads.hpp"
#include "values.hpp"

// The parts of troupe-torture that need no device: what a seed makes, what it must come to, and how
// a failing program is made smaller.

namespace troupe::torture {
namespace {

RandomTable random_numbers() {
  RandomTable table;
  table.supported = true;
  for (int group = 0; group < 4; ++group) {
    for (std::size_t set = 0; set < RandomTable::kSets; ++set) {
      table.sets.push_back(random_bytes(
          set + 1, static_cast<std::size_t>(RandomTable::kCount) * (group < 2 ? 4 : 8)));
    }
  }
  return table;
}

template <class Visit>
void for_each_operation(const Program& program, Visit&& visit) {
  for (const auto& round : program.rounds) {
    for (const auto& step : round.scripts) {
      for (const auto& rank : step) {
        for (const auto& script : rank) {
          for (const auto& op : script) visit(round, op);
        }
      }
    }
  }
}

const auto kAllDone = undisturbed;
const auto kNobodyLooks = [](const Operation&, const std::vector<std::byte>&) {};

TEST(Torture, OneSeedMakesOneProgram) {
  for (std::uint64_t seed = 1; seed < 20; ++seed) {
    const Recipe recipe{.ranks = 3, .operations = 500};
    const auto print = generate(seed, recipe).fingerprint();
    EXPECT_EQ(generate(seed, recipe).fingerprint(), print);
    EXPECT_NE(generate(seed + 1, recipe).fingerprint(), print);
    EXPECT_NE(generate(seed, {.ranks = 2, .operations = 500}).fingerprint(), print);
  }
}

/// What a program may do, seeds do sooner or later.
TEST(Torture, EverythingTakesPart) {
  std::set<Kind> kinds;
  std::set<RoundKind> rounds;
  std::set<DType> dtypes;
  std::set<Wrong> wrongs;
  std::set<Blow> blows;
  std::set<Await> awaits;
  bool remote = false, big = false;
  std::set<int> threads_of_runs;
  for (std::uint64_t seed = 1; seed < 120; ++seed) {
    const auto program = generate(seed, {.ranks = 2, .operations = 1000});
    for (const auto& round : program.rounds) rounds.insert(round.kind);
    for (const auto& buffer : program.buffers) {
      dtypes.insert(buffer.dtype);
      big = big || buffer.length * 4 > std::int64_t{4} << 20;
    }
    for_each_operation(program, [&](const Round& round, const Operation& op) {
      if (round.kind == RoundKind::run) threads_of_runs.insert(op.thread);
      kinds.insert(op.kind);
      awaits.insert(op.await);
      if (op.kind == Kind::wrong) wrongs.insert(op.wrong);
      if (op.kind == Kind::fault) blows.insert(op.blow);
      remote = remote || op.target != op.rank;
    });
  }
  EXPECT_EQ(kinds.size(), kKindCount);
  EXPECT_EQ(rounds.size(), kRoundKindCount - 1);  // members: see below
  EXPECT_EQ(dtypes.size(), kDTypeCount);
  EXPECT_EQ(wrongs.size(), kWrongCount - 1);  // `root` is what a round of its own is about
  EXPECT_EQ(blows.size(), 6u);
  EXPECT_EQ(awaits.size(), 6u);
  EXPECT_EQ(threads_of_runs.size(), 4u);
  EXPECT_TRUE(remote);
  EXPECT_TRUE(big);
}

/// Values are determined only if nobody writes what another thread uses.
TEST(Torture, NobodyTouchesWhatAnotherThreadWrites) {
  for (std::uint64_t seed = 1; seed < 60; ++seed) {
    const auto program = generate(seed, {.ranks = 4, .operations = 600});
    for_each_operation(program, [&](const Round& round, const Operation& op) {
      if (op.kind == Kind::wrong) return;  // writes nothing
      const auto owned = [&](const Slice& slice) {
        const auto& owner = round.owners[static_cast<std::size_t>(slice.buffer)];
        return !owner.shared && owner.thread == op.thread &&
               (slice.rank + owner.shift) % program.ranks == op.rank;
      };
      for (const auto& slice : op.at) {
        if (!slice.present()) continue;
        const auto& spec = program.buffers[static_cast<std::size_t>(slice.buffer)];
        ASSERT_GE(slice.first, 0) << describe(op);
        ASSERT_LE(slice.first + slice.count, spec.length) << describe(op);
        ASSERT_TRUE(owned(slice) || round.owners[static_cast<std::size_t>(slice.buffer)].shared)
            << describe(op);
      }
      for (const auto& slice : written(op)) ASSERT_TRUE(owned(slice)) << describe(op);
    });
  }
}

TEST(Torture, AllValuesAreExact) {
  const auto random = random_numbers();
  for (std::uint64_t seed = 1; seed < 40; ++seed) {
    const auto program = generate(seed, {.ranks = 2, .operations = 2000});
    Oracle oracle(program, random);
    for (const auto& round : program.rounds) {
      for (std::size_t step = 0; step < round.scripts.size(); ++step)
        oracle.apply(round, step, kAllDone, kNobodyLooks);
      for (int rank = 0; rank < program.ranks; ++rank) {
        for (int b = 0; b < static_cast<int>(program.buffers.size()); ++b) {
          if (oracle.must_be_stale(rank, b)) oracle.reset(rank, b, 1);
        }
      }
    }
    EXPECT_FALSE(oracle.inexact()) << "seed " << seed << ": " << *oracle.inexact();
  }
}

TEST(Torture, EveryDTypeHasItsSmallIntegers) {
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    const auto most = std::min(exact_limit(dtype), 300.0);
    for (double value = has_sign(dtype) ? -most : 0; value <= most && most > 0; ++value) {
      std::byte element[16] = {};
      store(dtype, element, value);
      ASSERT_EQ(load(dtype, element), value) << to_string(dtype);
    }
  }
  // Published encodings: IEEE 754 binary16 and OCP 8-bit floating point.
  std::uint16_t half = 0;
  std::uint8_t e4m3 = 0, e5m2 = 0;
  store(DType::f16, reinterpret_cast<std::byte*>(&half), -2);
  store(DType::f8e4m3, reinterpret_cast<std::byte*>(&e4m3), 3);
  store(DType::f8e5m2, reinterpret_cast<std::byte*>(&e5m2), 1);
  EXPECT_EQ(half, 0xc000);
  EXPECT_EQ(e4m3, 0x44);
  EXPECT_EQ(e5m2, 0x3c);
}

/// A program of two operations by hand.
struct ByHand {
  Program program;
  Round round;
  ByHand() {
    program.ranks = 2;
    program.buffers = {{DType::f64, 100, Contents::integers, {}},
                       {DType::f64, 100, Contents::integers, {}}};
    round.owners.resize(2);
    round.scripts.assign(1, std::vector<std::vector<std::vector<Operation>>>(
                                2, std::vector<std::vector<Operation>>(1)));
  }
  Operation& add(int rank, Kind kind) {
    auto& op = round.scripts[0][static_cast<std::size_t>(rank)][0].emplace_back();
    op.kind = kind;
    op.rank = op.target = rank;
    op.dtype = DType::f64;
    return op;
  }
  /// On both ranks; the fills have the ids 0 and 1.
  void add_fills_and_a_sum() {
    for (int rank = 0; rank < 2; ++rank) {
      auto& fill = add(rank, Kind::fill);
      fill.id = static_cast<std::uint32_t>(rank), fill.alpha = 1 + rank,
      fill.at[0] = {rank, 0, 0, 100};
      auto& reduce = add(rank, Kind::all_reduce);
      reduce.id = 5, reduce.at[0] = {rank, 0, 10, 4}, reduce.at[1] = {rank, 1, 20, 4};
    }
  }
  [[nodiscard]] static double element(const Oracle& oracle, int rank, int buffer, std::size_t i) {
    return load(DType::f64, oracle.contents(rank, buffer).data() + 8 * i);
  }
};

TEST(Torture, TheOracleFollowsProgramOrderAndRanks) {
  ByHand hand;
  hand.add_fills_and_a_sum();
  const auto random = random_numbers();
  Oracle oracle(hand.program, random);
  const auto before = ByHand::element(oracle, 1, 1, 24);
  oracle.apply(hand.round, 0, kAllDone, kNobodyLooks);
  EXPECT_EQ(ByHand::element(oracle, 0, 0, 99), 1);
  EXPECT_EQ(ByHand::element(oracle, 1, 0, 0), 2);
  EXPECT_EQ(ByHand::element(oracle, 0, 1, 20), 3);
  EXPECT_EQ(ByHand::element(oracle, 1, 1, 23), 3);
  EXPECT_EQ(ByHand::element(oracle, 1, 1, 24), before);
}

TEST(Torture, WhatFailedHasNoEffectAndMayBeStale) {
  ByHand hand;
  auto& first = hand.add(0, Kind::fill);
  first.id = 0, first.alpha = 2, first.at[0] = {0, 0, 0, 100};
  auto& second = hand.add(0, Kind::scal);
  second.id = 1, second.alpha = 3, second.at[0] = {0, 0, 0, 100};
  const auto random = random_numbers();
  Oracle oracle(hand.program, random);
  oracle.apply(
      hand.round, 0,
      [](const Operation& op) { return op.id == 1 ? Outcome::refused : Outcome::done; },
      kNobodyLooks);
  EXPECT_EQ(ByHand::element(oracle, 0, 0, 50), 2);
  EXPECT_TRUE(oracle.may_be_stale(0, 0));
  EXPECT_FALSE(oracle.may_be_stale(0, 1));
  EXPECT_FALSE(oracle.unsure(0, 0));
}

// What failed on one rank may have been done all the same: the others' results of it are unknown.
TEST(Torture, ResultsOfWhatFailedElsewhereAreNotKnown) {
  ByHand hand;
  hand.add_fills_and_a_sum();
  auto& copy = hand.add(0, Kind::copy);
  copy.id = 6, copy.at[0] = {0, 1, 20, 4}, copy.at[1] = {0, 0, 0, 4};
  const auto random = random_numbers();
  Oracle oracle(hand.program, random);
  oracle.apply(
      hand.round, 0,
      [](const Operation& op) { return op.id == 1 ? Outcome::refused : Outcome::done; },
      kNobodyLooks);
  EXPECT_TRUE(oracle.unsure(0, 1)) << "rank 1 may have brought either";
  EXPECT_TRUE(oracle.unsure(0, 0)) << "copied from it";
  EXPECT_FALSE(oracle.unsure(1, 0));
}

/// What is wrong comes before the errors that other threads have of it, whichever was first.
TEST(Torture, AFindingOfAThreadIsNotLostAmongErrors) {
  for (const bool late : {false, true}) {
    Threads threads;
    std::promise<void> thrown;
    threads.start([&] {
      if (late) thrown.get_future().wait();
      throw Finding("wrong");
    });
    threads.start([&] {
      thrown.set_value();
      throw std::runtime_error("an error");
    });
    EXPECT_THROW(threads.join(), Finding);
  }
  Threads quiet;
  quiet.start([] {});
  EXPECT_NO_THROW(quiet.join());
}

TEST(Torture, ASingleBitIsSeen) {
  const BufferSpec spec{DType::i32, 50, Contents::integers, {}};
  const auto bytes = random_integers(DType::i32, 3, 50);
  auto other = bytes;
  EXPECT_EQ(first_difference(spec, bytes, other), -1);
  other[4 * 33] ^= std::byte{1};
  EXPECT_EQ(first_difference(spec, bytes, other), 33);
}

TEST(Torture, ReducingKeepsWhatIsNeededAndNoMore) {
  int runs = 0;
  const auto left_out = reduce(200, [&](const std::vector<bool>& out) {
    ++runs;
    return !out[17] && !out[18] && !out[140];
  });
  for (std::size_t i = 0; i < left_out.size(); ++i)
    EXPECT_EQ(left_out[i], i != 17 && i != 18 && i != 140) << i;
  EXPECT_LT(runs, 200);
  EXPECT_EQ(to_ranges({true, true, false, true, false, true}), "0-1,3,5");
}

/// In a world that shrinks nothing is drawn that parts could not do wherever they are.
TEST(Torture, ProgramsOfMembersKeepToWhatPartsCanDo) {
  std::set<Kind> collectives;
  bool waits = false, struck = false, fails_for_good = false;
  for (std::uint64_t seed = 1; seed < 60; ++seed) {
    const auto program = generate(seed, {.ranks = 3, .operations = 500, .shrinks = true});
    for (const auto& round : program.rounds) {
      ASSERT_EQ(round.kind, RoundKind::members);
      waits = waits || round.special != 0;
    }
    for_each_operation(program, [&](const Round&, const Operation& op) {
      if (is_collective(op.kind)) collectives.insert(op.kind);
      ASSERT_TRUE(op.kind != Kind::hold && op.kind != Kind::replace && op.kind != Kind::wrong);
      if (op.kind == Kind::all_reduce) {
        ASSERT_EQ(op.reduce, ReduceOp::sum);
      }
      struck = struck || op.kind == Kind::fault;
      fails_for_good = fails_for_good ||
                       (op.kind == Kind::fault && op.fault == memory::FaultKind::device_failure);
    });
  }
  EXPECT_EQ(collectives, (std::set<Kind>{Kind::all_reduce, Kind::broadcast}));
  EXPECT_TRUE(waits && struck && fails_for_good);
}

TEST(Torture, FaultsComeAtThreeLevels) {
  const auto blows = [](Faults level) {
    std::size_t stormy = 0, most = 0;
    for (std::uint64_t seed = 1; seed < 40; ++seed) {
      const auto program = generate(seed, {.ranks = 2, .operations = 500, .faults = level});
      stormy += program.stormy ? 1 : 0;
      for (const auto& round : program.rounds) {
        for (const auto& step : round.scripts) {
          std::size_t here = 0;
          for (const auto& rank : step) {
            for (const auto& script : rank)
              here += static_cast<std::size_t>(
                  std::count_if(script.begin(), script.end(),
                                [](const auto& op) { return op.kind == Kind::fault; }));
          }
          most = std::max(most, here);
        }
      }
    }
    return std::pair(stormy, most);
  };
  EXPECT_EQ(blows(Faults::none), std::pair(std::size_t{0}, std::size_t{0}));
  EXPECT_LT(blows(Faults::some).first, 39u);
  EXPECT_EQ(blows(Faults::some).second, 2u);
  EXPECT_EQ(blows(Faults::many), std::pair(std::size_t{39}, std::size_t{4}));
}

TEST(Torture, WhatIsLeftOpenIsFoundByKind) {
  EXPECT_EQ(kind_of("socket:[123]"), "socket");
  EXPECT_EQ(kind_of("anon_inode:[eventfd]"), "[eventfd]");
  EXPECT_EQ(kind_of("/memfd:troupe-slab (deleted)"), "/memfd:troupe-slab");
  EXPECT_EQ(kind_of("/dev/shm/open_mpi.0000"), "/dev/shm");
  EXPECT_EQ(kind_of("/tmp/some/file"), "file");
  const auto before = holdings_of(::getpid());
  EXPECT_EQ(grown(before, holdings_of(::getpid()), {}), "");
  const int event = ::eventfd(0, EFD_CLOEXEC);
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe(ends), 0);
  const auto after = holdings_of(::getpid());
  const auto text = grown(before, after, {});
  EXPECT_NE(text.find("[eventfd]"), std::string::npos) << text;
  EXPECT_NE(text.find("pipe"), std::string::npos) << text;
  EXPECT_EQ(grown(before, after, {"[eventfd]", "pipe"}), "");
  for (const int fd : {event, ends[0], ends[1]}) ::close(fd);
  EXPECT_EQ(grown(before, holdings_of(::getpid()), {}), "");
}

TEST(Torture, AnEntryOfDevShmIsForgottenOnceNobodyHasIt) {
  const auto path = "/dev/shm/troupe-torture-test-" + std::to_string(::getpid());
  const int fd = ::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0) GTEST_SKIP() << "no /dev/shm";
  EXPECT_FALSE(forgotten_in_dev_shm().contains(path));
  ::close(fd);
  EXPECT_TRUE(forgotten_in_dev_shm().contains(path));
  ::unlink(path.c_str());
  EXPECT_FALSE(forgotten_in_dev_shm().contains(path));
}

/// What is left out is not there, and nothing else has changed.
TEST(Torture, LeftOutOperationsAreNotCarriedOut) {
  const Recipe all{.ranks = 2, .operations = 300};
  Recipe less = all;
  for (std::uint32_t id = 10; id < 60; ++id) less.left_out.insert(id);
  std::size_t before = 0, after = 0;
  for_each_operation(generate(4, all), [&](const Round&, const Operation& op) {
    before += less.left_out.contains(op.id) ? 0 : 1;
  });
  for_each_operation(generate(4, less), [&](const Round&, const Operation& op) {
    EXPECT_FALSE(less.left_out.contains(op.id));
    ++after;
  });
  EXPECT_EQ(before, after);
}

}  // namespace
}  // namespace troupe::torture
