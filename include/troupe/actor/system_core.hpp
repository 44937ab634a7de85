#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include <troupe/actor/cell.hpp>

namespace troupe {

/// How an actor system is made.
struct SystemOptions {
  std::size_t max_actors = 65536;  ///< living at the same time
  /// Told of every failure, in the failing actor's turn; must not throw. For logs and counters.
  std::function<void(const Failure&)> on_failure{};
  /// How long a shutdown lets actors work off what they were sent before they are stopped.
  std::chrono::nanoseconds drain_time = std::chrono::seconds(5);
};

namespace detail {

/// What all actors of a system share. Kept alive by every reference to any of them, so that a
/// reference can be used, and answers Errc::stopped, after its system is gone.
class SystemCore {
 public:
  enum class Phase : std::uint8_t { open, draining, closing };

  SystemCore(std::shared_ptr<Scheduler> scheduler, SystemOptions options)
      : scheduler_(std::move(scheduler)), options_(std::move(options)) {}

  [[nodiscard]] Scheduler& scheduler() const noexcept { return *scheduler_; }
  [[nodiscard]] const SystemOptions& options() const noexcept { return options_; }
  [[nodiscard]] ActorId next_id() noexcept { return ActorId(last_id_.fetch_add(1) + 1); }

  /// Whether messages and actors from outside the system are still welcome.
  [[nodiscard]] bool refuses_outside() const noexcept {
    return phase_.load(std::memory_order_relaxed) != Phase::open;
  }
  void enter(Phase phase);

  /// Lists a new actor as living and starts it. False, and it has ended, if the system is shutting
  /// down or full.
  bool launch(const CellPtr<Cell>& cell, bool is_root);
  /// Takes it off the list; it may be gone afterwards.
  void retire(ActorId id);

  [[nodiscard]] std::size_t living() const;
  [[nodiscard]] std::vector<CellPtr<Cell>> roots() const;

 private:
  Result<void> admit(const CellPtr<Cell>& cell, bool is_root);

  struct Entry {
    CellPtr<Cell> cell;
    bool is_root;
  };

  const std::shared_ptr<Scheduler> scheduler_;
  const SystemOptions options_;
  std::atomic<Phase> phase_{Phase::open};
  std::atomic<std::uint64_t> last_id_{0};
  mutable std::mutex mutex_;
  std::map<ActorId, Entry> cells_;
};

}  // namespace detail
}  // namespace troupe
