#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <troupe/actor/actor_id.hpp>
#include <troupe/actor/restart_budget.hpp>
#include <troupe/actor/scheduler.hpp>
#include <troupe/actor/supervision.hpp>

namespace troupe {

/// How an actor is made.
struct SpawnOptions {
  std::string name{};                  ///< for reports; need not be unique
  std::size_t mailbox_capacity = 256;  ///< messages, rounded up to a power of two
  OneForOne supervision{};
};

namespace detail {

class SystemCore;
template <class A>
class TypedCell;

/// Shared ownership of a cell (intrusive count).
template <class C>
class CellPtr {
 public:
  CellPtr() = default;
  explicit CellPtr(C* cell) noexcept : cell_(cell) {
    if (cell_) cell_->retain();
  }
  CellPtr(const CellPtr& other) noexcept : CellPtr(other.cell_) {}
  template <class D>
  requires std::is_base_of_v<C, D> CellPtr(const CellPtr<D>& other)
  noexcept : CellPtr(other.get()) {}
  CellPtr(CellPtr&& other) noexcept : cell_(std::exchange(other.cell_, nullptr)) {}
  CellPtr& operator=(CellPtr other) noexcept {
    std::swap(cell_, other.cell_);
    return *this;
  }
  ~CellPtr() {
    if (cell_) cell_->release();
  }
  [[nodiscard]] C* get() const noexcept { return cell_; }
  C* operator->() const noexcept { return cell_; }
  C& operator*() const noexcept { return *cell_; }
  explicit operator bool() const noexcept { return cell_ != nullptr; }

 private:
  C* cell_ = nullptr;
};

/// A message that reaches an actor past its mailbox, because it must not be lost when that is full:
/// from a timer or a future. Their number is bounded by the timers and futures that there are.
struct Posted {
  static constexpr std::uint64_t kAnyIncarnation = UINT64_MAX;
  explicit Posted(std::uint64_t to) : incarnation(to) {}
  virtual ~Posted() = default;
  /// The object that asked for it, a later one never sees it; or any, so that it waits for the
  /// next.
  std::uint64_t incarnation;
  std::optional<TimerId> timer{};  ///< set if it came from one
};

/// The part of an actor that outlives its object: address, mailbox, supervision, kinship. What does
/// not depend on the message set is here, the rest in TypedCell.
///
/// The life of an object: created in the first turn; after a failure that asks for a restart, or a
/// stop, it gets no more messages, its children are stopped, and once they have all ended it is
/// destroyed and, for a restart, made anew.
///
/// Functions marked [turn] may be called only within the actor's own turn, the others from any
/// thread.
class Cell : public Schedulable {
 public:
  Cell(std::shared_ptr<SystemCore> core, CellPtr<Cell> parent, ActorId id, SpawnOptions options);
  Cell(const Cell&) = delete;
  Cell& operator=(const Cell&) = delete;

  [[nodiscard]] ActorId id() const noexcept { return id_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] SystemCore& core() const noexcept { return *core_; }
  [[nodiscard]] const std::shared_ptr<SystemCore>& shared_core() const noexcept { return core_; }
  [[nodiscard]] Scheduler& scheduler() const noexcept;
  [[nodiscard]] bool ended() const;
  void wait_ended() const;
  /// See ActorRef::on_ended().
  using TellEnd = std::function<void(const Error& reason)>;
  void on_ended(TellEnd tell);

  /// Ends the actor after the message it is handling.
  void stop(Error reason);
  /// Delivers to the actor ahead of its mailbox. Dropped if the actor has ended.
  void post(std::unique_ptr<Posted> posted);
  /// The first turn.
  void start() noexcept { wake(); }
  /// Ends an actor that was never started, because the system takes no more.
  void refuse(Error reason);

  /// [turn] Any number of watches of one actor count as one; children are watched anyway.
  void watch(Cell& other);
  void unwatch(Cell& other);  ///< [turn]
  /// [turn] Throws Exception (would_block) if there are too many timers.
  TimerId add_timer(std::chrono::nanoseconds delay, std::unique_ptr<Posted> posted);
  bool cancel_timer(const TimerId& timer);  ///< [turn]
  /// [turn] Starts a child, unless this actor is ending or the system takes no more: then it has
  /// ended.
  void launch(const CellPtr<Cell>& child);
  void report(Error failure);                                                        ///< [turn]
  [[nodiscard]] std::uint64_t incarnation() const noexcept { return incarnation_; }  ///< [turn]

  /// Replies that a handler has promised with a future; they fail when the actor ends.
  using FailReply = std::function<void(const Error&)>;
  std::uint64_t add_pending_reply(FailReply fail);  ///< [turn]
  void remove_pending_reply(std::uint64_t key);

  Turn run(int budget) noexcept final;

  void retain() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  void release() noexcept {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  /// True on a thread that is just running some actor's turn.
  static bool inside_a_turn() noexcept;

 protected:
  virtual ~Cell() = default;

  /// To be called after a message was put into the mailbox. No more than a look at a flag that does
  /// not change as long as the actor keeps finding work.
  void wake() noexcept {
    if (readiness_.load(std::memory_order_seq_cst) == Readiness::scheduled) return;
    if (readiness_.exchange(Readiness::scheduled, std::memory_order_seq_cst) == Readiness::idle)
      submit();
  }
  [[nodiscard]] bool may_consume() const noexcept {
    return phase_ == Phase::running && !signalled_.load(std::memory_order_acquire);
  }
  void failed(Error error, bool resumable);
  /// A message that nobody waits for was not handled: the program hears of it, unless a decider of
  /// its own does.
  void tell_of(const Error& failure) const;
  /// Moves a failure reported by the handler that just ran.
  std::optional<Error> take_report() noexcept { return std::exchange(reported_, std::nullopt); }
  [[nodiscard]] bool has_report() const noexcept { return reported_.has_value(); }

  // All in the actor's turn; these catch what user code throws.
  virtual std::optional<Error> create() = 0;
  virtual void destroy() noexcept = 0;
  virtual void last_words(const Error& reason) noexcept = 0;
  /// Handles up to `budget` messages, returns how many.
  virtual int consume(int budget) = 0;
  virtual std::optional<Error> deliver(Down down) = 0;
  virtual std::optional<Error> deliver(Posted& posted) = 0;
  virtual void close_mailbox() = 0;
  virtual bool mailbox_claimed() const noexcept = 0;
  virtual bool mailbox_published() const noexcept = 0;

 private:
  /// Only the one may submit who moves `idle` to `scheduled`. A turn that has run out of work
  /// moves `scheduled` to `leaving` and looks once more, and to `idle` only if nobody has moved it
  /// back.
  enum class Readiness : std::uint8_t { idle, scheduled, leaving };
  enum class Phase : std::uint8_t { unborn, running, restarting, stopping };
  struct Stop {
    Error reason;
  };
  struct ChildEnded {
    ActorId id;
    Error reason;
    bool escalated;
  };
  using Signal = std::variant<Stop, Down, ChildEnded, std::unique_ptr<Posted>>;

  void submit() noexcept;
  void signal(Signal signal);
  std::optional<Signal> next_signal();
  void handle(Stop&& stop);
  void handle(Down&& down);
  void handle(ChildEnded&& child);
  void handle(std::unique_ptr<Posted>&& posted);
  void settle();
  [[nodiscard]] bool has_work() const noexcept;
  [[nodiscard]] bool linger() const noexcept;
  [[nodiscard]] bool finished() const noexcept {
    return phase_ == Phase::stopping && children_.empty();
  }
  void end(Error reason);
  void forget_obligations();
  void stop_children();
  void finish();
  /// The reason if this actor has ended, otherwise `watcher` will be told.
  std::optional<Error> add_watcher(Cell& watcher);
  void remove_watcher(const Cell& watcher);

  std::atomic<Readiness> readiness_{Readiness::idle};
  std::atomic<bool> signalled_{false};
  Phase phase_ = Phase::unborn;
  std::atomic<std::uint32_t> references_{0};

  const std::shared_ptr<SystemCore> core_;
  const ActorId id_;
  const std::string name_;
  const Decider decider_;

  // The actor's own, touched in its turn only.
  CellPtr<Cell> parent_;
  RestartBudget budget_;
  std::uint64_t incarnation_ = 0;
  std::optional<Error> reported_;
  Error end_reason_;
  bool escalated_ = false;
  std::map<ActorId, CellPtr<Cell>> children_;
  std::map<ActorId, CellPtr<Cell>> watching_;
  std::set<TimerId> timers_;
  std::vector<std::unique_ptr<Posted>> for_next_object_;  ///< came while there was none

  mutable std::mutex mutex_;  // guards what follows; nothing is called while it is held
  std::deque<Signal> signals_;
  std::vector<CellPtr<Cell>> watchers_;
  std::vector<TellEnd> tell_end_;
  std::map<std::uint64_t, FailReply> pending_replies_;
  std::uint64_t last_reply_key_ = 0;
  std::optional<Error> ended_;
  mutable std::condition_variable has_ended_;
};

}  // namespace detail
}  // namespace troupe
