#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <troupe/ids.hpp>
#include <troupe/lib/submit.hpp>

#include "common/core/continuations.hpp"
#include "common/wire/record.hpp"
#include "rank/device/buffer_table.hpp"
#include "rank/device/error_ledger.hpp"
#include "rank/device/flight_recorder.hpp"
#include "rank/device/host/host_link.hpp"
#include "rank/device/outcome_log.hpp"
#include "rank/device/replay.hpp"
#include "rank/device/ticket_table.hpp"

namespace troupe::rank_process {

/// Where a rank's program becomes commands: validates, numbers, pushes into the ring of the current
/// device host, and resolves futures as replies come back.
///
/// Any thread may submit; the order of the calls is the order of the program. Any thread may drain
/// replies: those that wait for a future do, and the watcher when nobody waits.
///
/// Locks: submit_mutex_ serialises submissions and owns the buffer table and the producing end of
/// the ring; reply_mutex_ owns the consuming end and the resolution of tickets. Taken in that order
/// where both are.
class CommandPort final : public detail::Submitter, public detail::Progress {
 public:
  struct Options {
    std::chrono::nanoseconds spin{0};  ///< how long waiters spin before they sleep
    bool replay = false;               ///< what was in flight may run again: see move_to()
    FlightRecorder* flight = nullptr;  ///< records what passes; outlives the port
  };
  explicit CommandPort(const Options& options) : options_(options) {}

  // Submitter
  Future<void> submit(const detail::CommandView& command) override;
  Future<void> refuse(Error error) override;
  Result<detail::ResultCell> result_cell(std::size_t bytes) override {
    return make_cell_ ? make_cell_(bytes) : detail::Submitter::result_cell(bytes);
  }
  /// Where result cells come from. Before the first submission.
  void set_cells(std::function<Result<detail::ResultCell>(std::size_t bytes)> make) {
    make_cell_ = std::move(make);
  }
  /// As submit, but answers would_block instead of waiting while the ring or the ticket table is
  /// full.
  Future<void> try_submit(const detail::CommandView& command);

  // Progress
  void poll() noexcept override;
  void before_sleep() noexcept override;
  [[nodiscard]] std::chrono::nanoseconds spin_time() const noexcept override {
    return options_.spin;
  }

  /// Takes the replies there are; for the watcher, which is no waiter.
  void drain();
  /// As poll(), for a thread that calls it again and again, and before_sleep() when it leaves off:
  /// until then no reply rings a bell, and the device host does not sleep over what it waits for.
  void attend() noexcept;

  // Buffers: used by Device. Any thread.

  Result<std::uint32_t> add_buffer(std::uint32_t region, std::uint64_t offset, std::uint64_t bytes,
                                   DType dtype = DType::u8);
  /// What messages call the buffer, beside its number.
  void name_buffer(std::uint32_t buffer, std::string_view name);
  /// Frees the buffer once nothing submitted names it any more: then `freed` of collect_freed()
  /// returns it.
  void drop_buffer(std::uint32_t buffer);
  /// Ranges of dropped buffers that are free now: (region, offset) pairs. Their entries are gone.
  std::vector<std::pair<std::uint32_t, std::uint64_t>> collect_freed();
  [[nodiscard]] std::uint32_t generation(std::uint32_t buffer) const {
    return buffers_.at(buffer).generation.load(std::memory_order_acquire);
  }
  /// Whether a reference of this generation to the buffer is valid.
  [[nodiscard]] bool valid(std::uint32_t buffer, std::uint32_t generation) const noexcept {
    return buffers_.valid(buffer, generation);
  }
  /// See detail::BufferLease::restore().
  bool restore_buffer(const Operand& where);

  // For the rehearsal of a run: which buffers its steps write.

  struct Written {
    std::uint32_t index;
    std::string description;  ///< for messages
  };
  /// Nothing counts as written.
  void forget_writes();
  /// From now on what commands write of the buffers that there are now counts. Those made later do
  /// not, until the next call.
  void know_buffers();
  /// The buffers of which something counts as written, as far as they are still in use.
  [[nodiscard]] std::vector<Written> writes() const;

  // Transfers between ranks: used by Loans and the token router. Any thread.

  /// For commands that carry out a transfer: they pass ranges that are expected, and whatever
  /// becomes of them is nobody else's business (see CommandView::quiet).
  class Deliveries final : public detail::Submitter {
   public:
    Deliveries(CommandPort& port, std::uint32_t within) : port_(&port), within_(within) {}
    Future<void> submit(const detail::CommandView& command) override;
    Future<void> refuse(Error error) override { return Future<void>(std::move(error)); }

   private:
    CommandPort* port_;
    std::uint32_t within_;
  };
  [[nodiscard]] detail::Submitter& deliveries() noexcept { return deliveries_; }
  /// Deliveries for a transfer that writes here: they fail with world_reformed once that epoch has
  /// ended, so that none comes behind the rollback.
  [[nodiscard]] Deliveries deliveries(std::uint32_t epoch) noexcept { return {*this, epoch}; }
  /// What a token's operand names here, see BufferTable::translate().
  Result<Operand> translate(const Operand& named) const;
  /// Keeps the range's buffer from being freed until release(); stale if it is gone.
  Result<void> hold(const Operand& range);
  void release(std::uint32_t buffer);
  /// The range is about to be written by a transfer: until end_write(), submissions that name bytes
  /// of it wait. Holds the buffer. Errors: stale; would_block if a transfer into the range is under
  /// way, or it is lent (the rescue has begun to deal with that: come again).
  Result<void> begin_write(const Operand& range);
  void end_write(const Operand& range);
  /// The range is about to be read by a transfer: until end_read(), the rescue is called ahead of
  /// any command that writes bytes of it. Holds the buffer. Says whether the contents are there, or
  /// a command that is submitted now has to wait for others. Errors: as of begin_write().
  enum class Contents { there, to_come };
  Result<Contents> begin_read(const Operand& range);
  void end_read(const Operand& range);
  /// Called with a range that is lent and about to be written, by the thread that writes it; has to
  /// save the contents elsewhere and take the range back.
  void set_rescue(std::function<void(const Operand& written)> rescue) {
    rescue_ = std::move(rescue);
  }
  /// A request of this rank's program to another rank, from when it is made: as a command, it holds
  /// up the fences behind it, and take_error() tells of its failure.
  class Request {
   public:
    explicit Request(CommandPort& port)
        : port_(&port), entry_(port.outcomes_.begin_request(port.submitted())) {}
    ~Request() {
      (void)end({});
      told();
    }
    Request(const Request&) = delete;
    Request& operator=(const Request&) = delete;
    /// The first call counts. Returns what the request's future shall hold.
    [[nodiscard]] Result<void> end(const Result<void>& outcome);
    /// After end(): the future has it.
    void told() {
      if (!std::exchange(told_, true)) port_->resolving_.fetch_sub(1, std::memory_order_acq_rel);
    }

   private:
    CommandPort* port_;
    OutcomeLog::Request entry_;
    bool ended_ = false, told_ = false;
  };
  /// A request that failed before it was made. Returns what its future shall hold.
  [[nodiscard]] Error report(const Error& error);
  /// An error of the program's own that no command has had, see detail::enter_error().
  [[nodiscard]] Error enter(Error error, detail::Heard heard);
  /// A transfer of this epoch into the range, which it still expects, has failed midway: the
  /// contents of the buffer are gone, unless they are others than this range's by now, or have been
  /// restored since.
  void lose(const Operand& range, const Error& error, std::uint32_t epoch);
  /// The newest epoch in which a fault elsewhere has ended a transfer in its middle, so that
  /// contents are stale here before this rank knows of the fault; 0: none.
  [[nodiscard]] std::uint32_t spoilt_in() const noexcept {
    return spoilt_in_.load(std::memory_order_acquire);
  }

  // Incarnations: used by DeviceActor.

  /// What happened to the commands of a host that stopped.
  struct Settled {
    std::uint32_t completed = 0;    ///< answered before the end
    std::uint32_t failed = 0;       ///< were in flight, or depended on what was
    std::uint32_t resubmitted = 0;  ///< go on as if nothing had happened
    std::uint32_t repeated = 0;     ///< of these, may have run before
    std::vector<std::uint32_t> lost_buffers;
    ByteRanges lost_pinned;  ///< as lost_buffers, for what reads it later in the program
  };

  /// The first device host's rings.
  void attach(std::shared_ptr<HostLink> link);
  /// A device host has come up: its process is known from now on.
  void ready(const HostLink& link);
  /// The current host is dead, or lost and silent: its in-flight commands fail with `error`,
  /// buffers they were writing go stale, and whatever it had not taken moves to `next`, where
  /// submissions go from now on.
  ///
  /// With `replay`, unless the gate is closed (then the state is rolled back anyway), in-flight
  /// commands that ReplayPlan allows move to `next` too. There each runs alone, so that the next
  /// death names the one that caused it: a command that was in flight at two deaths fails, and its
  /// neighbours go on. A culprit costs two device hosts.
  Settled move_to(std::shared_ptr<HostLink> next, const Error& error);
  /// The current host has drained and issues nothing: its in-flight commands fail with `error`, and
  /// what it has not taken is kept where it still makes sense.
  Settled settle_in_place(const Error& error);
  /// No host will ever serve this port again: whatever is unanswered, and all that comes, fails
  /// with `error`, also what would pass a closed gate.
  void end(const Error& error);

  /// After end(): a host serves again. No command is pending; what had been lost stays lost.
  void begin_again(std::shared_ptr<HostLink> link);

  /// Collectives of other epochs, and what was asked for in them from elsewhere, fail with
  /// world_reformed; 0: all do.
  void set_epoch(Epoch epoch);
  /// Closes the port to the program: submissions fail with this error until it is opened. The
  /// thread for which `Passage` is in force still passes.
  void close_gate(const Error& error);
  void open_gate();
  /// No submission of the program passes: the gate is closed, or no host will ever serve.
  [[nodiscard]] bool closed() const;

  // Timelines: used by RunLoop. See docs/recovery.md.

  /// A run's steps are for this timeline from now on, and the buffers are those of its checkpoint;
  /// the timeline before stands as said. nullptr: no run is under way.
  void turn_timeline(detail::TimelineState* next, detail::TimelineState::Standing before,
                     std::span<const std::uint32_t> buffers);
  /// For what is asked of other ranks, once the epoch that it belongs to is known. Errors:
  /// world_reformed (what the calling thread works for is undone), invalid (it works for no step of
  /// the run, and the range is of its checkpoint).
  [[nodiscard]] Result<void> check_timeline(std::string_view call, std::string_view name,
                                            const Operand& range) const;
  /// The same without memory of this rank.
  [[nodiscard]] static Result<void> check_timeline();
  /// Some futures of what has ended, and counts in no fence any more, are about to be resolved.
  [[nodiscard]] bool resolving() const noexcept {
    return resolving_.load(std::memory_order_acquire) != 0;
  }

  /// While it lives, this thread's submissions pass a closed gate: verification and rollback. Where
  /// there is no room for one of them, it gets the next.
  class Passage {
   public:
    Passage() { ++depth_; }
    ~Passage() { --depth_; }
    Passage(const Passage&) = delete;
    Passage& operator=(const Passage&) = delete;
    static bool open() { return depth_ > 0; }

   private:
    static thread_local int depth_;
  };

  /// The error that is first in the program among those since the last call, whether somebody looks
  /// at its future or not; losses by a fault, which the world deals with, do not count. All that
  /// has failed so far counts as read.
  std::optional<Error> take_error();
  [[nodiscard]] ErrorLedger& ledger() noexcept { return ledger_; }

  struct Fence {
    ProgramPlace place;
    Future<void> reached;
  };
  /// Everything that was submitted or asked of other ranks so far. `reached` resolves when all of
  /// it has ended: with success, or with an error if anything of it failed or was lost by a fault.
  Fence fence();
  /// The program has gone back to this place: what failed behind it is done again.
  void forget_since(ProgramPlace place);
  /// The program knows of the losses so far, and deals with them.
  void forgive_losses();

  /// The unanswered commands that name bytes of a range of pinned memory.
  [[nodiscard]] std::vector<std::uint64_t> users_of(const Operand& pinned);
  [[nodiscard]] bool pending(std::uint64_t ticket) const noexcept {
    return tickets_.pending(ticket);
  }
  [[nodiscard]] std::string name_of(const Operand& range) const override;
  /// Describes the buffer that a range names, for messages.
  [[nodiscard]] std::string describe(const Operand& range) const;
  /// True if a command with a tail of so many operands, of so many bytes in all, can be submitted.
  [[nodiscard]] bool takes(std::size_t tail, std::size_t bytes) const {
    const std::lock_guard lock(submit_mutex_);
    return fits(tail, bytes);
  }
  [[nodiscard]] std::uint64_t submitted() const noexcept { return tickets_.submitted(); }
  [[nodiscard]] std::uint64_t retired() const noexcept { return tickets_.retired(); }
  /// True while some waiting thread drains the replies itself, so that the watcher need not be
  /// woken.
  [[nodiscard]] bool being_polled() const noexcept {
    return SteadyClock::time().count() - last_poll_ns_.load(std::memory_order_relaxed) < 200'000;
  }
  /// The reply ring is corrupt, or the command ring's head is: the host must be replaced.
  [[nodiscard]] bool corrupt() const noexcept { return corrupt_.load(std::memory_order_acquire); }

 private:
  enum class Push { done, full };
  /// What to do if the command cannot be pushed at once.
  enum class Patience { wait, give_up };
  Future<void> submit(const detail::CommandView& command, Patience patience, bool delivers);

  /// What stands in the way of an access to a range.
  enum class Way { clear, expected, lent };
  struct Hindrance {
    Way way = Way::clear;
    Operand range;  ///< lent: what is about to be written
  };
  [[nodiscard]] Way way(const Operand& range, Access access) const;
  [[nodiscard]] Hindrance hindrance(const detail::CommandView& command) const;
  /// A range that is being read or written from elsewhere.
  struct Transfer {
    Operand range;
    bool overtaken = false;  ///< its buffer has been restored since it began
  };
  static bool any_overlap(const std::vector<Transfer>& list, const Operand& range);
  static std::vector<Transfer>::iterator find(std::vector<Transfer>& list, const Operand& range);
  Result<void> reserve(std::vector<Transfer>& list, const Operand& range, Access access);
  void give_back(std::vector<Transfer>& list, const Operand& range);
  Result<void> admit(const detail::CommandView& command, bool delivers) const;
  /// Checks a command of a thread that does not work for the current timeline. Errors: as for the
  /// public overload.
  [[nodiscard]] Result<void> check_timeline(const detail::CommandView& command) const;
  [[nodiscard]] std::optional<Error> trespass(std::string_view call, std::string_view name,
                                              const Operand& range) const;
  /// True if the timeline that the calling thread works for is undone: the thread's commands are
  /// refused, and its errors do not count as unread.
  [[nodiscard]] static bool works_for_undone() noexcept;
  Push push(const detail::CommandView& command, Future<void>& future);
  /// The device host does not know its library: see PortHeader::unknown.
  [[nodiscard]] bool is_unknown(const OperationInfo& info, const std::byte* op) const;
  /// Whether its library takes another command: see PortHeader::held_up.
  [[nodiscard]] bool has_credit(const OperationInfo& info, const std::byte* op) const;

  /// Futures to resolve once no lock is held: what waits for them may submit again.
  class Resolved {
   public:
    explicit Resolved(CommandPort& port) : resolving_(&port.resolving_) {}
    ~Resolved() {
      if (list_.empty()) return;
      for (auto& [state, outcome] : list_) state->resolve(std::move(outcome));
      resolving_->fetch_sub(1, std::memory_order_acq_rel);
    }
    Resolved(const Resolved&) = delete;
    Resolved& operator=(const Resolved&) = delete;
    /// With the lock of the replies held.
    void add(detail::StatePtr<detail::State<void>> state, const Result<void>& outcome) {
      if (list_.empty()) resolving_->fetch_add(1, std::memory_order_acq_rel);
      list_.emplace_back(std::move(state), outcome);
    }
    /// Buffers that commands have failed to write after they had begun, to be lost before the
    /// futures tell of it.
    struct Spoilt {
      std::uint32_t buffer;
      Errc by;
      std::uint32_t epoch;
      std::uint32_t generation;  ///< of its contents: the entry may have another buffer by then
    };
    [[nodiscard]] std::vector<Spoilt>& spoilt() noexcept { return spoilt_; }

   private:
    std::atomic<std::uint32_t>* resolving_;
    std::vector<Spoilt> spoilt_;
    std::vector<std::pair<detail::StatePtr<detail::State<void>>, Result<void>>> list_;
  };

  [[nodiscard]] bool fits(std::size_t tail, std::size_t bytes) const noexcept {
    return tail <= wire::kMaxTail && bytes <= producer_.max_record();
  }
  void drain_locked(Resolved& resolved);
  /// What is spoilt goes stale. The submitters' lock is taken, or held.
  void lose_spoilt(Resolved& resolved);
  void lose_spoilt_locked(Resolved& resolved);
  /// Everything that is answered is accounted for: ends the fences that waited for it.
  void advance(Resolved& resolved);
  /// What a host that stopped has answered.
  Settled take_answers(Resolved& resolved);
  void turn_to(std::shared_ptr<HostLink> link);
  /// On the board of the flight recorder.
  void show_host();
  /// Notes what the command with this ticket names, until it is answered.
  void note_use(TicketTable::Slot& slot, std::uint64_t ticket, const Operand& operand,
                Access access);
  /// The command is answered: what it names is free of it. Its future, to be resolved.
  detail::StatePtr<detail::State<void>> close(std::uint64_t ticket);
  /// Takes the records of unanswered commands that the host has taken out of the ring, which has
  /// room again then. The submitters' lock.
  void save_taken();
  /// An unanswered command's record, wherever it is now.
  [[nodiscard]] Result<std::span<const std::byte>> record_of(const TicketTable::Slot& slot) const;
  /// Reads it; false if it was spoilt.
  bool read(std::uint64_t ticket, wire::Command& command) const;
  /// Which commands the host that stopped may have issued.
  class InFlight;
  /// The error of the commands that were in flight in a host that died: with their names.
  Error with_what_ran(const Error& error, const InFlight& in_flight) const;
  /// Which of these commands may run again; nullopt: none, because the ring cannot be trusted.
  std::optional<ReplayPlan> plan_replay(const InFlight& in_flight) const;
  /// Pinned memory and other ranks' slabs are in no table of buffers.
  static bool in_no_table(const Operand& operand) {
    return (operand.region & (kPinnedRegion | kForeignRegion)) != 0;
  }
  void fail(std::uint64_t ticket, const Error& error, Settled& settled, Resolved& resolved);
  /// Beside fail(): what a command that does not go on would have written to pinned memory.
  static void lose_pinned(const wire::Command& command, Settled& settled);
  /// Why a command that was never issued cannot run any more; nullopt: it can. What counts is what
  /// the commands before it have lost (`settled`), not the generations of now: the loss of one
  /// behind it does not concern it. `moves`: to a host that has no memory apart.
  static std::optional<Error> obstacle(const wire::Command& command, const Settled& settled,
                                       const Error& error, bool moves);

  Options options_;
  Deliveries deliveries_{*this, 0};
  std::function<void(const Operand&)> rescue_;
  std::function<Result<detail::ResultCell>(std::size_t)> make_cell_;

  mutable std::mutex submit_mutex_;
  BufferTable buffers_;
  ipc::RingProducer producer_;
  std::optional<Error> gate_;
  detail::TimelineState* timeline_ = nullptr;           ///< held by the run
  std::vector<std::uint32_t> of_run_;                   ///< marked in the table
  bool passage_waits_ = false;                          ///< for room, see Passage
  std::optional<Error> ended_;                          ///< see end()
  std::map<std::uint32_t, std::uint32_t> collectives_;  ///< of each group, in this epoch
  std::uint64_t last_collective_ = 0;                   ///< of the world: its ticket
  std::vector<std::uint32_t> dropped_;  ///< buffers to free, each once its last ticket is retired
  std::vector<Transfer> expected_, lent_;  ///< ranges under transfer; few
  std::atomic<std::uint32_t> spoilt_in_{0};
  std::uint64_t first_in_ring_ = 1;  ///< tickets below have left the ring; see save_taken()
  /// What commands name of pinned memory, by ticket; some of them may be answered.
  std::vector<std::pair<std::uint64_t, Operand>> pinned_uses_;
  static constexpr std::size_t kPinnedUses = 64;
  std::size_t pinned_uses_limit_ = kPinnedUses;  ///< then those that are answered go

  std::mutex reply_mutex_;
  ipc::RingConsumer replies_;
  std::shared_ptr<HostLink> link_;  ///< changed under both locks

  OutcomeLog outcomes_;
  ErrorLedger ledger_;
  TicketTable tickets_;
  std::atomic<std::uint32_t> resolving_{0};
  std::atomic<std::uint32_t> epoch_{0};
  std::atomic<std::int64_t> last_poll_ns_{0};
  /// Since a waiter slept; reply_mutex_. The clock costs as much as a poll that finds nothing.
  std::uint32_t polls_ = 0;
  static constexpr std::uint32_t kPollsPerClock = 16;
  std::atomic<bool> corrupt_{false};
};

}  // namespace troupe::rank_process
