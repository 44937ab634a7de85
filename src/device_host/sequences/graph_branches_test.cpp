// The branches of sequences as parts of graphs: what an engine is told, in which order.
#include "device_host/sequences/graph_branches.hpp"

#include <gtest/gtest.h>

#include <array>
#include <stdexcept>
#include <string>

#include <troupe/lib/blas.hpp>
#include <troupe/lib/memory.hpp>
#include <troupe/lib/sequence.hpp>

#include "common/wire/sequence_list.hpp"
#include "device_host/engine/collective_half.hpp"

namespace troupe::host {
namespace {

constexpr std::uint32_t kCells = kPinnedRegion | 1;

/// Notes the branches of a graph.
class TracingGraphs final : public EngineGraphs {
 public:
  explicit TracingGraphs(std::string& its_trace) : trace(its_trace) {}
  std::string& trace;
  std::byte* base = nullptr;

  Result<void> begin_branch(Queue origin, const std::int32_t* flag, bool again) override {
    EXPECT_EQ(origin, Queue(Lane::memory));
    const auto at = (reinterpret_cast<const std::byte*>(flag) - base) / 64;
    trace += (again ? "while(" : "if(") + std::to_string(at) + ") ";
    return {};
  }
  Result<void> end_branch(Queue) override {
    trace += "end ";
    return {};
  }
};

/// Notes what is queued, which part of the graph it is in, and what each queue is ordered behind.
class TracingEngine final : public Engine {
 public:
  std::string trace;

  /// Where the cells of branches begin.
  void set_base(std::byte* cells) { graphs_.base = cells; }
  Result<void> run(const OperationInfo& info, const std::byte*, const Call& call) override {
    trace += std::string(info.name) + " ";
    ++behind_[call.queue().index()][call.queue().index()];
    return {};
  }
  /// How much of what was queued on `other` ends before what comes next on `queue`.
  [[nodiscard]] std::size_t behind(Queue queue, Queue other) const {
    return behind_[queue.index()][other.index()];
  }
  Result<Mark> mark(Queue queue) override {
    marks_.push_back(behind_[queue.index()]);
    return Mark{static_cast<std::uint32_t>(marks_.size())};
  }
  Result<void> wait(Queue queue, Mark mark) override {
    auto& all = behind_[queue.index()];
    const auto& others = marks_[mark.id - 1];
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = std::max(all[i], others[i]);
    return {};
  }
  Result<bool> reached(Mark) override { return true; }
  void release(Mark) override {}

  const DeviceInfo& description() const override { return description_; }
  EngineMemory& memory() override { throw std::logic_error("there is none"); }
  EngineLibraries& libraries() override { throw std::logic_error("there are none"); }
  EngineGraphs& graphs() override { return graphs_; }
  Result<void> open_queue(Queue) override { return {}; }
  Result<std::shared_ptr<std::byte>> scratch_memory(Queue, std::uint64_t) override {
    return nothing();
  }
  std::byte* scratch_cells() override { return nullptr; }
  Result<void> call_when_reached(Queue, void (*)(void*), void*) override { return nothing(); }
  Result<void> synchronize(Queue) override { return {}; }
  int completion_fd() const override { return -1; }
  void arm() override {}
  CollectiveHalf& collectives() override { throw std::logic_error("there are none"); }
  Result<void> suffer(memory::FaultKind, Queue) override { return nothing(); }

 private:
  static Error nothing() { return {Errc::unsupported, 0, "no part of the test"}; }
  DeviceInfo description_{"tracing", "nothing", "", "", 0, -1, {}};
  using Counts = std::array<std::size_t, kQueueCount>;
  std::array<Counts, kQueueCount> behind_{};
  std::vector<Counts> marks_;
  TracingGraphs graphs_{trace};
};

Operand part(std::uint64_t i, std::uint64_t bytes = 64) {
  return {.region = 1, .buffer = 1, .offset = 64 * i, .bytes = bytes};
}
Operand cell(std::uint64_t i) {
  return {.region = kCells, .offset = 4 * i, .bytes = 4};
}

class Branches : public ::testing::Test {
 protected:
  Branches() {
    addresses_.set(1, memory_.data(), memory_.size());
    engine_.set_base(memory_.data());
  }

  template <Operation Op>
  void add(const Op& op) {
    const detail::CommandView command(info_of<Op>, std::as_bytes(std::span(&op, 1)));
    records_.emplace_back(wire::record_bytes(command));
    wire::encode(command, 0, records_.back());
  }
  void fill(std::uint64_t x) { add(memory::Fill{DType::f64, 8, {}, part(x)}); }
  void scal(std::uint64_t x) { add(blas::Scal{DType::f64, 8, 1, Scalar::of(2.0), part(x)}); }
  void flag(std::uint64_t at, std::int64_t by) {
    add(memory::Copy{DType::i32, part(at, 4), cell(at)});
    branch(by, cell(at));
  }
  void branch(std::int64_t by, const Operand& flag = {}) {
    sequence::Branch op;
    op.by = by, op.flag = flag;
    add(op);
  }
  /// What an engine is told of the records; else the error.
  std::string told() {
    const auto list = wire::pack_records(records_);
    auto made =
        RecordedSequence::make({.number = 1, .commands = records_.size(), .patches = {}}, list);
    if (!made.ok()) return made.error().message;
    engine_.trace.clear();
    Playing playing(*made, engine_, Lane::memory);
    GraphBranches branches(engine_, addresses_);
    for (;;) {
      const auto more = branches.next_command(playing);
      if (!more.ok()) return more.error().message;
      if (!*more) return engine_.trace;
      const auto& command = *playing.next().command;
      const Call call(playing.next_queue(), addresses_, command.parts());
      if (!playing.order_next().ok() || !engine_.run(command.info(), command.op(), call).ok() ||
          !playing.passed().ok())
        return "it cannot be queued";
    }
  }

  TracingEngine engine_;
  std::array<std::byte, 64 * 32> memory_{};
  AddressMap addresses_;
  std::vector<wire::SequenceRecord> records_;
};

TEST_F(Branches, ArePartsThatLieWithinOneAnother) {
  fill(0);
  flag(5, 2), scal(0);  // if
  flag(6, 8);           // while, up to behind its way back
  scal(1);
  flag(7, 3), fill(2), scal(2);  // an if within
  scal(3);
  branch(-8);
  fill(4);
  EXPECT_EQ(told(),
            "memory.fill if(5) blas.scal end while(6) blas.scal if(7) memory.fill blas.scal end "
            "blas.scal end memory.fill ");
}

TEST_F(Branches, MayEndTogetherAndBeEmpty) {
  flag(5, 6);  // if
  fill(0);
  flag(6, 3);  // an if that ends with it
  scal(0), scal(1);
  flag(7, 1);  // nothing within
  EXPECT_EQ(told(), "if(5) memory.fill if(6) blas.scal blas.scal end end if(7) end ");
}

/// As a list: what comes behind the way back, and behind the loop, is behind all of its body.
TEST_F(Branches, LetNothingOvertakeTheBodyOfALoop) {
  flag(5, 3);  // while
  scal(1);
  branch(-3);
  fill(1);
  const auto list = wire::pack_records(records_);
  const auto made =
      RecordedSequence::make({.number = 1, .commands = records_.size(), .patches = {}}, list);
  ASSERT_TRUE(made.ok()) << made.error().message;
  Playing playing(*made, engine_, Lane::memory);
  const Queue blas((*made)->steps()[2].lane);
  std::size_t turns = 0;
  while (!playing.done()) {
    const auto& step = playing.next();
    if (step.by != 0) {
      const bool way_back = step.flag == nullptr;
      if (!way_back) {
        ASSERT_TRUE(playing.ended().ok());
      }
      ASSERT_TRUE(playing.go_on(way_back || turns == 2).ok());
      continue;
    }
    const Call call(playing.next_queue(), addresses_, step.command->parts());
    ASSERT_TRUE(playing.order_next().ok());
    EXPECT_EQ(engine_.behind(call.queue(), blas), turns) << step.command->name();
    ASSERT_TRUE(engine_.run(step.command->info(), step.command->op(), call).ok());
    if (step.lane == blas.lane) ++turns;
    ASSERT_TRUE(playing.passed().ok());
  }
  EXPECT_EQ(engine_.trace, "memory.copy blas.scal memory.copy blas.scal memory.copy memory.fill ");
}

TEST_F(Branches, ThatAreNoneOfTheProgramsAreRefused) {
  flag(5, 4), fill(0), flag(6, 3), fill(1), fill(2);  // the second begins within the first
  EXPECT_EQ(told(), "its branches do not lie within one another");
  records_.clear();
  fill(0), branch(-1), fill(1);  // back without a flag
  EXPECT_EQ(told(), "its branches do not lie within one another");
  records_.clear();
  branch(1, cell(5)), fill(1);  // nobody has copied the flag
  EXPECT_EQ(told(), "its branches do not lie within one another");
  records_.clear();
  fill(0), flag(5, 3), fill(1), branch(-4), fill(2);  // back to what is before the flag
  EXPECT_EQ(told(), "its branches do not lie within one another");
}

}  // namespace
}  // namespace troupe::host
