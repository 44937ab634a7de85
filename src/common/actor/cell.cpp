#include <troupe/actor/cell.hpp>

#include <algorithm>
#include <iterator>

#include <troupe/actor/system_core.hpp>
#include <troupe/future.hpp>
#include <troupe/spin.hpp>

namespace troupe::detail {
namespace {

/// One to four microseconds: what a sleep and a wake-up cost at least.
constexpr int kLingerPauses = 64;

thread_local bool tls_inside_a_turn = false;

/// Delivers a message when its time has come.
class PostTimer final : public TimerTask {
 public:
  PostTimer(CellPtr<Cell> cell, std::unique_ptr<Posted> posted)
      : cell_(std::move(cell)), posted_(std::move(posted)) {}
  void fire(const TimerId& self) noexcept override {
    posted_->timer = self;
    cell_->post(std::move(posted_));
  }

 private:
  CellPtr<Cell> cell_;
  std::unique_ptr<Posted> posted_;
};

}  // namespace

bool Cell::inside_a_turn() noexcept {
  return tls_inside_a_turn;
}

Cell::Cell(std::shared_ptr<SystemCore> core, CellPtr<Cell> parent, ActorId id, SpawnOptions options)
    : core_(std::move(core)),
      id_(id),
      name_(std::move(options.name)),
      decider_(std::move(options.supervision.decider)),
      parent_(std::move(parent)),
      budget_(options.supervision.max_restarts, options.supervision.window) {}

Scheduler& Cell::scheduler() const noexcept {
  return core_->scheduler();
}

void Cell::submit() noexcept {
  scheduler().submit(*this);
}

// ---- what reaches the actor past its mailbox
// -------------------------------------------------------------

void Cell::signal(Signal signal) {
  {
    const std::scoped_lock lock(mutex_);
    if (ended_) return;
    signals_.push_back(std::move(signal));
    signalled_.store(true, std::memory_order_seq_cst);
  }
  wake();
}

std::optional<Cell::Signal> Cell::next_signal() {
  const std::scoped_lock lock(mutex_);
  if (signals_.empty()) return std::nullopt;
  std::optional<Signal> first(std::move(signals_.front()));
  signals_.pop_front();
  signalled_.store(!signals_.empty(), std::memory_order_seq_cst);
  return first;
}

void Cell::stop(Error reason) {
  signal(Stop{std::move(reason)});
}

void Cell::post(std::unique_ptr<Posted> posted) {
  signal(std::move(posted));
}

void Cell::handle(Stop&& stop) {
  end(std::move(stop.reason));
}

void Cell::handle(Down&& down) {
  if (watching_.erase(down.id) == 0 || phase_ != Phase::running) return;
  if (auto failure = deliver(std::move(down))) {
    tell_of(*failure);
    failed(std::move(*failure), true);
  }
}

void Cell::handle(ChildEnded&& child) {
  children_.erase(child.id);
  if (phase_ != Phase::running) return;
  auto failure = deliver(Down{child.id, child.reason});
  if (failure) tell_of(*failure);
  if (child.escalated) failure = std::move(child.reason);
  if (failure) failed(std::move(*failure), true);
}

void Cell::handle(std::unique_ptr<Posted>&& posted) {
  if (posted->timer && timers_.erase(*posted->timer) == 0) return;  // cancelled after it had fired
  const bool any = posted->incarnation == Posted::kAnyIncarnation;
  if (any && phase_ == Phase::restarting) for_next_object_.push_back(std::move(posted));
  if (phase_ != Phase::running || (!any && posted->incarnation != incarnation_)) return;
  if (auto failure = deliver(*posted)) failed(std::move(*failure), true);
}

// ---- turns
// ------------------------------------------------------------------------------------------------

Turn Cell::run(int budget) noexcept {
  tls_inside_a_turn = true;
  if (phase_ == Phase::unborn) {
    phase_ = Phase::restarting;  // no object and no children: settle() makes the first one
    settle();
  }
  bool consumed_any = false;
  while (budget > 0 && !finished()) {
    if (signalled_.load(std::memory_order_acquire)) {
      if (auto next = next_signal()) {
        std::visit([this](auto&& signal) { handle(std::move(signal)); }, *next);
      }
      --budget;
    } else {
      const int consumed = phase_ == Phase::running ? consume(budget) : 0;
      budget -= consumed;
      consumed_any = consumed_any || consumed > 0;
      if (consumed == 0 && !(consumed_any && linger())) break;
    }
    settle();
  }
  const bool end_now = finished();
  if (end_now) finish();
  tls_inside_a_turn = false;
  if (end_now) return Turn::ended;
  const auto more = budget > 0 ? Turn::wait : Turn::again;
  if (has_work()) return more;
  readiness_.store(Readiness::leaving, std::memory_order_seq_cst);
  if (has_work()) {  // from one who found this still scheduled
    readiness_.store(Readiness::scheduled, std::memory_order_seq_cst);
    return more;
  }
  auto expected = Readiness::leaving;
  if (readiness_.compare_exchange_strong(expected, Readiness::idle, std::memory_order_seq_cst)) {
    return Turn::idle;  // from here on another thread may run, end and delete this
  }
  return Turn::again;
}

bool Cell::has_work() const noexcept {
  return signalled_.load(std::memory_order_seq_cst) ||
         (phase_ == Phase::running && mailbox_claimed());
}

/// Waits a moment for the next message where that holds up nobody: to fall asleep and be woken for
/// it would cost both sides much more. True if there is something to do.
bool Cell::linger() const noexcept {
  if (phase_ != Phase::running || !scheduler().may_linger()) return false;
  for (int i = 0; i < kLingerPauses; ++i) {
    if (signalled_.load(std::memory_order_relaxed) || mailbox_published()) return true;
    cpu_relax();
  }
  return false;
}

/// Makes the next object as soon as the last one's children have ended. A constructor that fails is
/// a failure like any other, so this ends with an object or with the budget.
void Cell::settle() {
  while (phase_ == Phase::restarting && children_.empty()) {
    destroy();
    ++incarnation_;
    phase_ = Phase::running;
    if (auto failure = create()) {
      tell_of(*failure);
      failed(std::move(*failure), false);
    }
  }
  if (phase_ != Phase::running || for_next_object_.empty()) return;
  const std::scoped_lock lock(mutex_);  // ahead of what has come since
  signals_.insert(signals_.begin(), std::make_move_iterator(for_next_object_.begin()),
                  std::make_move_iterator(for_next_object_.end()));
  for_next_object_.clear();
  signalled_.store(true, std::memory_order_seq_cst);
}

// ---- failure and end
// --------------------------------------------------------------------------------------

void Cell::report(Error failure) {
  reported_ = std::move(failure);
}

void Cell::tell_of(const Error& failure) const {
  const auto* const decider = decider_.target<Directive (*)(const Error&)>();
  if (decider == nullptr || *decider != &default_decider) return;
  auto error = failure;
  if (!error.read) error.message = "actor '" + name_ + "' has failed: " + error.message;
  (void)enter_error(std::move(error));
}

void Cell::failed(Error error, bool resumable) {
  auto directive = decider_(error);
  if (directive == Directive::resume && !resumable) directive = Directive::restart;
  if (core_->options().on_failure) core_->options().on_failure({id_, name_, error, directive});
  switch (directive) {
    case Directive::resume: return;
    case Directive::restart:
      if (!budget_.spend(scheduler().clock().now())) {
        end(Error{Errc::budget_exhausted, error.native,
                  std::to_string(budget_.max_restarts()) +
                      " restarts did not help: " + error.to_string()});
        return;
      }
      phase_ = Phase::restarting;
      forget_obligations();
      stop_children();
      return;
    case Directive::stop: end(std::move(error)); return;
    case Directive::escalate:
      escalated_ = true;
      end(std::move(error));
      return;
  }
}

void Cell::end(Error reason) {
  if (phase_ == Phase::stopping) return;
  phase_ = Phase::stopping;
  end_reason_ = std::move(reason);
  close_mailbox();
  forget_obligations();
  stop_children();
}

/// Timers and watches belong to the object, not to the address.
void Cell::forget_obligations() {
  for (const auto& timer : timers_) scheduler().cancel(timer);
  timers_.clear();
  for (const auto& [id, other] : watching_) other->remove_watcher(*this);
  watching_.clear();
}

void Cell::stop_children() {
  for (const auto& [id, child] : children_) {
    child->stop(Error{Errc::stopped, 0, "its parent ended or restarts"});
  }
}

void Cell::finish() {
  last_words(end_reason_);
  destroy();
  std::deque<Signal> signals;
  std::vector<CellPtr<Cell>> watchers;
  std::vector<TellEnd> tell_end;
  std::map<std::uint64_t, FailReply> replies;
  {
    const std::scoped_lock lock(mutex_);
    ended_ = end_reason_;
    has_ended_.notify_all();
    signals.swap(signals_);
    watchers.swap(watchers_);
    tell_end.swap(tell_end_);
    replies.swap(pending_replies_);
  }
  forget_obligations();  // what last_words() may have made
  for (const auto& [key, fail] : replies) fail(Error{Errc::stopped, 0, "actor ended"});
  for (const auto& watcher : watchers) watcher->signal(Down{id_, end_reason_});
  for (const auto& tell : tell_end) tell(end_reason_);
  if (const auto parent = std::exchange(parent_, {})) {
    parent->signal(ChildEnded{id_, end_reason_, escalated_});
  }
  const auto core = core_;
  core->retire(id_);  // may delete this
}

void Cell::refuse(Error reason) {
  close_mailbox();
  parent_ = {};
  std::vector<TellEnd> tell_end;
  {
    const std::scoped_lock lock(mutex_);
    ended_ = reason;
    has_ended_.notify_all();
    tell_end.swap(tell_end_);
  }
  for (const auto& tell : tell_end) tell(reason);
}

void Cell::on_ended(TellEnd tell) {
  std::optional<Error> reason;
  {
    const std::scoped_lock lock(mutex_);
    reason = ended_;
    if (!reason) tell_end_.push_back(std::move(tell));
  }
  if (reason) tell(*reason);
}

bool Cell::ended() const {
  const std::scoped_lock lock(mutex_);
  return ended_.has_value();
}

void Cell::wait_ended() const {
  std::unique_lock lock(mutex_);
  has_ended_.wait(lock, [&] { return ended_.has_value(); });
}

// ---- kinship, timers, replies
// -----------------------------------------------------------------------------

void Cell::launch(const CellPtr<Cell>& child) {
  if (phase_ != Phase::running) {
    child->refuse(Error{Errc::stopped, 0, "its parent is ending"});
  } else if (core_->launch(child, false)) {
    children_.emplace(child->id(), child);
  }
}

void Cell::watch(Cell& other) {
  if (children_.contains(other.id())) return;
  if (!watching_.emplace(other.id(), CellPtr<Cell>(&other)).second) return;
  if (auto reason = other.add_watcher(*this)) signal(Down{other.id(), std::move(*reason)});
}

void Cell::unwatch(Cell& other) {
  if (watching_.erase(other.id()) != 0) other.remove_watcher(*this);
}

std::optional<Error> Cell::add_watcher(Cell& watcher) {
  const std::scoped_lock lock(mutex_);
  if (ended_) return ended_;
  watchers_.emplace_back(&watcher);
  return std::nullopt;
}

void Cell::remove_watcher(const Cell& watcher) {
  CellPtr<Cell> removed;  // dropped after the lock
  const std::scoped_lock lock(mutex_);
  const auto found = std::find_if(watchers_.begin(), watchers_.end(),
                                  [&](const auto& entry) { return entry.get() == &watcher; });
  if (found == watchers_.end()) return;
  removed = std::move(*found);
  watchers_.erase(found);
}

TimerId Cell::add_timer(std::chrono::nanoseconds delay, std::unique_ptr<Posted> posted) {
  const auto timer = scheduler().schedule(
      delay, std::make_unique<PostTimer>(CellPtr<Cell>(this), std::move(posted)));
  if (!timer) throw Exception(Error{Errc::would_block, 0, "too many timers"});
  timers_.insert(*timer);
  return *timer;
}

bool Cell::cancel_timer(const TimerId& timer) {
  if (timers_.erase(timer) == 0) return false;
  scheduler().cancel(timer);
  return true;
}

std::uint64_t Cell::add_pending_reply(FailReply fail) {
  const std::scoped_lock lock(mutex_);
  pending_replies_.emplace(++last_reply_key_, std::move(fail));
  return last_reply_key_;
}

void Cell::remove_pending_reply(std::uint64_t key) {
  FailReply removed;  // dropped after the lock
  const std::scoped_lock lock(mutex_);
  const auto found = pending_replies_.find(key);
  if (found == pending_replies_.end()) return;
  removed = std::move(found->second);
  pending_replies_.erase(found);
}

}  // namespace troupe::detail
