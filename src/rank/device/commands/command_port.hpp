#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <troupe/lib/submit.hpp>
#include <troupe/spin.hpp>

#include "rank/device/commands/buffers.hpp"
#include "rank/device/commands/command_ring.hpp"
#include "rank/device/commands/gate.hpp"
#include "rank/device/commands/incarnations.hpp"
#include "rank/device/commands/outcomes.hpp"
#include "rank/device/commands/port_shared.hpp"
#include "rank/device/commands/replies.hpp"
#include "rank/device/commands/run_guard.hpp"
#include "rank/device/commands/transfers.hpp"

namespace troupe::rank_process {

/// Where a rank's program becomes commands: validates, numbers, pushes into the ring of the current
/// device host, and resolves futures as replies come back.
///
/// Any thread may submit; the order of the calls is the order of the program. Any thread may drain
/// replies: those that wait for a future do, and the watcher when nobody waits. PortShared has the
/// locks.
class CommandPort final : public detail::Submitter, public detail::Progress {
 public:
  using Options = PortShared::Options;
  explicit CommandPort(const Options& options) : shared_(options) {}

  // Submitter
  Future<void> submit(const detail::CommandView& command) override {
    return submit(command, Patience::wait, false);
  }
  Future<void> refuse(Error error) override {
    return Future<void>(Result<void>(outcomes_.refused(std::move(error))));
  }
  Result<detail::ResultCell> result_cell(std::size_t bytes) override {
    return make_cell_ ? make_cell_(bytes) : detail::Submitter::result_cell(bytes);
  }
  /// Where result cells come from. Before the first submission.
  void set_cells(std::function<Result<detail::ResultCell>(std::size_t bytes)> make) {
    make_cell_ = std::move(make);
  }
  [[nodiscard]] std::string name_of(const Operand& range) const override {
    return buffers_.name_of(range);
  }
  /// As submit, but answers would_block instead of waiting while the ring or the ticket table is
  /// full.
  Future<void> try_submit(const detail::CommandView& command) {
    return submit(command, Patience::give_up, false);
  }

  // Progress
  void poll() noexcept override { replies_.poll(); }
  void before_sleep() noexcept override { replies_.before_sleep(); }
  [[nodiscard]] std::chrono::nanoseconds spin_time() const noexcept override {
    return shared_.options.spin;
  }

  /// Progress of futures that the thread resolves which attends to the replies (Replies::attend): a
  /// waiter looks at the replies itself only while there is no such thread.
  class Beside final : public detail::Progress {
   public:
    explicit Beside(CommandPort& port) : port_(&port) {}
    void poll() noexcept override {
      port_->replies_.attended() ? cpu_relax() : port_->replies_.poll();
    }
    void before_sleep() noexcept override { port_->replies_.before_sleep(); }
    [[nodiscard]] std::chrono::nanoseconds spin_time() const noexcept override {
      return port_->spin_time();
    }

   private:
    CommandPort* port_;
  };
  [[nodiscard]] detail::Progress& beside() noexcept { return beside_; }

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

  // Its parts.
  [[nodiscard]] Buffers& buffers() noexcept { return buffers_; }
  [[nodiscard]] const Buffers& buffers() const noexcept { return buffers_; }
  [[nodiscard]] Transfers& transfers() noexcept { return transfers_; }
  [[nodiscard]] Gate& gate() noexcept { return gate_; }
  [[nodiscard]] RunGuard& run_guard() noexcept { return run_guard_; }
  [[nodiscard]] Outcomes& outcomes() noexcept { return outcomes_; }
  [[nodiscard]] Replies& replies() noexcept { return replies_; }
  [[nodiscard]] Incarnations& hosts() noexcept { return hosts_; }

  /// The unanswered commands that name bytes of a range of pinned memory.
  [[nodiscard]] std::vector<std::uint64_t> users_of(const Operand& pinned) const {
    const std::lock_guard lock(shared_.submissions);
    return ring_.users_of(pinned);
  }
  /// True if a command with a tail of so many operands, of so many bytes in all, can be submitted.
  [[nodiscard]] bool takes(std::size_t tail, std::size_t bytes) const {
    const std::lock_guard lock(shared_.submissions);
    return ring_.takes(tail, bytes);
  }
  [[nodiscard]] bool pending(std::uint64_t ticket) const noexcept {
    return shared_.tickets.pending(ticket);
  }
  [[nodiscard]] std::uint64_t submitted() const noexcept { return shared_.tickets.submitted(); }
  [[nodiscard]] std::uint64_t retired() const noexcept { return shared_.tickets.retired(); }
  /// The reply ring is corrupt, or the command ring's head is: the host must be replaced.
  [[nodiscard]] bool corrupt() const noexcept {
    return shared_.corrupt.load(std::memory_order_acquire);
  }

 private:
  /// What to do if the command cannot be pushed at once.
  enum class Patience { wait, give_up };
  Future<void> submit(const detail::CommandView& command, Patience patience, bool delivers);
  /// Whether the command may be pushed at all. With the lock of the submissions.
  Result<void> admit(const detail::CommandView& command, bool delivers) const;

  PortShared shared_;
  Gate gate_{shared_};
  RunGuard run_guard_{shared_};
  Buffers buffers_{shared_};
  Transfers transfers_{shared_, gate_};
  Outcomes outcomes_{shared_, *this};
  CommandRing ring_{shared_, *this};
  Replies replies_{shared_};
  Incarnations hosts_{shared_, gate_, ring_, replies_};
  Deliveries deliveries_{*this, 0};
  Beside beside_{*this};
  std::function<Result<detail::ResultCell>(std::size_t)> make_cell_;
};

}  // namespace troupe::rank_process
