#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace troupe {

namespace detail {

/// The state that all copies of a Timeline share, with a reference count: if the timeline still
/// counts, and how much work for it is under way on other threads. Any thread.
class TimelineState {
 public:
  enum class Standing : std::uint8_t {
    current,
    over,   ///< a commit, or the end of the run, is behind it
    undone  ///< the run has gone back to before it, or was left by an error
  };

  TimelineState() = default;
  TimelineState(const TimelineState&) = delete;
  TimelineState& operator=(const TimelineState&) = delete;

  [[nodiscard]] Standing standing() const noexcept {
    return standing_.load(std::memory_order_acquire);
  }
  /// For the command port, with the lock of its submissions held: what is refused by this standing
  /// is refused from now on.
  void set_standing(Standing standing) noexcept {
    standing_.store(standing, std::memory_order_release);
  }

  /// The work for it, as of one moment.
  struct Work {
    std::uint32_t active;   ///< functions that run or are about to, messages to actors, scopes
    std::uint32_t waiting;  ///< functions given to futures that have not resolved
  };
  [[nodiscard]] Work work() const noexcept {
    const auto both = work_.load(std::memory_order_acquire);
    return {static_cast<std::uint32_t>(both), static_cast<std::uint32_t>(both >> 32)};
  }

  /// How much has been active so far.
  [[nodiscard]] std::uint64_t starts() const noexcept {
    return starts_.load(std::memory_order_acquire);
  }

  /// Some work waits for a future.
  void add_waiting() noexcept { work_.fetch_add(kWaiting, std::memory_order_acq_rel); }
  void end_waiting() noexcept { work_.fetch_sub(kWaiting, std::memory_order_acq_rel); }
  /// Some work is active, which waited before or has just come.
  void activate_waiting() noexcept {
    starts_.fetch_add(1, std::memory_order_acq_rel);
    work_.fetch_add(kActive - kWaiting, std::memory_order_acq_rel);
  }
  void add_active() noexcept {
    starts_.fetch_add(1, std::memory_order_acq_rel);
    work_.fetch_add(kActive, std::memory_order_acq_rel);
  }
  void end_active() noexcept { work_.fetch_sub(kActive, std::memory_order_acq_rel); }

  void retain() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  void release() noexcept {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

 private:
  ~TimelineState() = default;

  std::atomic<std::uint32_t> references_{1};
  std::atomic<Standing> standing_{Standing::current};
  static constexpr std::uint64_t kActive = 1, kWaiting = std::uint64_t{1} << 32;
  std::atomic<std::uint64_t> work_{0};  ///< one number, so that none is missed in between
  std::atomic<std::uint64_t> starts_{0};
};

/// The timeline that the calling thread works for; nullptr if it works for no run.
[[nodiscard]] TimelineState* bound_timeline() noexcept;
/// Makes the calling thread work for `timeline`. Returns the one that it worked for before.
TimelineState* bind_timeline(TimelineState* timeline) noexcept;

/// The calling thread works for a timeline, or for none, as long as this lives.
class Binding {
 public:
  explicit Binding(TimelineState* timeline) noexcept : before_(bind_timeline(timeline)) {}
  ~Binding() { (void)bind_timeline(before_); }
  Binding(const Binding&) = delete;
  Binding& operator=(const Binding&) = delete;

 private:
  TimelineState* before_;
};

/// Work that one thread leaves to another: knows the timeline of the thread that made it, and
/// counts there until it is done.
class Errand {
 public:
  enum class Count : std::uint8_t { none, waiting, active };

  /// For what the calling thread works for.
  explicit Errand(Count count) noexcept : Errand(bound_timeline(), count) {}
  Errand(TimelineState* timeline, Count count) noexcept : timeline_(timeline), count_(count) {
    if (timeline_ == nullptr) return;
    timeline_->retain();
    if (count_ == Count::active) timeline_->add_active();
    if (count_ == Count::waiting) timeline_->add_waiting();
  }
  Errand(Errand&& other) noexcept
      : timeline_(std::exchange(other.timeline_, nullptr)), count_(other.count_) {}
  Errand& operator=(Errand&&) = delete;
  ~Errand() {
    if (timeline_ == nullptr) return;
    if (count_ == Count::active) timeline_->end_active();
    if (count_ == Count::waiting) timeline_->end_waiting();
    timeline_->release();
  }

  /// The future that the work waited for has resolved: the work counts as active from now on.
  void begin() noexcept {
    if (timeline_ == nullptr || count_ != Count::waiting) return;
    timeline_->activate_waiting();
    count_ = Count::active;
  }
  [[nodiscard]] TimelineState* timeline() const noexcept { return timeline_; }

 private:
  TimelineState* timeline_;
  Count count_;
};

}  // namespace detail

/// The part of a World::run that a thread works for: the steps from one commit to the next, or to
/// the fault that undoes them. The thread of the run has a timeline; functions given to futures,
/// coroutines and messages to actors of this rank take the timeline of the thread that gives them.
/// The program sets the timeline of any other thread:
///
///     world.run(state, [&](std::int64_t step) {
///       std::thread helper([&, timeline = world.timeline()] {
///         const Timeline::Scope scope(timeline);
///         device.fill(x, 1.0);
///       });
///       helper.join();
///       …
///
/// docs/recovery.md has the rule: what may be submitted for which timeline, and what waits for it.
/// A value; any thread.
class Timeline {
 public:
  /// None: what is done for it is not part of a run.
  Timeline() = default;
  Timeline(const Timeline& other) noexcept : Timeline(other.state_) {}
  Timeline(Timeline&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  Timeline& operator=(Timeline other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~Timeline() {
    if (state_ != nullptr) state_->release();
  }

  /// Work for it can still be submitted.
  [[nodiscard]] bool current() const noexcept {
    return state_ != nullptr && state_->standing() == detail::TimelineState::Standing::current;
  }
  [[nodiscard]] explicit operator bool() const noexcept { return state_ != nullptr; }

  /// The calling thread works for the timeline as long as this lives, and the commit that ends it
  /// waits until then.
  class Scope {
   public:
    explicit Scope(const Timeline& timeline) noexcept
        : errand_(timeline.state_, detail::Errand::Count::active), binding_(timeline.state_) {}

   private:
    detail::Errand errand_;
    detail::Binding binding_;
  };

  /// The timeline that the calling thread works for. For World.
  [[nodiscard]] static Timeline of_this_thread() noexcept {
    return Timeline(detail::bound_timeline());
  }

 private:
  explicit Timeline(detail::TimelineState* state) noexcept : state_(state) {
    if (state_ != nullptr) state_->retain();
  }
  detail::TimelineState* state_ = nullptr;
};

}  // namespace troupe
