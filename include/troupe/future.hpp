#pragma once

#include <atomic>
#include <chrono>
#include <coroutine>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <troupe/error.hpp>
#include <troupe/timeline.hpp>

namespace troupe {

template <class T>
class Future;
template <class T>
class Promise;

namespace detail {

/// Lets a waiting thread do the work it waits for (draining the reply ring) before it sleeps.
class Progress {
 public:
  /// One attempt to advance; cheap, called in a loop, from any thread.
  virtual void poll() noexcept = 0;
  /// Announces that the caller goes to sleep: whoever completes the work must wake somebody.
  virtual void before_sleep() noexcept = 0;
  /// How long a waiter may spin with poll() before it sleeps; zero when cores are scarce.
  [[nodiscard]] virtual std::chrono::nanoseconds spin_time() const noexcept = 0;

 protected:
  ~Progress() = default;
};

/// The part of a shared state that does not depend on the value. Intrusively counted.
class StateBase {
 public:
  struct Continuation {
    /// `awaited`: a commit waits for it, see Timeline.
    Continuation(bool is_quick, bool awaited)
        : quick(is_quick), errand(awaited ? Errand::Count::waiting : Errand::Count::none) {}
    virtual ~Continuation() = default;
    virtual void run() noexcept = 0;
    Continuation* next = nullptr;
    bool quick;     ///< waits for nothing: may run on any thread
    Errand errand;  ///< of the thread that has attached it
  };

  explicit StateBase(Progress* progress) noexcept : progress_(progress) {}
  StateBase(const StateBase&) = delete;
  StateBase& operator=(const StateBase&) = delete;

  [[nodiscard]] bool ready() const noexcept {
    return ready_.load(std::memory_order_acquire) == kReady;
  }
  void wait() noexcept;
  /// True if ready before the time was over.
  bool wait_for(std::chrono::nanoseconds time) noexcept;
  /// Runs `continuation` once, on the resolving thread, or at once if ready; where the resolving
  /// thread must not wait, and the continuation is not quick, on another. Takes ownership.
  void attach(Continuation* continuation) noexcept;

  /// For whoever makes the state and keeps two references: cheaper than retain().
  struct TwoReferences {};
  StateBase(Progress* progress, TwoReferences) noexcept : references_(2), progress_(progress) {}

  /// Nobody but the caller has a reference, so nobody will see the outcome.
  [[nodiscard]] bool unshared() const noexcept {
    return references_.load(std::memory_order_acquire) == 1;
  }
  void retain() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  void release() noexcept {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

 protected:
  virtual ~StateBase();
  /// Claims the right to write the value; false if somebody has it already.
  bool claim() noexcept { return !claimed_.exchange(true, std::memory_order_acq_rel); }
  void publish() noexcept;

 private:
  static constexpr std::uint32_t kPending = 0, kReady = 1,
                                 kSleeper = 2;  // kSleeper: pending, wake us

  std::atomic<std::uint32_t> references_{1};
  std::atomic<std::uint32_t> ready_{kPending};
  std::atomic<bool> claimed_{false};
  std::atomic<Continuation*> continuations_{nullptr};
  Progress* progress_;
};

/// Memory for shared states, recycled by the thread that frees it: a command's future costs no trip
/// to the heap.
void* allocate_state(std::size_t bytes);
void free_state(void* memory, std::size_t bytes) noexcept;

inline void set_read(const Error& error, bool read) noexcept {
  if (error.read) error.read->store(read, std::memory_order_release);
}

template <class T>
class State final : public StateBase {
 public:
  using StateBase::StateBase;

  static void* operator new(std::size_t bytes) { return allocate_state(bytes); }
  static void operator delete(void* memory, std::size_t bytes) noexcept {
    free_state(memory, bytes);
  }

  /// Stores the outcome; the first call wins, later ones return false.
  bool resolve(Result<T> outcome) {
    if (!claim()) return false;
    outcome_.emplace(std::move(outcome));
    publish();
    return true;
  }
  [[nodiscard]] const Result<T>& outcome() const { return *outcome_; }
  /// The outcome, for the program: an error counts as read from now on.
  const Result<T>& read() const {
    if (!outcome_->ok()) [[unlikely]]
      set_read(outcome_->error(), true);
    return *outcome_;
  }

 private:
  std::optional<Result<T>> outcome_;
};

template <class S>
class StatePtr {
 public:
  StatePtr() = default;
  explicit StatePtr(S* adopted) noexcept : state_(adopted) {}
  StatePtr(const StatePtr& other) noexcept : state_(other.state_) {
    if (state_) state_->retain();
  }
  StatePtr(StatePtr&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  StatePtr& operator=(StatePtr other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~StatePtr() {
    if (state_) state_->release();
  }
  S* operator->() const noexcept { return state_; }
  explicit operator bool() const noexcept { return state_ != nullptr; }

 private:
  S* state_ = nullptr;
};

/// Has the program's account of errors (Device::take_error()) take in an error that no command has
/// had: what a function of the program's threw. Returns what a future shall hold, unread. One that
/// was entered before is only passed on. A loss, of which the account knows, is not entered, nor
/// what was done for a timeline that is undone.
Error enter_error(Error error);
/// The same, for an answer that its asker is to read: take_error() is silent about it.
Error enter_answer(Error error);
/// The exception that is being handled, entered.
Error error_of_exception() noexcept;

template <class F>
struct FunctionContinuation final : StateBase::Continuation {
  FunctionContinuation(F f, bool is_quick, bool awaited)
      : Continuation(is_quick, awaited), function(std::move(f)) {}
  void run() noexcept override {
    try {
      function();
    } catch (...) {
      (void)error_of_exception();  // there is no future that could hold it
    }
  }
  F function;
};

template <class T, class F>
struct ThenResult {
  using type = std::invoke_result_t<F, T>;
};
template <class F>
struct ThenResult<void, F> {
  using type = std::invoke_result_t<F>;
};

/// As Future::on_ready(), for an `f` that waits for nothing, such as a message to an actor: it runs
/// on the resolving thread, whichever that is.
/// `awaited`: a commit waits for it, see Timeline.
template <class T, class F>
void at_once_when_ready(const Future<T>& future, F f, bool awaited = false);
/// As Future::then(), for such an `f`.
template <class T, class F>
auto then_at_once(const Future<T>& future, F f);

}  // namespace detail

/// The outcome of an asynchronous operation: a value or an Error, delivered once.
///
/// Copies share the outcome. A future may be dropped: the operation runs all the same, and its
/// error is told by Device::take_error(). Every function may be called from any thread. Also usable
/// as the return type of a coroutine.
///
/// An error is *read* once get(), wait(), co_await or a function given to on_ready() has had it.
/// Where it is only passed on, by then(), by when_all() or by a coroutine that it leaves, it is
/// read when the next future is.
template <class T = void>
class Future {
 public:
  struct promise_type;

  Future() = default;
  explicit Future(detail::StatePtr<detail::State<T>> state) : state_(std::move(state)) {}
  /// An already resolved future.
  Future(Result<T> outcome) : state_(new detail::State<T>(nullptr)) {
    state_->resolve(std::move(outcome));
  }

  [[nodiscard]] bool valid() const noexcept { return static_cast<bool>(state_); }
  [[nodiscard]] bool ready() const noexcept { return state_->ready(); }

  /// Waits (spinning briefly, then sleeping) and returns the value; throws Exception on an error.
  T get() const { return Result<T>(wait()).take(); }
  /// Waits and returns the outcome as a value; never throws.
  const Result<T>& wait() const {
    state_->wait();
    return state_->read();
  }
  /// Waits, and leaves the outcome unread.
  void wait_ready() const { state_->wait(); }
  /// Waits at most `time`; true if the future is ready then.
  bool wait_for(std::chrono::nanoseconds time) const { return state_->wait_for(time); }

  /// A future for f(value). Runs on the thread that resolves this future, on one of troupe's for
  /// such functions, or here if it is resolved already: f may submit commands, for the timeline of
  /// the thread that calls then(), and must not wait for what takes long. An error skips f and is
  /// passed on; what f throws is the error of the new future.
  template <class F>
  auto then(F f) const -> Future<typename detail::ThenResult<T, F>::type> {
    return chain(std::move(f), false, true);
  }

  /// Calls f(const Result<T>&) once, where then() would call it. What f throws is an error that
  /// nobody has read: Device::take_error() tells of it.
  template <class F>
  void on_ready(F f) const {
    attach([f = std::move(f), state = state_]() mutable { f(state->read()); }, false, true);
  }

  auto operator co_await() const {
    struct Awaiter {
      Future future;
      bool await_ready() const noexcept { return future.ready(); }
      void await_suspend(std::coroutine_handle<> handle) const {
        future.attach([handle] { handle.resume(); }, false, true);
      }
      T await_resume() const { return future.get(); }
    };
    return Awaiter{*this};
  }

 private:
  friend Future<void> when_all(std::vector<Future<void>> futures);
  template <class U, class F>
  friend void detail::at_once_when_ready(const Future<U>& future, F f, bool awaited);
  template <class U, class F>
  friend auto detail::then_at_once(const Future<U>& future, F f);

  template <class F>
  void attach(F f, bool quick, bool awaited) const {
    state_->attach(new detail::FunctionContinuation<F>(std::move(f), quick, awaited));
  }
  template <class F>
  auto chain(F f, bool quick, bool awaited) const
      -> Future<typename detail::ThenResult<T, F>::type> {
    using R = typename detail::ThenResult<T, F>::type;
    detail::StatePtr<detail::State<R>> next(new detail::State<R>(nullptr));
    attach(
        [f = std::move(f), next, state = state_]() mutable {
          const Result<T>& outcome = state->outcome();
          if (!outcome.ok()) return (void)next->resolve(outcome.error());
          try {
            if constexpr (std::is_void_v<T> && std::is_void_v<R>) {
              f();
              next->resolve({});
            } else if constexpr (std::is_void_v<T>) {
              next->resolve(f());
            } else if constexpr (std::is_void_v<R>) {
              f(*outcome);
              next->resolve({});
            } else {
              next->resolve(f(*outcome));
            }
          } catch (...) {
            next->resolve(detail::error_of_exception());
          }
        },
        quick, awaited);
    return Future<R>(next);
  }

  detail::StatePtr<detail::State<T>> state_;
};

/// The writing end of a Future. A promise that dies unresolved resolves with Errc::stopped.
template <class T = void>
class Promise {
 public:
  /// `progress` (may be null) is polled by threads that wait; it must outlive them.
  explicit Promise(detail::Progress* progress = nullptr) : state_(new detail::State<T>(progress)) {}
  Promise(Promise&&) noexcept = default;
  Promise& operator=(Promise&& other) noexcept {
    drop();
    state_ = std::move(other.state_);
    return *this;
  }
  ~Promise() { drop(); }

  [[nodiscard]] Future<T> future() const { return Future<T>(state_); }
  /// Delivers the outcome; false if one was delivered before.
  bool resolve(Result<T> outcome) { return state_->resolve(std::move(outcome)); }

 private:
  void drop() {
    if (state_ && !state_->ready())
      state_->resolve(Error{Errc::stopped, 0, "the promise was dropped"});
  }

  detail::StatePtr<detail::State<T>> state_;
};

namespace detail {
template <class T, class F>
void at_once_when_ready(const Future<T>& future, F f, bool awaited) {
  future.attach([f = std::move(f), state = future.state_]() mutable { f(state->read()); }, true,
                awaited);
}
template <class T, class F>
auto then_at_once(const Future<T>& future, F f) {
  return future.chain(std::move(f), true, false);
}

template <class T>
struct CoroutinePromiseBase {
  Promise<T> promise;
  Future<T> get_return_object() { return promise.future(); }
  std::suspend_never initial_suspend() noexcept { return {}; }
  std::suspend_never final_suspend() noexcept { return {}; }
  void unhandled_exception() { promise.resolve(error_of_exception()); }
};
}  // namespace detail

/// A coroutine may return a Future with a value.
template <class T>
struct Future<T>::promise_type : detail::CoroutinePromiseBase<T> {
  void return_value(T value) { this->promise.resolve(std::move(value)); }
};
/// A coroutine may return a Future without a value.
template <>
struct Future<void>::promise_type : detail::CoroutinePromiseBase<void> {
  void return_void() { promise.resolve({}); }
};

/// Resolves when all have: with success, or with the first error in argument order. That one speaks
/// for the others, which count as read.
Future<void> when_all(std::vector<Future<void>> futures);

}  // namespace troupe
