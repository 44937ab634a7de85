// Commands that were in flight when their device host died and run again on the next one: which do,
// that those which do find what they need, and how the one that kills its hosts is told from the
// others.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <random>
#include <vector>

#include <troupe/lib/blas.hpp>
#include <troupe/lib/collective.hpp>
#include <troupe/lib/file.hpp>

#include "command_port_rig.hpp"
#include "random_cases.hpp"
#include "rank/device/commands/replay.hpp"

namespace troupe::rank_process {
namespace {

const Error kHostDied{Errc::device_lost, 9, "killed by signal 9"};

/// A port that lets commands run again.
struct ReplayRig : PortRig {
  ReplayRig() : PortRig(1u << 16, {}, true) {}

  Future<void> axpy(const Operand& x, const Operand& y) {
    return detail::submit(port, blas::Axpy{DType::f64, 8, 1, 1, Scalar::of(1.0), x, y});
  }
};

TEST(ByteRanges, KnowTheirBytes) {
  for (std::uint32_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    ByteRanges one, other;
    std::array<bool, 64> in_one{}, in_other{};
    const auto add = [&](ByteRanges& set, std::array<bool, 64>& bytes) {
      const std::uint64_t first = random() % 64, count = random() % (65 - first);
      set.add(1, first, count);
      std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(first), count, true);
    };
    for (auto i = random() % 8; i > 0; --i) add(one, in_one);
    for (auto i = random() % 8; i > 0; --i) add(other, in_other);
    for (int i = 0; i < 20; ++i) {
      const std::uint64_t first = random() % 64, count = random() % (65 - first);
      bool within = true;
      for (auto at = first; at < first + count; ++at) within &= !in_one[at] || in_other[at];
      EXPECT_EQ(one.within(other, {1, 0, 0, 0, first, count}), within) << first << " " << count;
      EXPECT_TRUE(one.within(other, {2, 0, 0, 0, first, count})) << "another region";
    }
  }
}

TEST(Replay, APureWriteRunsAgain) {
  ReplayRig rig;
  HostEnd host(rig.link);
  const auto a = rig.operand(rig.add_buffer()), b = rig.operand(rig.add_buffer());
  const auto fill = rig.fill(a), copy = rig.copy(a, b), untaken = rig.nop();
  host.take(2);
  const auto next = make_link(2);
  const auto settled = rig.port.hosts().move_to(next, kHostDied);
  EXPECT_EQ(settled.failed, 0u);
  EXPECT_EQ(settled.resubmitted, 3u);
  EXPECT_TRUE(settled.lost_buffers.empty());
  HostEnd second(next);
  for (const bool alone : {true, true, false}) {
    ASSERT_TRUE(second.take());
    EXPECT_EQ((second.command.header().flags & wire::kAlone) != 0, alone);
  }
  EXPECT_EQ(second.taken, (std::vector<std::uint64_t>{1, 2, 3}));
  second.answer(1, 3);
  EXPECT_TRUE(fill.wait().ok() && copy.wait().ok() && untaken.wait().ok());
}

TEST(Replay, AnUpdateDoesNot) {
  ReplayRig rig;
  HostEnd host(rig.link);
  const auto x = rig.operand(rig.add_buffer()), y = rig.operand(rig.add_buffer());
  const auto axpy = rig.axpy(x, y), reads = rig.copy(y, x);
  host.take(2);
  const auto settled = rig.port.hosts().move_to(make_link(2), kHostDied);
  EXPECT_EQ(axpy.wait().code(), Errc::device_lost);
  EXPECT_EQ(reads.wait().code(), Errc::device_lost) << "what it read may be half an update";
  EXPECT_EQ(settled.lost_buffers, (std::vector<std::uint32_t>{y.buffer, x.buffer}));
}

TEST(Replay, AnUpdateDoesBehindWhatMadeItsInput) {
  ReplayRig rig;
  HostEnd host(rig.link);
  const auto x = rig.operand(rig.add_buffer()), y = rig.operand(rig.add_buffer());
  std::vector<Future<void>> chain{rig.fill(x), rig.copy(x, y), rig.axpy(x, y)};
  host.take(3);
  const auto next = make_link(2);
  EXPECT_EQ(rig.port.hosts().move_to(next, kHostDied).resubmitted, 3u);
  HostEnd second(next);
  second.take(3);
  second.answer(1, 3);
  for (const auto& future : chain) EXPECT_TRUE(future.wait().ok());
}

/// A read of a file runs again on the next device host only if no write that was in flight may have
/// changed the file.
TEST(Replay, OperationsOnFilesRunAgainWhereTheFileIsAsItWas) {
  ReplayRig rig;
  HostEnd host(rig.link);
  const auto x = rig.operand(rig.add_buffer()), y = rig.operand(rig.add_buffer()),
             z = rig.operand(rig.add_buffer()), w = rig.operand(rig.add_buffer());
  const auto cell = [](std::uint64_t at) {
    return Operand{.region = kPinnedRegion | 1, .offset = at, .bytes = sizeof(file::Done)};
  };
  const std::array<std::byte, 2> path{std::byte{'/'}, std::byte{'f'}};
  const auto transfer = [&](auto op, const Operand& range, std::uint64_t thing, std::uint64_t at) {
    op.dtype = DType::f64, op.path_bytes = 2, op.done = cell(at);
    if constexpr (requires { op.source; }) op.source = range;
    if constexpr (requires { op.destination; }) op.destination = range;
    op.place = outside::thing(thing);
    return detail::submit(rig.port, op, Parts(std::span<const TailOperand>(), path));
  };
  const auto write = transfer(file::Write(), x, 1, 0), read = transfer(file::Read(), y, 1, 256),
             other = transfer(file::Read(), z, 2, 512);
  host.take(3);
  const auto untaken = transfer(file::Read(), w, 1, 768);
  const auto next = make_link(2);
  (void)rig.port.hosts().move_to(next, kHostDied);
  EXPECT_EQ(read.wait().code(), Errc::device_lost) << "the write may be half done, or not begun";
  HostEnd second(next);
  second.take(3);
  EXPECT_EQ(second.taken, (std::vector<std::uint64_t>{1, 3, 4}));
  second.answer(1, 1), second.answer(3, 2);
  EXPECT_TRUE(write.wait().ok() && other.wait().ok() && untaken.wait().ok());
}

TEST(Replay, AFileThatAWriteHasNotEndedIsNotReadAndMayBeWritten) {
  ReplayRig rig;
  HostEnd host(rig.link);
  const auto x = rig.operand(rig.add_buffer()), y = rig.operand(rig.add_buffer());
  const std::array<std::byte, 2> path{std::byte{'/'}, std::byte{'f'}};
  const Parts parts(std::span<const TailOperand>(), path);
  file::Write write;
  write.dtype = DType::f64, write.path_bytes = 2, write.source = x;
  write.done = {.region = kPinnedRegion | 1, .bytes = sizeof(file::Done)};
  write.place = outside::thing(1);
  file::Read read;
  read.dtype = DType::f64, read.path_bytes = 2, read.destination = y;
  read.done = {.region = kPinnedRegion | 1, .offset = 256, .bytes = sizeof(file::Done)};
  read.place = outside::thing(1);
  // An update in flight keeps what it writes from being written to the file again.
  const auto scal = detail::submit(rig.port, blas::Scal{DType::f64, 8, 1, Scalar::of(2.0), x}),
             lost = detail::submit(rig.port, write, parts);
  host.take(2);
  const auto stale = detail::submit(rig.port, read, parts);
  write.source = rig.operand(rig.add_buffer());
  write.done.offset = 512;
  const auto written = detail::submit(rig.port, write, parts);
  const auto next = make_link(2);
  (void)rig.port.hosts().move_to(next, kHostDied);
  EXPECT_EQ(scal.wait().code(), Errc::device_lost);
  EXPECT_EQ(lost.wait().code(), Errc::device_lost);
  EXPECT_EQ(stale.wait().code(), Errc::stale);
  HostEnd second(next);
  second.take(1);
  EXPECT_EQ(second.taken, (std::vector<std::uint64_t>{4}));
  second.answer(4, 1);
  EXPECT_TRUE(written.wait().ok());
}

TEST(Replay, AnInputThatIsOverwrittenLaterIsGone) {
  ReplayRig rig;
  HostEnd host(rig.link);
  const auto a = rig.operand(rig.add_buffer()), b = rig.operand(rig.add_buffer());
  const auto copy = rig.copy(a, b), fill = rig.fill(a);
  host.take(2);
  const auto next = make_link(2);
  (void)rig.port.hosts().move_to(next, kHostDied);
  EXPECT_EQ(copy.wait().code(), Errc::device_lost) << "the fill may have been there before";
  EXPECT_FALSE(fill.ready());
  HostEnd second(next);
  second.take(1);
  EXPECT_EQ(second.taken, std::vector<std::uint64_t>{2});
}

TEST(Replay, AResultShorterThanItsBufferMakesOnlyItself) {
  ReplayRig rig;
  HostEnd host(rig.link);
  const auto x = rig.operand(rig.add_buffer()), y = rig.operand(rig.add_buffer()),
             z = rig.operand(rig.add_buffer());
  // A norm into the first of y's eight elements; then all of y is read, and overwritten.
  const auto norm = detail::submit(rig.port, blas::Nrm2{DType::f64, 8, 1, x, y});
  const auto reads = rig.copy(y, z), fill = rig.fill(y);
  host.take(3);
  (void)rig.port.hosts().move_to(make_link(2), kHostDied);
  EXPECT_FALSE(norm.ready());
  EXPECT_EQ(reads.wait().code(), Errc::device_lost) << "the other seven may be the fill's";
  EXPECT_FALSE(fill.ready());
}

TEST(Replay, OperandsOfATailAreRenewedAsFarAsTheOperationSays) {
  ReplayRig rig;
  HostEnd host(rig.link);
  const auto x = rig.operand(rig.add_buffer()), y = rig.operand(rig.add_buffer()),
             z = rig.operand(rig.add_buffer()), w = rig.operand(rig.add_buffer());
  const auto multiply = [&](std::int64_t m, const Operand& to) {
    blas::GemmBatched op;
    op.dtype = DType::f64;
    op.m = op.lda = op.ldc = m;
    op.n = op.k = op.ldb = op.batch = 1;
    op.alpha = Scalar::of(1.0);
    return detail::submit(
        rig.port, op,
        std::vector<TailOperand>{
            {x, op.of_a, Access::read}, {x, op.of_b, Access::read}, {to, op.of_c, Access::write}});
  };
  const auto whole = multiply(8, y), reads_whole = rig.copy(y, w);
  const auto half = multiply(4, z), reads_half = rig.copy(z, w);
  host.take(4);
  EXPECT_EQ(rig.port.hosts().move_to(make_link(2), kHostDied).resubmitted, 3u);
  EXPECT_FALSE(whole.ready() || reads_whole.ready() || half.ready());
  EXPECT_EQ(reads_half.wait().code(), Errc::device_lost) << "the other half is from before";
}

TEST(Replay, NeitherCollectivesNorOrderedFaultsRunAgain) {
  ReplayRig rig;
  HostEnd host(rig.link);
  rig.port.gate().set_epoch(Epoch(3));
  const auto a = rig.operand(rig.add_buffer()), b = rig.operand(rig.add_buffer());
  const collective::AllReduce op{DType::f64, ReduceOp::sum, 0, 8, a, b};
  const auto reduced = detail::submit(rig.port, op, {}, 3);
  const auto fault =
      detail::submit(rig.port, memory::Fault{DType::f64, memory::FaultKind::kill, 0});
  host.take(2);
  const auto settled = rig.port.hosts().move_to(make_link(2), kHostDied);
  EXPECT_EQ(reduced.wait().code(), Errc::device_lost);
  EXPECT_EQ(fault.wait().code(), Errc::device_lost);
  EXPECT_EQ(settled.lost_buffers, std::vector<std::uint32_t>{b.buffer});
}

TEST(Replay, TheCulpritFailsAlone) {
  ReplayRig rig;
  std::vector<Operand> operand;
  for (int i = 0; i < 5; ++i) operand.push_back(rig.operand(rig.add_buffer()));
  std::vector<Future<void>> fills;
  for (const auto& each : operand) fills.push_back(rig.fill(each));
  const auto reads_lost = rig.copy(operand[2], operand[4]);
  HostEnd first(rig.link);
  first.take(4);
  const auto second_link = make_link(2), third_link = make_link(3);
  EXPECT_EQ(rig.port.hosts().move_to(second_link, kHostDied).failed, 0u);
  // Each alone: the host answers two, and dies of the third.
  HostEnd second(second_link);
  second.take(3);
  second.answer(1, 2);
  const auto settled = rig.port.hosts().move_to(third_link, kHostDied);
  EXPECT_EQ(fills[2].wait().code(), Errc::device_lost);
  EXPECT_EQ(reads_lost.wait().code(), Errc::stale);
  EXPECT_EQ(settled.lost_buffers,
            (std::vector<std::uint32_t>{operand[2].buffer, operand[4].buffer}));
  HostEnd third(third_link);
  third.take(2);
  EXPECT_EQ(third.taken, (std::vector<std::uint64_t>{4, 5}));
  third.answer(4, 2);
  for (const std::size_t i : {0u, 1u, 3u, 4u}) EXPECT_TRUE(fills[i].wait().ok()) << i;
}

TEST(Replay, NotBehindAClosedGate) {
  ReplayRig rig;
  HostEnd host(rig.link);
  const auto fill = rig.fill(rig.operand(rig.add_buffer()));
  host.take(1);
  rig.port.gate().close({Errc::world_reformed, 0, "the state is rolled back"});
  EXPECT_EQ(rig.port.hosts().move_to(make_link(2), kHostDied).failed, 1u);
  EXPECT_EQ(fill.wait().code(), Errc::device_lost);
}

TEST(Replay, NotFromARingThatIsSpoilt) {
  ReplayRig rig;
  HostEnd host(rig.link);
  std::vector<Future<void>> fills;
  for (int i = 0; i < 3; ++i) fills.push_back(rig.fill(rig.operand(rig.add_buffer())));
  host.take(3);
  host.data()[8 + offsetof(wire::CommandHeader, opcode)] ^= std::byte{1};  // of the first record
  EXPECT_EQ(rig.port.hosts().move_to(make_link(2), kHostDied).failed, 3u);
  for (const auto& fill : fills) EXPECT_EQ(fill.wait().code(), Errc::device_lost);
}

TEST(Replay, ManyMoreCommandsThanTheRingHolds) {
  ReplayRig rig;
  const auto a = rig.operand(rig.add_buffer());
  auto link = rig.link;
  std::vector<Future<void>> futures;
  std::uint64_t answered = 0, host_id = 2;
  HostEnd host(link);
  const auto submit_all = [&] {
    for (;;) {
      const memory::Fill op{DType::f64, 8, {}, a};
      auto future = rig.port.try_submit({info_of<memory::Fill>, std::as_bytes(std::span(&op, 1))});
      if (future.ready() && future.wait().code() == Errc::would_block) return;
      futures.push_back(std::move(future));
    }
  };
  submit_all();
  while (host.take()) {
  }
  EXPECT_EQ(host.taken.size(), futures.size());
  submit_all();
  EXPECT_EQ(host.taken.size(), futures.size()) << "what is in flight keeps its place in the ring";
  answered = futures.size() / 2;
  host.answer(1, static_cast<std::uint32_t>(answered));
  rig.port.replies().drain();
  submit_all();
  EXPECT_GT(futures.size(), host.taken.size());
  const auto next = make_link(host_id);
  const auto settled = rig.port.hosts().move_to(next, kHostDied);
  EXPECT_EQ(settled.failed, 0u);
  EXPECT_EQ(settled.resubmitted, futures.size() - answered);
  HostEnd second(next);
  while (second.take()) {
  }
  EXPECT_EQ(second.taken.front(), answered + 1);
  EXPECT_EQ(second.taken.back(), futures.size());
}

/// Hosts that really compute, on memory that outlives them, and die at any moment: what is valid at
/// the end is what the program says, and what can run again has.
class Model {
 public:
  static constexpr std::size_t kBuffers = 6, kElements = 8;
  using Memory = std::array<std::array<double, kElements>, kBuffers>;

  static void run(const wire::Command& command, Memory& memory) {
    if (const auto* fill = command.as<memory::Fill>()) {
      double value = 0;
      std::memcpy(&value, fill->pattern, sizeof value);
      memory[buffer(fill->destination)].fill(value);
    } else if (const auto* copy = command.as<memory::Copy>()) {
      memory[buffer(copy->destination)] = memory[buffer(copy->source)];
    } else if (const auto* axpy = command.as<blas::Axpy>()) {
      auto& y = memory[buffer(axpy->y)];
      const auto x = memory[buffer(axpy->x)];
      for (std::size_t i = 0; i < kElements; ++i) y[i] += x[i];
    }
  }
  static std::size_t buffer(const Operand& operand) { return operand.offset / 64; }
};

TEST(Replay, RandomProgramsOnHostsThatDie) {
  std::size_t repeated = 0, failed = 0, updates_lost = 0;
  const auto seeds = test::fewer_if_brief(test::random_cases(2000));
  for (std::uint32_t seed = 1; seed <= seeds && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    ReplayRig rig;
    std::vector<Operand> operand;
    for (std::size_t i = 0; i < Model::kBuffers; ++i)
      operand.push_back(rig.operand(rig.add_buffer()));
    Model::Memory actual{}, expected{};
    std::vector<Future<void>> futures;
    wire::Command command;
    auto link = rig.link;
    for (std::uint64_t host_id = 2; host_id < 6; ++host_id) {
      HostEnd host(link);
      for (auto fresh = random() % 15; fresh > 0; --fresh) {
        const auto& from = operand[random() % operand.size()];
        const auto& to = operand[random() % operand.size()];
        const auto kind = random() % 4;
        if (kind == 0 || from.buffer == to.buffer) {
          memory::Fill fill{DType::f64, Model::kElements, {}, to};
          const double value = static_cast<double>(random() % 1000);
          std::memcpy(fill.pattern, &value, sizeof value);
          futures.push_back(detail::submit(rig.port, fill));
          if (!futures.back().ready()) expected[Model::buffer(to)].fill(value);
        } else if (kind == 1) {
          futures.push_back(rig.axpy(from, to));
          if (!futures.back().ready()) {
            for (std::size_t i = 0; i < Model::kElements; ++i)
              expected[Model::buffer(to)][i] += expected[Model::buffer(from)][i];
          }
        } else {
          futures.push_back(rig.copy(from, to));
          if (!futures.back().ready()) expected[Model::buffer(to)] = expected[Model::buffer(from)];
        }
      }
      // The GPU: takes some, runs some of what it took in any order that its hazards allow, some of
      // those in part.
      std::deque<wire::Command> taken;
      const bool last = host_id == 5;
      for (auto left = last ? 1000 : random() % 20; left > 0 && host.take(); --left)
        taken.emplace_back().decode(host.taken_record).take();
      std::array<bool, Model::kBuffers> blocked{};
      std::uint64_t answered = 0;
      bool in_order = true;
      for (const auto& each : taken) {
        bool may_run = true;
        for (const auto& use : each.operands()) may_run &= !blocked[Model::buffer(*use.range)];
        const auto fate = last ? 0 : random() % 3;
        if (may_run && fate != 2) {
          const auto before = actual;
          Model::run(each, actual);
          if (fate == 1) {  // half of it
            for (std::size_t b = 0; b < Model::kBuffers; ++b)
              std::copy_n(before[b].begin(), Model::kElements / 2, actual[b].begin());
          }
        }
        if (!may_run || fate != 0) {
          in_order = false;
          for (const auto& use : each.operands()) blocked[Model::buffer(*use.range)] = true;
        } else if (in_order) {
          answered = each.header().ticket;
        }
      }
      if (answered != 0) {
        const auto first = taken.front().header().ticket;
        if (last || random() % 2 != 0)
          host.answer(first, static_cast<std::uint32_t>(answered - first + 1));
      }
      rig.port.replies().drain();
      if (last) break;
      link = make_link(host_id);
      const auto settled = rig.port.hosts().move_to(link, kHostDied);
      repeated += settled.resubmitted;
      failed += settled.failed;
      updates_lost += settled.lost_buffers.size();
    }
    for (const auto& future : futures) ASSERT_TRUE(future.ready());
    for (std::size_t b = 0; b < Model::kBuffers; ++b) {
      if (rig.port.buffers().generation(operand[b].buffer) == operand[b].generation) {
        EXPECT_EQ(actual[b], expected[b]) << "buffer " << b;
      }
    }
  }
  EXPECT_GT(repeated, 5 * seeds);
  EXPECT_GT(failed, 5 * seeds);
  EXPECT_GT(updates_lost, 5 * seeds);
}

}  // namespace
}  // namespace troupe::rank_process
