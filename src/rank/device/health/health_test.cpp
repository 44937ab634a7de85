#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "nvml_fake.hpp"
#include "rank/device/health/health_changes.hpp"
#include "rank/device/health/health_log.hpp"
#include "rank/device/health/health_watch.hpp"
#include "rank/device/health/xid.hpp"

namespace troupe::rank_process {
namespace {

using namespace std::chrono_literals;

TEST(Xid, SaysWhatItMeans) {
  for (const auto xid : {8, 13, 31, 43, 45}) {
    const auto event = event_of_xid(static_cast<std::uint64_t>(xid));
    EXPECT_EQ(event.kind, HealthKind::application) << xid << ": a program's own fault";
    EXPECT_FALSE(event.failing) << xid;
  }
  std::map<std::uint64_t, HealthKind> failing;
  for (std::uint64_t xid = 0; xid < 1000; ++xid) {
    const auto event = event_of_xid(xid);
    EXPECT_TRUE(event.text.starts_with("Xid " + std::to_string(xid))) << event.text;
    if (event.failing) failing[xid] = event.kind;
  }
  EXPECT_EQ(failing, (std::map<std::uint64_t, HealthKind>{{64, HealthKind::remapping},
                                                          {79, HealthKind::bus},
                                                          {95, HealthKind::memory},
                                                          {140, HealthKind::memory},
                                                          {157, HealthKind::remapping}}));
  EXPECT_EQ(event_of_xid(63).kind, HealthKind::remapping);
  EXPECT_EQ(event_of_xid(74).kind, HealthKind::nvlink);
  EXPECT_EQ(event_of_xid(119).kind, HealthKind::driver);
  EXPECT_EQ(event_of_xid(79).text, "Xid 79: the GPU has fallen off the bus");
  EXPECT_EQ(event_of_xid(999).kind, HealthKind::other);
  EXPECT_EQ(event_of_xid(999).text, "Xid 999");
}

std::vector<std::string> texts(const std::vector<HealthEvent>& events) {
  std::vector<std::string> all;
  for (const auto& event : events) all.push_back((event.failing ? "failing: " : "") + event.text);
  return all;
}
using Texts = std::vector<std::string>;

TEST(HealthChanges, AreToldOnceAndAgainWhenTheyComeBack) {
  HealthChanges changes;
  GpuHealth health;
  EXPECT_EQ(texts(changes.look(health, true)), Texts()) << "a driver that tells nothing";
  health = {.uncorrected_errors = 4,
            .remapping_pending = true,
            .recovery_action = "reset the GPU",
            .slowed_by = std::vector<std::string>{"power cap", "thermal"},
            .nvlinks = 16};
  EXPECT_EQ(texts(changes.look(health, true)),
            (Texts{"failing: a row of memory waits for a reset to be replaced",
                   "failing: the driver wants to reset the GPU", "slowed by: thermal"}));
  EXPECT_EQ(texts(changes.look(health, true)), Texts());
  health = {.uncorrected_errors = 5,
            .remapping_pending = false,
            .remapping_failed = true,
            .recovery_action = "none",
            .slowed_by = std::vector<std::string>{"power brake"},
            .nvlinks = 18};
  EXPECT_EQ(texts(changes.look(health, true)),
            (Texts{"failing: a row of memory could not be replaced", "slowed by: power brake",
                   "uncorrected errors of memory"}));
  health.nvlinks = 17, health.uncorrected_errors = 6, health.slowed_by->push_back("thermal");
  EXPECT_EQ(texts(changes.look(health, false)),
            (Texts{"slowed by: thermal", "failing: 17 of 18 NVLinks are up"}));
  EXPECT_EQ(texts(changes.look(health, false)), Texts());
  health.nvlinks = 18;
  EXPECT_EQ(texts(changes.look(health, false)), Texts());
  health.nvlinks = 17;
  EXPECT_EQ(texts(changes.look(health, false)), Texts{"failing: 17 of 18 NVLinks are up"});
}

TEST(HealthLog, CountsAllAndNamesEachOnce) {
  HealthLog log;
  EXPECT_TRUE(log.add(event_of_xid(63)));
  EXPECT_FALSE(log.add(event_of_xid(63)));
  EXPECT_TRUE(log.add(event_of_xid(64)));
  for (std::uint64_t xid = 1000; xid < 1200; ++xid) (void)log.add(event_of_xid(xid));
  EXPECT_FALSE(log.add(event_of_xid(79))) << "there is no room to name more";
  EXPECT_EQ(log.counts(),
            (std::map<HealthKind, std::uint64_t>{
                {HealthKind::remapping, 3}, {HealthKind::bus, 1}, {HealthKind::other, 200}}));
}

/// A watch of the fake GPU, and what it tells.
class HealthWatching : public ::testing::Test {
 protected:
  HealthWatching() {
    void* const module = ::dlopen(TROUPE_TEST_NVML, RTLD_NOW);
    fake_ = reinterpret_cast<test::FakeNvmlOf>(::dlsym(module, test::kFakeNvmlOf))();
  }
  ~HealthWatching() override {
    watch_.reset();
    EXPECT_EQ(fake_->listeners, 0) << "the set of events is left behind";
    fake_->has_events = true, fake_->lost = false;
    fake_->failed = 0, fake_->uncorrected = 1, fake_->processes = 0;
  }

  void watch(std::chrono::nanoseconds look_every, const char* library = TROUPE_TEST_NVML) {
    source_ = std::make_shared<const HealthSource>(library, Nvml::Gpu{"GPU-1"});
    watch_ = std::make_unique<HealthWatch>(source_, HealthWatch::Options{look_every},
                                           [this](HealthEvent event, unsigned processes) {
                                             const std::lock_guard lock(mutex_);
                                             told_.push_back(std::move(event));
                                             processes_.push_back(processes);
                                             changed_.notify_all();
                                           });
  }
  void set(const std::function<void()>& change) {
    const std::lock_guard lock(fake_->mutex);
    change();
  }
  /// Whether this is told before the deadline.
  bool hears(const std::string& text) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 60s, [&] {
      const auto all = texts(told_);
      return std::find(all.begin(), all.end(), text) != all.end();
    });
  }

  test::FakeNvml* fake_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<HealthEvent> told_;
  std::vector<unsigned> processes_;  ///< that were on the GPU, as was told with each
  std::shared_ptr<const HealthSource> source_;
  std::unique_ptr<HealthWatch> watch_;
};

TEST_F(HealthWatching, TellsOfEventsAndLooksAfterThem) {
  watch(1h);
  fake_->raise(8, 31);
  EXPECT_TRUE(hears("Xid 31: a page fault of GPU memory"));
  fake_->raise(1);
  EXPECT_TRUE(hears("a single-bit error of memory was corrected"));
  fake_->raise(2);
  EXPECT_TRUE(hears("a double-bit error of memory"));
  set([&] { fake_->failed = 1; });
  fake_->raise(8, 64);
  EXPECT_TRUE(hears("failing: Xid 64: a row of memory cannot be replaced"));
  EXPECT_TRUE(hears("failing: a row of memory could not be replaced")) << "the event is no look";
}

TEST_F(HealthWatching, CountsTheProcessesOnAGpuOfWhichAChannelWasReset) {
  set([&] { fake_->processes = 3; });
  watch(1h);
  fake_->raise(8, 31);
  fake_->raise(8, 43);
  EXPECT_TRUE(hears("Xid 43: a channel was reset after an error of a program"));
  const std::lock_guard lock(mutex_);
  EXPECT_EQ(processes_, (std::vector<unsigned>{0, 3}));
}

TEST_F(HealthWatching, LooksNowAndThen) {
  watch(1ms);
  set([&] { fake_->failed = 1; });
  EXPECT_TRUE(hears("failing: a row of memory could not be replaced"));
}

TEST_F(HealthWatching, LooksWhereThereAreNoEvents) {
  set([&] { fake_->has_events = false; });
  watch(1ms);
  set([&] { fake_->failed = 1; });
  EXPECT_TRUE(hears("failing: a row of memory could not be replaced"));
  // A look has been taken: from now on counters that rise are news.
  set([&] { ++fake_->uncorrected; });
  EXPECT_TRUE(hears("uncorrected errors of memory")) << "no event would tell of them";
}

TEST_F(HealthWatching, TellsOfAGpuThatIsGone) {
  watch(1h);
  set([&] { fake_->lost = true; });
  fake_->changed.notify_all();
  EXPECT_TRUE(hears("failing: the GPU has fallen off the bus"));
}

TEST_F(HealthWatching, SaysNothingWithoutNvml) {
  watch(1ms, "libtroupe-there-is-no-such-library.so.1");
  const auto health = source_->health();
  EXPECT_EQ(health.code(), Errc::unsupported);
  watch_.reset();
  EXPECT_EQ(texts(told_), Texts());
}

TEST_F(HealthWatching, AsksNobodyWhereThereIsNoGpu) {
  const HealthSource source(HealthSource::kNone, {});
  EXPECT_EQ(source.health().code(), Errc::unsupported);
}

TEST_F(HealthWatching, EndsInTheMiddleOfAWait) {
  watch(1h);
  fake_->raise(8, 13);
  EXPECT_TRUE(hears("Xid 13: an exception of the graphics engine"));
  const auto since = std::chrono::steady_clock::now();
  watch_.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - since, 30s) << "not by the next look, in an hour";
}

}  // namespace
}  // namespace troupe::rank_process
