#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <future>
#include <map>
#include <sstream>
#include <utility>

#include <troupe/lib/operations.hpp>

#include "account.hpp"
#include "catalogue/values.hpp"
#include "holdings.hpp"
#include "oracle.hpp"
#include "program.hpp"
#include "random_cases.hpp"
#include "reduce.hpp"
#include "threads.hpp"
#include "torture_hand.hpp"

// The parts of troupe-torture that need no device: what a seed makes, what it must come to, and how
// a failing program is made smaller.

namespace troupe::torture {
namespace {

using test::fewer_if_brief;
using test::random_cases;

/// Calls of all libraries, in the place of the catalogue's: nothing here makes them.
constexpr auto kReals = DTypes::reals();
constexpr CallInfo kCalls[]{{"gemm", "blas", kReals},
                            {"axpy", "blas", DTypes::all()},
                            {"potrs", "solver", kReals},
                            {"forward", "fft", kReals},
                            {"bits", "rng", kReals},
                            {"places", "primitives", kReals},
                            {"spmm", "sparse", kReals},
                            {"factors", "direct", kReals},
                            {"einsum", "tensor", kReals},
                            {"softmax", "dnn", kReals},
                            {"tridiagonal", "tridiagonal", kReals}};
std::vector<const CallInfo*> calls() {
  std::vector<const CallInfo*> all;
  for (const auto& call : kCalls) all.push_back(&call);
  return all;
}

TEST(Torture, OneSeedMakesOneProgram) {
  for (std::uint64_t seed = 1; seed < 20; ++seed) {
    const Recipe recipe{.calls = calls(), .ranks = 3, .operations = 500};
    const auto print = generate(seed, recipe).fingerprint();
    EXPECT_EQ(generate(seed, recipe).fingerprint(), print);
    EXPECT_NE(generate(seed + 1, recipe).fingerprint(), print);
    EXPECT_NE(generate(seed, {.calls = calls(), .ranks = 2, .operations = 500}).fingerprint(),
              print);
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
  std::set<Errc> failures;
  std::set<std::string_view> fragile;
  bool remote = false, big = false;
  std::set<int> threads_of_runs;
  const auto all_of_them = [&] {
    return kinds.size() == kKindCount && rounds.size() == kRoundKindCount - 1 &&
           dtypes.size() == kDTypeCount && wrongs.size() == kWrongCount - 1 && blows.size() == 6 &&
           awaits.size() == 6 && failures.size() == 4 && fragile.size() == 11 &&
           threads_of_runs.size() == 4 && remote && big;
  };
  for (std::uint64_t seed = 1; seed < 300 && !all_of_them(); ++seed) {
    const auto program = generate(seed, {.calls = calls(), .ranks = 2, .operations = 1000});
    for (const auto& round : program.rounds) rounds.insert(round.kind);
    for (const auto& buffer : program.buffers) {
      dtypes.insert(buffer.dtype);
      big = big || buffer.length * 4 > std::int64_t{4} << 20;
    }
    for_each_operation(program, [&](const Round& round, const Operation& op) {
      if (round.kind == RoundKind::run) threads_of_runs.insert(op.thread);
      kinds.insert(op.kind);
      awaits.insert(op.await);
      failures.insert(op.fails);
      if (op.fails == Errc::library) fragile.insert(library_of(op.kind));
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
  EXPECT_EQ(failures, (std::set<Errc>{Errc::ok, Errc::invalid, Errc::numeric, Errc::library}));
  EXPECT_EQ(fragile,
            (std::set<std::string_view>{"vector", "blas", "sparse", "rng", "solver", "fft",
                                        "primitives", "dnn", "kernel", "function", "tridiagonal"}));
  EXPECT_EQ(threads_of_runs.size(), 4u);
  EXPECT_TRUE(remote);
  EXPECT_TRUE(big);
}

TEST(Torture, SeedsMakeEveryCall) {
  std::set<std::pair<const CallInfo*, DType>> made;
  std::size_t all = 0;
  for (const auto& call : kCalls) all += static_cast<std::size_t>(std::popcount(call.dtypes.bits));
  for (std::uint64_t seed = 1; seed < 150 && made.size() < all; ++seed) {
    for_each_operation(generate(seed, {.calls = calls(), .ranks = 2, .operations = 1000}),
                       [&](const Round&, const Operation& op) {
                         if (!is_call(op.kind)) return;
                         ASSERT_EQ(op.call->library, library_of(op.kind));
                         ASSERT_TRUE(op.call->dtypes.has(op.dtype)) << describe(op);
                         ASSERT_TRUE(written(op).empty()) << describe(op);
                         made.insert({op.call, op.dtype});
                       });
  }
  EXPECT_EQ(made.size(), all);
}

/// Values are determined only if nobody writes what another thread uses.
TEST(Torture, NobodyTouchesWhatAnotherThreadWrites) {
  for (std::uint64_t seed = 1; seed < fewer_if_brief(60); ++seed) {
    const auto program = generate(seed, {.calls = calls(), .ranks = 4, .operations = 600});
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

/// What a bundle reads nothing else in it writes; all ranks of its communicator put the same into
/// it.
TEST(Torture, BundlesAreAlikeAndNameBuffersOnce) {
  std::set<Kind> kinds;
  std::size_t largest = 0;
  for (std::uint64_t seed = 1; seed < fewer_if_brief(60); ++seed) {
    const auto program = generate(seed, {.calls = calls(), .ranks = 4, .operations = 600});
    std::map<std::uint32_t, std::map<int, std::vector<std::uint32_t>>> ids;  // by rank
    std::map<std::uint32_t, std::map<int, std::uint32_t>> by_buffer;
    for_each_operation(program, [&](const Round& round, const Operation& op) {
      if (op.bundle == 0) return;
      kinds.insert(op.kind);
      ids[op.bundle][op.rank].push_back(op.id);
      auto slices = std::vector<Slice>(op.at.begin(), op.at.end());
      slices.push_back(op.alpha_at);
      for (const auto& slice : slices) {
        if (!slice.present() || round.owners[static_cast<std::size_t>(slice.buffer)].shared)
          continue;
        const auto [at, fresh] = by_buffer[op.bundle].emplace(slice.buffer, op.id);
        ASSERT_EQ(at->second, op.id) << describe(op);
      }
    });
    for (const auto& [bundle, by_rank] : ids) {
      for (const auto& [rank, list] : by_rank) ASSERT_EQ(list, by_rank.begin()->second) << bundle;
      largest = std::max(largest, by_rank.begin()->second.size());
    }
  }
  EXPECT_EQ(kinds.size(), 9u);
  EXPECT_EQ(largest, 4u);
}

/// What a failure has left stale would make more fail, in an order that depends on time.
TEST(Torture, NobodyUsesWhatAFailureHasSpoilt) {
  for (std::uint64_t seed = 1; seed < fewer_if_brief(60); ++seed) {
    const auto program = generate(seed, {.calls = calls(), .ranks = 3, .operations = 600});
    const Round* current = nullptr;
    std::map<std::pair<int, int>, std::uint32_t> spoilt;  // in its round, by which operation
    for_each_operation(program, [&](const Round& round, const Operation& op) {
      if (std::exchange(current, &round) != &round) {
        spoilt.clear();
        for_each_operation(program, [&](const Round& other, const Operation& failing) {
          if (&other != &round || failing.fails == Errc::ok) return;
          for (const auto& slice : written(failing))
            spoilt.emplace(std::pair(slice.rank, slice.buffer), failing.id);
        });
      }
      ASSERT_TRUE(op.fails == Errc::ok || round.kind != RoundKind::run) << describe(op);
      if (op.kind == Kind::wrong) return;
      for (const auto& slice : op.at) {
        const auto found = spoilt.find({slice.rank, slice.buffer});
        ASSERT_TRUE(found == spoilt.end() || op.id <= found->second) << describe(op);
      }
    });
  }
}

/// Else the call that fails would be another one than the oracle says.
TEST(Torture, OnlyOneThreadUsesALibraryThatIsLetFail) {
  int failures = 0;
  for (std::uint64_t seed = 1; seed <= random_cases(200); ++seed) {
    const auto program = generate(seed, {.calls = calls(), .ranks = 3, .operations = 600});
    for_each_operation(program, [&](const Round& its_round, const Operation& failing) {
      if (failing.fails != Errc::library) return;
      ++failures;
      ASSERT_FALSE(program.stormy);
      const auto library = library_of(failing.kind);
      for_each_operation(program, [&](const Round& round, const Operation& op) {
        if (&round != &its_round || library_of(op.kind) != library || op.target != failing.target)
          return;
        ASSERT_EQ(op.rank, failing.rank) << describe(op);
        ASSERT_EQ(op.thread, failing.thread) << describe(op);
        ASSERT_GE(op.id, failing.id) << describe(op);
      });
    });
    for_each_operation(
        generate(seed, {.calls = calls(), .ranks = 3, .operations = 600, .faults = Faults::none}),
        [](const Round&, const Operation& op) { ASSERT_NE(op.fails, Errc::library); });
  }
  EXPECT_GT(failures, static_cast<int>(random_cases(20)));
}

TEST(Torture, AllValuesAreExact) {
  const auto random = random_numbers();
  for (std::uint64_t seed = 1; seed < random_cases(40); ++seed) {
    const auto program = generate(seed, {.calls = calls(), .ranks = 2, .operations = 2000});
    Oracle oracle(program, random);
    for (const auto& round : program.rounds) {
      for (std::size_t step = 0; step < round.scripts.size(); ++step)
        oracle.apply(round, step, undisturbed, kNobodyLooks);
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
    const auto program =
        generate(seed, {.calls = calls(), .ranks = 3, .operations = 500, .shrinks = true});
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

TEST(Torture, GpusSayThatTheyAreFailingWhereTheyAreLeft) {
  std::map<bool, int> blows;
  for (const bool leaves : {false, true}) {
    for (std::uint64_t seed = 1; seed < 20; ++seed) {
      const auto program = generate(seed, {.calls = calls(),
                                           .ranks = 3,
                                           .operations = 500,
                                           .shrinks = true,
                                           .leaves_failing = leaves});
      for_each_operation(program, [&](const Round&, const Operation& op) {
        if (op.kind == Kind::fault && op.blow == Blow::failing_gpu) ++blows[leaves];
      });
    }
  }
  EXPECT_EQ(blows[false], 0);
  EXPECT_GT(blows[true], 3);
}

TEST(Torture, FaultsComeAtThreeLevels) {
  constexpr std::size_t kSeeds = 39;
  const auto blows = [](Faults level) {
    std::size_t stormy = 0, most = 0;
    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
      const auto program =
          generate(seed, {.calls = calls(), .ranks = 2, .operations = 500, .faults = level});
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
  const auto some = blows(Faults::some);
  EXPECT_LT(some.first, kSeeds);
  EXPECT_EQ(some.second, 2u);
  EXPECT_EQ(blows(Faults::many), std::pair(kSeeds, std::size_t{4}));
}

TEST(Torture, WhatIsLeftOpenIsFoundByKind) {
  EXPECT_EQ(kind_of("socket:[123]"), "socket");
  EXPECT_EQ(kind_of("anon_inode:[eventfd]"), "[eventfd]");
  EXPECT_EQ(kind_of("/memfd:troupe-slab (deleted)"), "/memfd:troupe-slab");
  EXPECT_EQ(kind_of("/dev/shm/open_mpi.0000"), "/dev/shm");
  EXPECT_EQ(kind_of("/tmp/some/file"), "file file");
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

/// A job whose ranks have no library runs the same programs, without its operations.
TEST(Torture, WhatNoLibraryIsThereForIsNotCarriedOut) {
  const Recipe all{.calls = calls(), .ranks = 2, .operations = 300};
  Recipe less = all;
  less.missing = {Kind::transform, Kind::attention};
  for (std::uint64_t seed = 1; seed < 30; ++seed) {
    std::vector<std::uint32_t> ids;
    for_each_operation(generate(seed, all), [&](const Round&, const Operation& op) {
      if (!less.missing.contains(op.kind)) ids.push_back(op.id);
    });
    std::size_t at = 0;
    for_each_operation(generate(seed, less), [&](const Round&, const Operation& op) {
      ASSERT_LT(at, ids.size());
      ASSERT_EQ(op.id, ids[at++]);
    });
    EXPECT_EQ(at, ids.size());
  }
}

/// What is left out is not there, and nothing else has changed.
TEST(Torture, LeftOutOperationsAreNotCarriedOut) {
  const Recipe all{.calls = calls(), .ranks = 2, .operations = 300};
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
