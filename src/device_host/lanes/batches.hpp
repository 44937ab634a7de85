#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "common/ipc/doorbell.hpp"
#include "common/wire/host_options.hpp"
#include "device_host/engine/engine.hpp"
#include "device_host/flight_log.hpp"
#include "device_host/lanes/lanes.hpp"
#include "device_host/replies.hpp"

namespace troupe::host {

/// A mark of the engine, given back with its owner.
class HeldMark {
 public:
  HeldMark() = default;
  HeldMark(Engine& engine, Mark mark) : engine_(&engine), mark_(mark) {}
  HeldMark(HeldMark&& other) noexcept
      : engine_(std::exchange(other.engine_, nullptr)), mark_(other.mark_) {}
  HeldMark& operator=(HeldMark&& other) noexcept {
    std::swap(engine_, other.engine_);
    std::swap(mark_, other.mark_);
    return *this;
  }
  ~HeldMark() {
    if (engine_ != nullptr) engine_->release(mark_);
  }
  [[nodiscard]] Mark get() const noexcept { return mark_; }
  [[nodiscard]] explicit operator bool() const noexcept { return engine_ != nullptr; }

 private:
  Engine* engine_ = nullptr;
  Mark mark_;
};

/// What a run says of an error of its number-th command, from 1.
Error at_step(const Error& error, std::size_t number);

/// Commands of one queue that were issued together and are answered together, because one mark
/// stands behind them. The reactor's thread only.
///
/// Batches of different queues are answered independently, each as soon as it has ended, but never
/// before what its commands had to wait for: whoever knows the answers knows that a command that is
/// answered has nothing unanswered that it depends on. For that a batch ends wherever another queue
/// begins to wait for it, and remembers what it waits for itself.
class Batches {
 public:
  static constexpr std::uint32_t kMaxCommands = 64;  ///< issued between two calls of close_all()
  static constexpr std::size_t kMaxInFlight = 64;    ///< batches of a queue, unless others wait

  Batches(Engine& engine, Lanes& lanes, Replies& replies, FlightLog& flight,
          wire::Completion completion, ipc::Doorbell bell)
      : engine_(&engine),
        lanes_(&lanes),
        replies_(&replies),
        flight_(&flight),
        completion_(completion),
        bell_(std::move(bell)) {}

  [[nodiscard]] bool empty() const;
  [[nodiscard]] int fd() const noexcept { return bell_.fd(); }
  /// Commands since the last close_all().
  [[nodiscard]] std::uint32_t open_count() const noexcept { return open_count_; }

  /// Makes the queue wait for what a command must wait for that is to be queued on it. `alone`:
  /// what stands before a collective is not answered with it, which may wait long for other ranks.
  Result<void> order(Queue queue, const Waits& waits, bool alone = true);
  /// The command was queued there.
  void add(const wire::Command& command, const AddressMap& addresses, Queue queue,
           const Waits& waits);
  /// The command that was added last there also fails if its part, the number-th command of a
  /// sequence (from 1), has.
  void judge(std::uint64_t ticket, const wire::Command& part, std::size_t number,
             const AddressMap& addresses, Queue queue);
  /// What has been queued there is part of a command that is answered elsewhere.
  void add_place(Queue queue, const Waits& waits);
  /// The command with this ticket needs no queue and has ended well.
  void add(std::uint64_t ticket);

  /// Ends the open batches. An error is the engine's (device_lost, …).
  Result<void> close_all();
  /// Ends the open batch of one queue, whatever is in flight there.
  Result<void> close(Queue queue);
  /// Ends those with a place in them that is waited for.
  Result<void> close(const Waits& waits);

  /// Answers batches that are done. True if any was. An error of class device_lost, device_failed
  /// or peer_lost is returned and its batch kept unanswered; any other fails its batch alone.
  Result<bool> poll();

  /// What the engine says of what is in flight, of which nothing is answered. Errors: device_lost,
  /// device_failed.
  [[nodiscard]] Result<void> health() const;

  /// Whether all batches are done, well or not. Answers none: what they wrote is not to be trusted.
  /// Errors: device_lost, device_failed.
  Result<bool> drained();
  /// Forgets all batches without answering them.
  void discard();

 private:
  /// Consecutive tickets.
  struct Run {
    std::uint64_t first = 0;
    std::uint32_t count = 0;
  };
  struct HostFnCall {
    std::atomic<bool> has_run{false};
    const ipc::Doorbell* bell = nullptr;
  };
  /// A command whose result cell says whether it has failed.
  struct Judged {
    std::uint64_t ticket = 0;
    std::size_t number = 0;  ///< in the sequence that the command runs; 0: it is the command
    const OperationInfo* info = nullptr;
    std::vector<std::byte> op;
    const std::byte* cell = nullptr;
  };
  struct Batch {
    std::vector<Run> runs;
    std::vector<Judged> judged;
    Waits needs;          ///< what its commands had to wait for
    Sequence issued = 0;  ///< the place of its last command
    HeldMark mark;
    std::unique_ptr<HostFnCall> host_fn;  ///< completion host_fn

    /// It still refers to the batch.
    [[nodiscard]] bool awaits_host_fn() const {
      return host_fn && !host_fn->has_run.load(std::memory_order_acquire);
    }
  };

  /// Makes the queue wait for a place of another one.
  Result<void> order_behind(Queue queue, Queue other, Sequence place);
  static std::uint64_t bit(std::size_t index) noexcept { return std::uint64_t{1} << index; }
  static std::size_t first_of(std::uint64_t queues) noexcept {
    return static_cast<std::size_t>(std::countr_zero(queues));
  }
  static void extend(std::vector<Run>& runs, std::uint64_t ticket);
  /// The oldest batch in flight that ends at this place or behind it; nullptr: it is still open.
  const Batch* covering(Queue queue, Sequence sequence) const;
  Result<void> call_back(Queue queue, Batch& batch);
  [[nodiscard]] bool has_what_it_needs(const Batch& batch) const;
  Result<bool> done(const Batch& batch) const;
  /// What has ended well is noted, and what its result cells say has failed is answered so.
  void end(const Batch& batch);
  /// Answers the oldest batch of the queue if it is done.
  Result<bool> answer_front(std::size_t index);
  /// The oldest batch of the queue is over.
  void pop(std::size_t index);
  /// Sends what has ended well and is not sent yet.
  void publish();

  Engine* engine_;
  Lanes* lanes_;
  Replies* replies_;
  FlightLog* flight_;
  wire::Completion completion_;
  ipc::Doorbell bell_;  ///< rung by host functions
  std::array<Batch, kQueueCount> open_;
  std::array<std::deque<Batch>, kQueueCount> in_flight_;
  /// A bit for each queue by its index: something stands in its open batch; batches are in flight.
  std::uint64_t open_queues_ = 0, busy_queues_ = 0;
  std::uint32_t open_count_ = 0;
  std::vector<Run> ended_;  ///< well, not sent yet
};

}  // namespace troupe::host
