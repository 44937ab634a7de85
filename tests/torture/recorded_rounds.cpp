#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <thread>

#include <troupe/lib/dnn.hpp>
#include <troupe/lib/primitives.hpp>
#include <troupe/lib/solver.hpp>
#include <troupe/sequence.hpp>

#include "catalogue/random.hpp"
#include "runner.hpp"

// Rounds in which a piece of a program is recorded and runs again and again, in steps of
// World::run, with faults in between: with operands that move from step to step, branches and
// libraries that prepare plans.

namespace troupe::torture {
namespace {

/// Some of a piece's calls come only if a flag is set, or again and again.
struct Branching {
  static constexpr std::int64_t kFlags = 5;
  std::size_t first = 0, count = 0;  ///< the calls
  bool conditional = false, repeated = false;
  std::vector<std::int32_t> flags = std::vector<std::int32_t>(kFlags);  ///< of the steps, in turn
  std::int64_t turns = 0;

  [[nodiscard]] bool any() const { return conditional || repeated; }
  [[nodiscard]] bool has(std::size_t call) const {
    return any() && call >= first && call < first + count;
  }
  /// How often the calls come in a step.
  [[nodiscard]] std::int64_t times(std::int64_t step) const {
    const bool set = !conditional || flags[static_cast<std::size_t>(step % kFlags)] != 0;
    return set ? (repeated ? turns : 1) : 0;
  }
};

/// Arithmetic modulo 2^32 on a few short buffers, which is exact however often it is repeated: on
/// the device by calls, and on the host for all ranks.
class Piece {
 public:
  enum class Act { fill, copy, scan, sort, all_reduce, exchange };
  struct Call {
    Act act{};
    std::size_t from = 0, to = 0;  ///< buffers; they differ
    std::int64_t first = 0, count = 0;
    std::uint32_t value = 0;
    std::int64_t moves = 0;  ///< elements from step to step

    /// Where its elements begin in a step, in buffers of this length.
    [[nodiscard]] std::int64_t at(std::int64_t step, std::int64_t length) const {
      return moves == 0 ? first : (first + step * moves) % (length - count + 1);
    }
  };
  static constexpr std::size_t kBuffers = 4;
  using Values = std::vector<std::uint32_t>;
  using Share = std::array<Values, kBuffers>;  ///< of one rank

  Piece(std::uint64_t seed, int ranks, bool collectives) : ranks_(static_cast<std::size_t>(ranks)) {
    Random random(seed);
    length_ = random.between(1, 300);
    for (auto calls = random.between(1, 14); calls > 0; --calls) {
      Call call;
      call.act = static_cast<Act>(random.below(collectives ? 6 : 4));
      call.from = static_cast<std::size_t>(random.below(kBuffers));
      call.to = (call.from + static_cast<std::size_t>(random.between(1, kBuffers - 1))) % kBuffers;
      call.first = random.below(length_);
      call.count = random.between(1, length_ - call.first);
      call.value = static_cast<std::uint32_t>(random.next());
      if (random.one_in(3)) call.moves = random.between(1, 50);
      calls_.push_back(call);
    }
    if (!collectives) branch(random);
    shares_.resize(ranks_);
    for (auto& share : shares_) {
      for (auto& values : share) {
        values.resize(static_cast<std::size_t>(length_));
        for (auto& value : values) value = static_cast<std::uint32_t>(random.next());
      }
    }
  }
  [[nodiscard]] std::int64_t length() const { return length_; }
  [[nodiscard]] const std::vector<Call>& calls() const { return calls_; }
  [[nodiscard]] const Share& share(int rank) const {
    return shares_[static_cast<std::size_t>(rank)];
  }

  [[nodiscard]] const Branching& branching() const { return branching_; }
  /// Calls visit(call) for all calls of a step, in their order.
  template <class Visit>
  void for_each(std::int64_t step, Visit&& visit) const {
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      if (!branching_.has(i)) {
        visit(calls_[i]);
        continue;
      }
      for (auto left = branching_.times(step); left > 0; --left) {
        for (std::size_t k = i; k < i + branching_.count; ++k) visit(calls_[k]);
      }
      i += branching_.count - 1;
    }
  }

  /// All calls of a step, on the host.
  void compute(std::int64_t step) {
    for_each(step, [&](const Call& call) {
      const auto before = shares_;
      for (std::size_t rank = 0; rank < ranks_; ++rank) compute(call, before, rank, step);
    });
  }

 private:
  void branch(Random& random) {
    branching_.conditional = random.one_in(2);
    branching_.repeated = random.one_in(2);
    const auto calls = static_cast<std::int64_t>(calls_.size());
    branching_.first = static_cast<std::size_t>(random.below(calls));
    branching_.count = static_cast<std::size_t>(
        random.between(1, calls - static_cast<std::int64_t>(branching_.first)));
    branching_.turns = random.below(Branching::kFlags - 1);
    for (auto& flag : branching_.flags) flag = random.one_in(2) ? 1 : 0;
  }
  void compute(const Call& call, const std::vector<Share>& before, std::size_t rank,
               std::int64_t step) {
    const auto first = static_cast<std::ptrdiff_t>(call.at(step, length_));
    const auto& source = before[rank][call.from];
    auto& target = shares_[rank][call.to];
    const auto begin = source.begin() + first, end = begin + call.count;
    const auto out = target.begin() + first;
    switch (call.act) {
      case Act::fill: std::fill_n(out, call.count, call.value); return;
      case Act::copy: std::copy(begin, end, out); return;
      case Act::scan: std::partial_sum(begin, end, out); return;
      case Act::sort:
        std::copy(begin, end, out);
        std::sort(out, out + call.count);
        return;
      case Act::all_reduce:
        std::fill_n(out, call.count, 0u);
        for (const auto& other : before) {
          for (std::int64_t i = 0; i < call.count; ++i)
            out[i] += other[call.from][static_cast<std::size_t>(first + i)];
        }
        return;
      case Act::exchange: {
        const auto& other = before[(rank + ranks_ - 1) % ranks_][call.from];
        std::copy_n(other.begin() + first, call.count, out);
      }
    }
  }

  std::size_t ranks_;
  std::int64_t length_ = 0;
  std::vector<Call> calls_;
  Branching branching_;
  std::vector<Share> shares_;
};

/// `kept`: made outside of any recording.
void submit(const Piece::Call& call, const GpuRef<std::uint32_t>& from,
            const GpuRef<std::uint32_t>& to, const Primitives& kept, Device& device, World& world) {
  switch (call.act) {
    case Piece::Act::fill: device.fill(to, call.value); return;
    case Piece::Act::copy: device.copy(from, to); return;
    case Piece::Act::scan: kept.scan(from, to); return;
    case Piece::Act::sort: primitives::on(device).sort(from, to); return;
    case Piece::Act::all_reduce: world.all_reduce(from, to, ReduceOp::sum); return;
    case Piece::Act::exchange: {
      const Transfer<std::uint32_t> sent{from, Rank((world.rank() + 1) % world.size())},
          received{to, Rank((world.rank() + world.size() - 1) % world.size())};
      world.exchange<std::uint32_t>({&sent, 1}, {&received, 1});
    }
  }
}

/// What a piece works on, on this rank's device, and how its calls are made there.
class Workbench {
 public:
  using Ref = GpuRef<std::uint32_t>;

  Workbench(const Piece& piece, Device& device, World& world)
      : piece_(&piece), device_(&device), world_(&world) {
    for (std::size_t i = 0; i < buffers_.size(); ++i)
      buffers_[i] = put(piece.share(world.rank())[i]);
    const auto& branching = piece.branching();
    std::vector<std::int32_t> turns(Branching::kFlags);
    std::fill_n(turns.begin(), branching.turns, 1);
    flags_ = put(branching.flags), all_turns_ = put(turns), turns_ = put(turns);
    moved_ = device.alloc<std::int32_t>(Branching::kFlags);
    // A matrix whose factor is exact, and a mean of one vector, which is that.
    std::vector<double> squares(kOrder * kOrder, 0.0);
    for (std::size_t i = 0; i < kOrder; ++i)
      squares[i * (kOrder + 1)] = static_cast<double>((i + 2) * (i + 2));
    squares_ = put(squares), factor_ = put(squares);
    vector_ = device.alloc<Half>(8), mean_ = device.alloc<Half>(8);
    device.fill(vector_, Half{0x3c00}), device.fill(mean_, Half{});
    attends_ = attend().wait().ok();
    if (!attends_) (void)device.take_error();
    // A graph of layers: twice that vector, and what is below 0 of it is 0.
    ones_ = layers_.input(DType::f16, {1, 1, 8});
    twos_ = dnn::pointwise(layers_, dnn::Mode::relu,
                           dnn::pointwise(layers_, dnn::Mode::add, ones_, ones_));
    layers_.output(twos_, DType::f16);
    doubled_ = device.alloc<Half>(8);
    device.fill(doubled_, Half{});
    for (const auto& call : piece.calls()) {
      from_.emplace_back(buffers_[call.from], call.count, call.first);
      to_.emplace_back(buffers_[call.to], call.count, call.first);
    }
  }
  void add_to(Checkpoint& state) {
    for (std::size_t i = 0; i < buffers_.size(); ++i)
      state.add(fmt::format("buffer {}", i), buffers_[i]);
    state.add("flags", flags_), state.add("all turns", all_turns_), state.add("turns", turns_);
    state.add("squares", squares_), state.add("factor", factor_);
    state.add("vector", vector_), state.add("mean", mean_), state.add("doubled", doubled_);
    state.add_scratch(moved_);
  }

  /// Recorded, with what moves as it is at step 0; see values().
  void record() const {
    calls([this](std::size_t i) {
      submit(piece_->calls()[i], from_[i], to_[i], kept_, *device_, *world_);
    });
  }
  /// Within the recording of one step.
  void record(std::int64_t step) const {
    calls([&](std::size_t i) { submit_at(piece_->calls()[i], step); });
  }
  void call(std::int64_t step) const {
    piece_->for_each(step, [&](const Piece::Call& call) { submit_at(call, step); });
    others();
  }
  /// Where everything is in a step.
  [[nodiscard]] std::vector<ParameterValue> values(std::int64_t step) const {
    std::vector<ParameterValue> all;
    for (std::size_t i = 0; i < from_.size(); ++i) {
      const auto at = piece_->calls()[i].at(step, piece_->length());
      if (piece_->calls()[i].act != Piece::Act::fill) all.push_back(from_[i](at));
      all.push_back(to_[i](at));
    }
    return all;
  }

  /// Names what is not as it has to be after at least one step; empty: all is well.
  [[nodiscard]] std::string damage() const {
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      const auto found = device_->download(buffers_[i]);
      const auto& expected = piece_->share(world_->rank())[i];
      const auto [at, wanted] = std::mismatch(found.begin(), found.end(), expected.begin());
      if (at != found.end())
        return fmt::format("element {} of buffer {}, {} instead of {},", at - found.begin(), i, *at,
                           *wanted);
    }
    const auto factor = device_->download(factor_);
    for (std::size_t i = 0; i < kOrder; ++i) {
      if (factor[i * (kOrder + 1)] != static_cast<double>(i + 2)) return "the factor of a matrix";
    }
    for (const auto one : device_->download(mean_)) {
      if (attends_ && one.bits != 0x3c00) return "the mean of a vector";
    }
    for (const auto two : device_->download(doubled_)) {
      if (attends_ && two.bits != 0x4000) return "what layers make of a vector";
    }
    return "";
  }

 private:
  static constexpr std::size_t kOrder = 5;

  template <class T>
  GpuRef<T> put(const std::vector<T>& values) {
    const auto buffer = device_->alloc<T>(static_cast<std::int64_t>(values.size()));
    device_->upload<T>(values, buffer).get();
    return buffer;
  }
  Future<void> attend() const {
    return dnn::on(*device_).attention(vector_, vector_, vector_, mean_,
                                       {.sequence_q = 1, .dim_qk = 8});
  }
  void submit_at(const Piece::Call& call, std::int64_t step) const {
    const auto at = call.at(step, piece_->length());
    submit(call, buffers_[call.from].slice(at, call.count), buffers_[call.to].slice(at, call.count),
           kept_, *device_, *world_);
  }
  /// The calls of libraries that are the same in all steps.
  void others() const {
    device_->copy(squares_, factor_);
    device_->solver().potrf(blas::Uplo::lower, MatrixRef(factor_, kOrder, kOrder));
    if (attends_) {
      attend();
      dnn::on(*device_).run(layers_, {{ones_, vector_}, {twos_, doubled_}});
    }
    move_on(flags_);
  }
  /// The first goes to the end.
  void move_on(const GpuRef<std::int32_t>& flags) const {
    constexpr auto kBehind = Branching::kFlags - 1;
    device_->copy(flags.slice(1, kBehind), moved_.slice(0, kBehind));
    device_->copy(flags.slice(0, 1), moved_.slice(kBehind, 1));
    device_->copy(moved_, flags);
  }
  /// As a recording has them: `one` submits the i-th.
  void calls(const std::function<void(std::size_t)>& one) const {
    const auto& branching = piece_->branching();
    const auto all = [&] {
      for (std::size_t k = 0; k < branching.count; ++k) one(branching.first + k);
    };
    const auto if_set = [&] {
      if (!branching.conditional) return all();
      if_(*device_, flags_, all);
    };
    for (std::size_t i = 0; i < piece_->calls().size(); ++i) {
      if (!branching.has(i)) {
        one(i);
      } else if (i == branching.first && branching.repeated) {
        device_->copy(all_turns_, turns_);
        while_(*device_, turns_, [&] {
          if_set();
          move_on(turns_);
        });
      } else if (i == branching.first) {
        if_set();
      }
    }
    others();
  }

  const Piece* piece_;
  Device* device_;
  World* world_;
  Primitives kept_ = primitives::on(*device_);
  std::array<Ref, Piece::kBuffers> buffers_;
  GpuRef<std::int32_t> flags_, all_turns_, turns_, moved_;
  GpuRef<double> squares_, factor_;
  GpuRef<Half> vector_, mean_, doubled_;
  dnn::Graph layers_;
  dnn::TensorId ones_, twos_;
  bool attends_ = false;
  std::vector<MovingRef<std::uint32_t>> from_, to_;  ///< of the calls
};

}  // namespace

/// The piece runs once in each step: by its calls, as a sequence that was recorded before the run,
/// or recorded by the run itself. At the end all is as if it had been computed on the host.
void Runner::play_recorded(const Round& round) {
  Random random(derive(program_->seed, round_));
  Piece piece(random.next(), ranks_, conduct_.collectives && random.one_in(2));
  const std::int64_t steps = round.special, every = random.between(1, 8);
  const bool by_run = random.one_in(3), mixed = random.one_in(2);
  const auto struck_at = program_->stormy ? random.below(steps) : -1;
  const bool struck_here = random.below(ranks_) == rank_;
  Workbench bench(piece, device_, world_);
  Checkpoint state(device_);
  bench.add_to(state);
  const auto sequence = device_.record([&] { bench.record(); });
  bool strikes = struck_here;
  world_.barrier();
  try {
    world_.run(state,
               [&](std::int64_t step) {
                 account_.advance();
                 account_.count_operations(static_cast<std::int64_t>(piece.calls().size()));
                 if (by_run) {
                   bench.record(step);
                 } else if (mixed && step % 3 == 1) {
                   bench.call(step);
                 } else {
                   sequence.run(bench.values(step));
                 }
                 // From a thread that records nothing.
                 if (step == struck_at && std::exchange(strikes, false))
                   std::jthread([&] { (void)device_.inject(memory::FaultKind::kill); }).join();
                 return step + 1 == steps ? Step::done : Step::again;
               },
               {.commit_every = every, .save = SaveOptions{}, .record = by_run});
  } catch (const Exception& e) {
    if (e.code() == Errc::budget_exhausted || e.code() == Errc::device_failed) throw;
    throw Finding(std::string("run() of recorded steps fails: ") + e.what());
  }
  for (std::int64_t step = 0; step < steps; ++step) piece.compute(step);
  if (stormy_) settle();
  if (const auto damage = bench.damage(); !damage.empty())
    throw Finding(fmt::format("WRONG CONTENTS: {} after {} runs of a sequence of {}", damage, steps,
                              piece.calls().size()));
  world_.barrier();
}

}  // namespace troupe::torture
