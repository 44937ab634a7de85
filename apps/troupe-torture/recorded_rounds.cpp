#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <thread>

#include <troupe/lib/primitives.hpp>
#include <troupe/sequence.hpp>

#include "random.hpp"
#include "runner.hpp"

// Rounds in which a piece of a program is recorded and runs again and again, in steps of
// World::run, with faults in between.

namespace troupe::torture {
namespace {

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
      calls_.push_back(call);
    }
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

  /// All calls, once, on the host.
  void compute() {
    for (const auto& call : calls_) {
      const auto before = shares_;
      for (std::size_t rank = 0; rank < ranks_; ++rank) compute(call, before, rank);
    }
  }

 private:
  void compute(const Call& call, const std::vector<Share>& before, std::size_t rank) {
    const auto first = static_cast<std::ptrdiff_t>(call.first);
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
            out[i] += other[call.from][static_cast<std::size_t>(call.first + i)];
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
  std::vector<Share> shares_;
};

void submit(const Piece::Call& call,
            const std::array<GpuRef<std::uint32_t>, Piece::kBuffers>& buffers, Device& device,
            World& world) {
  const auto from = buffers[call.from].slice(call.first, call.count),
             to = buffers[call.to].slice(call.first, call.count);
  switch (call.act) {
    case Piece::Act::fill: device.fill(to, call.value); return;
    case Piece::Act::copy: device.copy(from, to); return;
    case Piece::Act::scan: primitives::on(device).scan(from, to); return;
    case Piece::Act::sort: primitives::on(device).sort(from, to); return;
    case Piece::Act::all_reduce: world.all_reduce(from, to, ReduceOp::sum); return;
    case Piece::Act::exchange: {
      const Transfer<std::uint32_t> sent{from, Rank((world.rank() + 1) % world.size())},
          received{to, Rank((world.rank() + world.size() - 1) % world.size())};
      world.exchange<std::uint32_t>({&sent, 1}, {&received, 1});
    }
  }
}

}  // namespace

/// The piece runs once in each step: by its calls, as a sequence that was recorded before the run,
/// or recorded by the run itself. At the end all is as if it had been computed on the host.
void Runner::play_recorded(const Round& round) {
  Random random(derive(program_->seed, round_));
  Piece piece(random.next(), ranks_, conduct_.collectives);
  const std::int64_t steps = round.special, every = random.between(1, 8);
  const bool by_run = random.one_in(3), mixed = random.one_in(2);
  const auto struck_at = program_->stormy ? random.below(steps) : -1;
  const bool struck_here = random.below(ranks_) == rank_;
  std::array<GpuRef<std::uint32_t>, Piece::kBuffers> buffers;
  Checkpoint state(device_);
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    buffers[i] = device_.alloc<std::uint32_t>(piece.length());
    device_.upload<std::uint32_t>(piece.share(rank_)[i], buffers[i]).get();
    state.add(fmt::format("buffer {}", i), buffers[i]);
  }
  const auto calls = [&] {
    for (const auto& call : piece.calls()) submit(call, buffers, device_, world_);
  };
  const auto sequence = device_.record(calls);
  bool strikes = struck_here;
  world_.barrier();
  try {
    world_.run(state,
               [&](std::int64_t step) {
                 account_.advance();
                 account_.count_operations(static_cast<std::int64_t>(piece.calls().size()));
                 if (by_run || (mixed && step % 3 == 1)) {
                   calls();
                 } else {
                   sequence.run();
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
  for (std::int64_t step = 0; step < steps; ++step) piece.compute();
  if (stormy_) settle();
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (device_.download(buffers[i]) != piece.share(rank_)[i])
      throw Finding(fmt::format("WRONG CONTENTS: buffer {} after {} runs of a sequence of {}", i,
                                steps, piece.calls().size()));
  }
  world_.barrier();
}

}  // namespace troupe::torture
