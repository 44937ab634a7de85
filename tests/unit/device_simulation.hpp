#pragma once

#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "rank/device/host/device_protocol.hpp"
#include "rank/protocol/phase.hpp"

/// A seeded device in one thread: the real DeviceProtocol, simulated processes and, unless it is
/// alone, a simulated world that gives orders. What must hold at every moment is checked at every
/// moment.
///
/// Model: a process starts, answers and ends after random delays. It may die, lose its context (and
/// say so) or hang in any state, never become ready, and leave an order unanswered; a promotion is
/// answered by whoever is well. What it said before may arrive after
/// it was given up. The world is what one rank sees of WorldSupervisor and WorldFollower: the
/// phases in order, a new round after faults here or elsewhere and after deadlines, a standby
/// world, spectators that come back.
namespace troupe::rank_process {

using Micros = std::chrono::microseconds;

class DeviceSimulation final : private DeviceActions {
 public:
  struct Options {
    std::uint32_t seed = 1;
    DeviceProtocol::Options device{};
    bool world = true;          ///< else the device is alone
    bool standby_world = true;  ///< standbys form communicators ahead of time
    bool shrink = false;        ///< the world goes on without the device, which is revived
    bool trace = false;
    int start_fails_percent = 0, never_answers_percent = 0, refuses_percent = 0;
  };
  enum class Ill : std::uint8_t { dies, loses_context, hangs, fails_for_good };

  explicit DeviceSimulation(const Options& options);
  ~DeviceSimulation() override;

  // What goes wrong. Times from now.
  void strike_at(Micros when, Ill how);
  /// The active host, or else its successor.
  void strike_active_at(Micros when, Ill how);
  /// The next host that comes into this state, some time later.
  void strike_in(HostState state, Ill how) { struck_.emplace_back(state, how); }
  void break_communicator_at(Micros when);
  void delay_operation_at(Micros when);
  /// Another rank's fault: the world begins a new round.
  void fault_elsewhere_at(Micros when);
  /// The device is given up, whatever its hosts are at, because its GPU says that it is failing.
  void leave_at(Micros when);
  /// From now on processes start and answer.
  void behave();
  /// A run begins or ends, or has a commit more.
  void progress(bool in_run) { device_.progress(in_run); }

  /// Lets time pass until `until` holds; false if it did not come to that within bounds, or broke a
  /// rule.
  bool run(const std::function<bool()>& until);
  /// The device serves, and the world is active.
  [[nodiscard]] bool settled() const;
  /// The device was given up, and that is the end of the run.
  [[nodiscard]] bool ended() const { return stopped_; }
  void shut_down();

  [[nodiscard]] TimePoint now() const { return now_; }
  [[nodiscard]] const DeviceProtocol& device() const { return device_; }
  [[nodiscard]] int hosts_started() const { return static_cast<int>(hosts_.size()); }
  [[nodiscard]] int revivals() const { return revivals_; }
  [[nodiscard]] int promotions() const { return promotions_; }  ///< of standby worlds
  [[nodiscard]] int exhausted() const { return exhausted_; }
  /// Hosts that were succeeded while they lived.
  [[nodiscard]] int outlived() const { return outlived_; }
  [[nodiscard]] std::string where() const;
  /// All that were seen, while something could still go wrong.
  [[nodiscard]] const std::set<HostState>& host_states() const { return host_states_; }
  [[nodiscard]] const std::set<DeviceState>& device_states() const { return device_states_; }

 private:
  using Order = DeviceDone::Order;

  /// What a process is, whatever the protocol takes it for.
  struct Host {
    Start as{};
    bool up = false;      ///< it says that it is ready
    bool well = true;     ///< else it does and answers nothing
    bool exited = false;  ///< can be reaped
    bool reaped = false;
    bool memory = false;   ///< was given it
    bool halted = false;   ///< likewise
    bool drained = false;  ///< by quiesce, until it is resumed
    bool handed_over = false;
    bool still = false;  ///< lost its context: it lives, and writes nothing any more
    bool mourned = false;
    std::uint32_t formation = 0;  ///< whose communicator it has
  };
  struct Event {
    TimePoint at;
    std::uint64_t order;
    std::function<void()> run;
    friend bool operator>(const Event& a, const Event& b) {
      return std::pair(a.at, a.order) > std::pair(b.at, b.order);
    }
  };

  // DeviceActions
  Result<void> start(HostId host, Start as) override;
  void halt(HostId host) override;
  Result<void> carry_out(HostId host, const DeviceOrder& order) override;
  void resume(HostId host) override;
  void promote(HostId host) override;
  void serves(HostId host) override;
  void settle() override;
  void hand_over(HostId old, HostId next) override;
  void mourn(HostId host, const DeviceFault& fault) override;
  void kill(HostId host) override;
  void bury(HostId old, HostId next, const DeviceFault& fault) override;
  void outlive(HostId old, HostId next, const DeviceFault& fault) override;
  void drop_standby(HostId host, const Error& lost) override;
  void drop_successor(HostId host, const Error& lost) override;
  void drop(HostId host) override;
  void dismiss(HostId host) override;
  void give_up(const Error& error) override;
  void begin_again(HostId host) override;
  void disturbed(const std::string& what) override;
  void all_is_well() override { disturbed_ = false; }
  void report(DeviceEvent event) override;

  // Processes
  void strike(HostId host, Ill how);
  void exits(HostId host);
  /// Unless it is ill by then.
  void answer(HostId host, std::uint32_t limit_us, std::function<void()> then);
  [[nodiscard]] Host& host(HostId id);
  void reap(HostId id);

  // The world
  void order(Order what, std::uint32_t formation = 0);
  void enter(Phase phase);
  void begin_round();
  void hears(const DeviceEvent& event);
  void hears_done(const DeviceDone& done);
  void goes_active();

  void after(std::chrono::nanoseconds delay, std::function<void()> run);
  Micros some_time(std::uint32_t limit_us) { return Micros(1 + random_() % limit_us); }
  bool chance(int percent) { return static_cast<int>(random_() % 100) < percent; }
  void look();
  void check();
  void violation(const std::string& what);
  void trace(const std::string& what) const;

  Options options_;
  std::mt19937 random_;
  TimePoint now_{};
  std::uint64_t sequence_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  DeviceProtocol device_;
  std::map<HostId, Host> hosts_;
  std::vector<std::pair<HostState, Ill>> struck_;
  std::map<HostId, HostState> last_;  ///< by host, as it was after the event before
  HostId commands_ = 0;               ///< the host whose ring has them
  bool disturbed_ = false, broken_ = false, stopped_ = false, shut_ = false;
  std::set<HostState> host_states_;
  std::set<DeviceState> device_states_;

  Phase phase_ = Phase::active;
  bool begun_ = false, spectator_ = false;
  std::uint32_t round_ = 0;
  TimePoint phase_since_{}, heard_at_{}, revived_at_{};
  std::set<std::pair<Order, std::uint32_t>> given_, answered_;  ///< by round, or formation
  std::uint32_t formation_ = 0, formed_ = 0, promoted_ = 0;     ///< of the standby world
  int revivals_ = 0, promotions_ = 0, exhausted_ = 0, outlived_ = 0;
};

}  // namespace troupe::rank_process
