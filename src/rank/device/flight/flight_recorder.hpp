#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <troupe/gpu_health.hpp>
#include <troupe/lib/submit.hpp>

#include "common/core/ticks.hpp"
#include "common/ipc/doorbell.hpp"
#include "common/ipc/shared_memory.hpp"
#include "common/wire/flight_layout.hpp"
#include "rank/device/flight/arrivals.hpp"
#include "rank/device/health/health_log.hpp"

namespace troupe::rank_process {

/// The last operations of a rank: what they are, when they were submitted, issued and completed,
/// how they ended. Written as they pass, without a lock; dumped as a file when something went
/// wrong, for troupe-flight to read with those of the other ranks.
///
/// What the device host knows it writes into a segment of shared memory that this object owns, so
/// it is there when the device host is not. One slot per operation, by ticket modulo the number of
/// records: a reader tells by the ticket whether a slot is what it looks for.
class FlightRecorder {
 public:
  struct Options {
    std::uint64_t records = 1024;    ///< in a dump, rounded up to a power of two
    std::uint64_t slots = 0;         ///< held at least, for who collects them; both 0: nothing is
    std::uint64_t activities = 0;    ///< of the GPU, held until they are collected; 0: not wanted
    std::string directory = "none";  ///< of the dumps; "none": there are none
    std::string job;                 ///< in the dumps' names; empty: this process's id
    int rank = 0, size = 1;
    std::int64_t clock_offset_ns = 0;  ///< added to this node's clock it gives rank 0's
  };

  static Result<std::unique_ptr<FlightRecorder>> create(Options options);
  /// The device hosts' part alone, for one that comes up before the recorder is made. Its size
  /// comes from the options' numbers of records, slots and activities.
  static Result<ipc::SharedMemory> make_segment(Options options);
  /// `segment`: of make_segment() with the same numbers.
  static Result<std::unique_ptr<FlightRecorder>> create(Options options, ipc::SharedMemory segment);
  ~FlightRecorder();
  FlightRecorder(const FlightRecorder&) = delete;
  FlightRecorder& operator=(const FlightRecorder&) = delete;

  /// The device hosts' part.
  [[nodiscard]] int segment_fd() const noexcept { return segment_.fd(); }

  /// What other processes see of this rank.
  [[nodiscard]] wire::FlightBoard& board() noexcept {
    return *reinterpret_cast<wire::FlightBoard*>(segment_.data() + wire::kFlightBoardOffset);
  }
  /// The device is there. Once.
  void show_device(std::string_view name) noexcept;
  /// The time that the rank's device hosts have spent so far. Any thread.
  [[nodiscard]] const wire::HostTimes& times() const noexcept {
    return *reinterpret_cast<const wire::HostTimes*>(segment_.data() + wire::kHostTimesOffset);
  }

  /// A command was pushed. `collective`: its number among the collectives of its communicator in
  /// its epoch, from 1; 0: it is none. `ahead`: the world's collective before has not ended. The
  /// caller serialises.
  void submitted(std::uint64_t ticket, const detail::CommandView& command, std::uint32_t collective,
                 bool ahead = false) noexcept;
  /// It ended with an error. Any thread.
  void failed(std::uint64_t ticket, Errc code) noexcept;
  /// It goes on on another device host. Any thread.
  void repeated(std::uint64_t ticket) noexcept;

  /// The direction of an operation's messages.
  enum class Way : std::uint32_t { none, sends, receives, both };

  /// One record, as a dump holds it; times are 0 where it has not happened.
  struct Record {
    std::uint64_t ticket = 0;
    std::uint32_t opcode = 0, epoch = 0;
    std::uint32_t group = 0;  ///< the number of its group; 0: the world, or no collective
    std::uint64_t bytes = 0, count = 0;
    std::int32_t peer = -1;
    Way way = Way::none;
    std::uint32_t collective = 0;
    std::uint32_t queue = 0;  ///< of the device host, from 1; 0: none
    TimePoint submitted{}, issued{}, completed{};
    Errc outcome = Errc::ok;
    bool repeated = false;
  };
  /// The newest that a dump has, in the order of submission. Any thread.
  [[nodiscard]] std::vector<Record> records() const;
  /// The times of now, for record().
  [[nodiscard]] TickScale::Reading reading() const noexcept { return scale_.read(); }
  /// That of the command with this ticket, unless a newer one has taken its slot. Any thread.
  [[nodiscard]] std::optional<Record> record(std::uint64_t ticket,
                                             const TickScale::Reading& reading) const;
  /// Commands that were submitted so far. Any thread.
  [[nodiscard]] std::uint64_t recorded() const noexcept {
    return recorded_.load(std::memory_order_acquire);
  }

  /// When this rank came to the world's collectives, as far as that is kept. Once nothing is
  /// submitted any more.
  [[nodiscard]] const Arrivals& arrivals() const noexcept { return arrivals_; }

  /// What a GPU did.
  struct Activity {
    std::uint64_t ticket = 0;
    TimePoint begin{}, end{};
    std::uint32_t stream = 0;
    std::string name;
  };
  /// Takes the activities that have come since. One thread.
  [[nodiscard]] std::vector<Activity> take_activities();
  /// Activities that nobody has, because there was no room for them.
  [[nodiscard]] std::uint64_t lost_activities() const noexcept;

  /// The command with this ticket in words, with its communicator and its place among the
  /// collectives of that; empty: it is not recorded. Any thread.
  [[nodiscard]] std::string describe(std::uint64_t ticket) const;

  /// What a GPU has said of its health.
  struct Health {
    TimePoint time{};
    HealthEvent event;
  };
  /// So many are kept, the first ones; see HealthLog::kMost.
  static constexpr std::size_t kMostHealth = HealthLog::kMost;
  /// The GPU has said something that it has not said before. Any thread.
  void health_said(const HealthEvent& event);
  /// What it has said so far, but the first `known` of that. Any thread.
  [[nodiscard]] std::vector<Health> health(std::size_t known = 0) const;

  /// Says where the rank's program is, for the dumps. Any thread; nullptr: nobody knows.
  void set_whereabouts(std::function<std::string()> where) {
    const std::lock_guard lock(mutex_);
    whereabouts_ = std::move(where);
  }
  /// Writes a dump of what is recorded now; returns before it is written. Of dumps that are asked
  /// for while one is being written the last is kept. Any thread.
  void dump(std::string reason);

 private:
  static constexpr std::size_t kWords = 9;
  struct Slot {
    std::atomic<std::uint64_t> word[kWords];
  };
  struct Dump {
    std::string reason;
    TimePoint time{};
    std::uint64_t world = 0;
    std::vector<Record> records;
    std::vector<Health> health;
    std::string whereabouts;
  };

  FlightRecorder(Options options, ipc::SharedMemory segment, ipc::Doorbell bell);
  /// Numbers that it can work with.
  static Options rounded(Options options);
  [[nodiscard]] Slot& slot_of(std::uint64_t ticket) const noexcept {
    return slots_[ticket & (options_.slots - 1)];
  }
  [[nodiscard]] std::optional<Record> read(std::uint64_t slot,
                                           const TickScale::Reading& reading) const;
  [[nodiscard]] Dump take(std::string reason);
  void serve();
  void write(const Dump& dump) const;

  Options options_;
  ipc::SharedMemory segment_;
  std::unique_ptr<Slot[]> slots_;
  TickScale scale_;
  std::atomic<std::uint64_t> recorded_{0};
  Arrivals arrivals_;
  std::uint64_t unfilled_ = 0;  ///< activities that a dead device host never wrote
  unsigned looks_ = 0;          ///< at a slot of an activity that is not filled yet
  /// Epoch (upper half) and number of the newest of the world's collectives here: it may have left
  /// the records long ago, while a rank does work of its own.
  std::atomic<std::uint64_t> world_{0};
  ipc::Doorbell bell_;  ///< a dump is asked for, SIGUSR2 came, or it is time to end
  bool catches_signal_ = false;
  std::atomic<bool> ending_{false};
  mutable std::mutex mutex_;
  std::vector<Health> health_;
  std::function<std::string()> whereabouts_;
  std::optional<Dump> asked_;
  std::thread writer_;
};

}  // namespace troupe::rank_process
