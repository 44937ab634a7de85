#include "measure.hpp"

#include <algorithm>
#include <thread>

#include "values.hpp"

namespace troupe::perf {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kFaultLimit = 60s;   ///< for a fault to have its effect and to be overcome
constexpr auto kSettleLimit = 60s;  ///< for the standbys to come up
constexpr int kRunsBefore = 4;      ///< of a sequence, before it is timed
constexpr auto kGraphTime = 40ms;   ///< for them, and for a graph to be made

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double averaged(std::vector<double> times, int how) {
  double sum = 0;
  for (const double time : times) sum += time;
  switch (how) {
    case 0: return times.front();
    case 2: return *std::min_element(times.begin(), times.end());
    case 3: return *std::max_element(times.begin(), times.end());
    default: return sum / static_cast<double>(times.size());
  }
}

}  // namespace

/// Does what it is told until something fails: from then on nothing, so that this rank still comes
/// to everything that all ranks do together.
class Measurement::Attempt {
 public:
  template <class Work>
  void operator()(const Work& work) {
    if (failed_) return;
    try {
      work();
    } catch (const Exception& e) {
      failed_ = true;
      const auto code = e.code();
      const bool fault = code == Errc::device_lost || code == Errc::world_reformed ||
                         code == Errc::stale || code == Errc::peer_lost;
      if (!fault) error_ = e.error();
    }
  }
  [[nodiscard]] bool failed() const noexcept { return failed_; }
  /// What failed, but for faults.
  [[nodiscard]] const Result<void>& outcome() const noexcept { return error_; }

 private:
  bool failed_ = false;
  Result<void> error_;
};

Measurement::Measurement(Runtime& runtime, const Options& options, int rank, int size)
    : runtime_(runtime),
      world_(runtime.world()),
      options_(options),
      rank_(rank),
      size_(size),
      limit_(kFaultLimit + runtime.config().duration("heartbeat-timeout")),
      faults_(runtime, options.faults) {}

void Measurement::settle() {
  if (runtime_.config().text("standby") == "off") return;
  world_.wait_for_standbys(kSettleLimit);
}

void Measurement::warm_up(Side& side, const Call& call, std::int64_t largest) {
  side.prepare(call);
  Attempt attempt;
  for (auto bytes = options_.smallest; bytes <= options_.largest; bytes *= 2) {
    auto one = call;
    one.count = count_of(call.operation, bytes, call.dtype, size_);
    const auto each = std::max<std::int64_t>(1, extents(one, rank_, size_).largest());
    attempt([&] {
      for (std::int64_t i = 0; i < options_.warm_up; ++i)
        side.start(one, i % std::max<std::int64_t>(1, largest / each) * each);
      side.wait();
    });
  }
  world_.agree(attempt.outcome());
}

Measured Measurement::measure(Side& side, const Call& call, std::int64_t largest, bool faults,
                              Row& row) {
  struct Part {
    double seconds;
    std::int64_t wrong;
    bool spoilt;
  };
  for (;;) {
    const auto epoch = world_.epoch();
    const auto known = world_.recoveries().size();
    Attempt attempt;
    struck_ = false;
    const auto times = once(side, call, largest, faults, attempt);
    world_.agree(attempt.outcome());
    const Part mine{times.seconds, times.wrong, attempt.failed() || struck_};
    const auto parts = world_.gather_values(mine);
    if (std::any_of(parts.begin(), parts.end(), [](const Part& part) { return part.spoilt; })) {
      recover(epoch);
      const auto recoveries = world_.recoveries();
      row.recoveries.insert(row.recoveries.end(),
                            recoveries.begin() + static_cast<std::ptrdiff_t>(known),
                            recoveries.end());
      ++row.repeated;
      continue;
    }
    if (faults) iteration_ += options_.iterations * std::max<std::int64_t>(1, options_.replays);
    std::vector<double> seconds;
    std::int64_t wrong = 0;
    for (const auto& part : parts) seconds.push_back(part.seconds), wrong += part.wrong;
    const double time = averaged(seconds, options_.average);
    return {true, time * 1e6, bandwidth(call, size_, time), options_.checks == 0 ? -1 : wrong};
  }
}

Measurement::Times Measurement::once(Side& side, const Call& call, std::int64_t largest,
                                     bool faults, Attempt& attempt) {
  side.prepare(call);
  attempt([&] {
    side.start(call, 0);
    side.wait();
  });
  Times times;
  times.seconds = timed(side, call, largest, faults, attempt);
  for (std::int64_t i = 0; i < options_.checks && times.wrong == 0; ++i) {
    times.wrong = checked(side, call, attempt);
    // All ranks check equally often.
    const auto all = world_.gather_values(times.wrong);
    if (std::any_of(all.begin(), all.end(), [](std::int64_t wrong) { return wrong != 0; })) break;
  }
  return times;
}

double Measurement::timed(Side& side, const Call& call, std::int64_t largest, bool faults,
                          Attempt& attempt) {
  const auto each = std::max<std::int64_t>(1, extents(call, 0, size_).largest());
  const auto places = std::max<std::int64_t>(1, largest / each);
  const auto count = options_.iterations, replays = options_.replays;
  // From call to call elsewhere in the buffers, so that what is measured are no caches.
  const auto start = [&](std::int64_t i) { side.start(call, i % places * each); };
  const bool records = replays > 0 && call.count != 0;
  if (records) {
    attempt([&] {
      side.record([&] {
        for (std::int64_t i = 0; i < count; ++i) start(i);
      });
      // The first run is a list, and makes ready what a graph is then made from, beside the others.
      for (int run = 0; run < kRunsBefore; ++run) {
        side.replay();
        side.wait();
        std::this_thread::sleep_for(kGraphTime / kRunsBefore);
      }
    });
  }
  world_.barrier();
  double untimed = 0;
  const auto began = Clock::now();
  for (std::int64_t i = 0; i < (records ? replays : count); ++i) {
    attempt([&] {
      if (faults)
        struck_ |= faults_.strike(iteration_ + (records ? i * count : i), records ? count : 1);
      records ? side.replay() : start(i);
      if (options_.blocking != 0) side.wait();
    });
    const auto before = Clock::now();
    if (options_.blocking == 1 || options_.blocking == 3) world_.barrier();
    if (options_.blocking == 3) untimed += seconds_since(before);
  }
  attempt([&] { side.wait(); });
  const double seconds = seconds_since(began) - untimed;
  return seconds / static_cast<double>(count * (records ? replays : 1));
}

std::int64_t Measurement::checked(Side& side, const Call& call, Attempt& attempt) {
  const Case one{call, size_, ++repetition_};
  std::int64_t wrong = 0;
  attempt([&] {
    const auto elements = extents(call, rank_, size_).source;
    for (std::int64_t first = 0; first < elements; first += kPiece)
      side.write(call, first, source_of(one, rank_, first, std::min(kPiece, elements - first)));
  });
  world_.barrier();  // tokens: the neighbour's source is there
  attempt([&] {
    if (options_.replays > 0 && call.count != 0) {
      side.record([&] { side.start(call, 0); });
      side.replay();
    } else {
      side.start(call, 0);
    }
    side.wait();
  });
  world_.barrier();
  attempt([&] {
    wrong = count_wrong(one, rank_, [&](std::int64_t first, std::int64_t elements) {
      return side.read(call, first, elements);
    });
  });
  return wrong;
}

/// The first to notice is the device; the world may still seem active for a moment.
void Measurement::recover(Epoch before) {
  const auto deadline = Clock::now() + limit_;
  for (;;) {
    const auto epoch = world_.wait_active();
    if (!epoch) throw CollectiveException(epoch.error());
    if (*epoch != before) break;
    if (Clock::now() > deadline)
      throw Exception(Error{Errc::timeout, 0, "a fault was not noticed and overcome"});
    std::this_thread::sleep_for(20us);
  }
  world_.barrier();
  settle();
}

}  // namespace troupe::perf
