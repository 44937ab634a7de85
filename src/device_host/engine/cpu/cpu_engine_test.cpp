#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "common/ipc/unique_fd.hpp"
#include "cpu_engine_rig.hpp"
#include "device_host/engine/library.hpp"

namespace troupe::host {
namespace {

using namespace std::chrono_literals;

// Memory

TEST(CpuEngineMemory, FillSetsElementsOfEverySize) {
  Rig rig;
  for (const DType dtype : {DType::u8, DType::bf16, DType::i32, DType::f64, DType::c128}) {
    memory::Fill fill{dtype, 37, {}, {}};
    for (std::size_t i = 0; i < 16; ++i) fill.pattern[i] = static_cast<std::uint8_t>(i + 1);
    fill.destination = rig.put(std::vector<std::uint8_t>(37 * size_of(dtype)));
    const auto behind = rig.put(std::vector<std::uint8_t>{0xee});
    ASSERT_TRUE(rig.execute(fill));
    const auto bytes = rig.get<std::uint8_t>(fill.destination);
    for (std::size_t i = 0; i < bytes.size(); ++i) ASSERT_EQ(bytes[i], i % size_of(dtype) + 1);
    EXPECT_EQ(rig.get<std::uint8_t>(behind)[0], 0xee);
  }
}

TEST(CpuEngineMemory, CopiesBetweenPinnedMemoryAndSlabs) {
  Rig rig;
  UniqueFd pinned(::memfd_create("pinned", MFD_CLOEXEC));
  constexpr std::uint64_t kBytes = 1 << 20;
  ASSERT_EQ(::ftruncate(pinned.get(), kBytes), 0);
  auto* base = rig.engine->memory().map_pinned(pinned.get(), kBytes).take();
  const auto region = kPinnedRegion | 1;
  rig.addresses.set(region, base, kBytes);
  for (std::size_t i = 0; i < kBytes; ++i) base[i] = static_cast<std::byte>(i * 7);
  const Operand up{.region = region, .offset = 0, .bytes = 5000},
      down{.region = region, .offset = 10000, .bytes = 5000};
  const auto device = rig.put(std::vector<std::uint8_t>(5000)),
             second = rig.put(std::vector<std::uint8_t>(5000));
  const auto queue = [&](const Operand& from, const Operand& to) {
    const memory::Copy copy{DType::u8, from, to};
    return rig.engine->run(copy, Call(copy.lane(), rig.addresses, {}));
  };
  ASSERT_TRUE(queue(up, device));
  const auto uploaded = rig.engine->mark(Lane::host_to_device).take();
  ASSERT_TRUE(rig.engine->wait(Lane::memory, uploaded));
  ASSERT_TRUE(queue(device, second));
  const auto copied = rig.engine->mark(Lane::memory).take();
  ASSERT_TRUE(rig.engine->wait(Lane::device_to_host, copied));
  ASSERT_TRUE(queue(second, down));
  ASSERT_TRUE(rig.engine->synchronize(Lane::device_to_host));
  EXPECT_EQ(std::memcmp(base, base + 10000, 5000), 0);
  rig.engine->memory().unmap_pinned(base, kBytes);
}

TEST(CpuEngineMemory, ASlabOutlivesItsEngine) {
  constexpr std::uint64_t kBytes = 4 << 20;
  UniqueFd fd;
  {
    auto engine = make_engine({}).take();
    auto slab = engine->memory().make_slab(kBytes).take();
    for (std::uint64_t i = 0; i < kBytes; i += 4096)
      slab.base[i] = static_cast<std::byte>(i / 4096);
    engine->memory().unmap_slab(slab.base, kBytes);
    fd = std::move(slab.fd);
  }
  auto engine = make_engine({}).take();
  auto* base = engine->memory().map_slab(fd.get(), kBytes).take();
  for (std::uint64_t i = 0; i < kBytes; i += 4096)
    ASSERT_EQ(base[i], static_cast<std::byte>(i / 4096));
  engine->memory().unmap_slab(base, kBytes);
}

TEST(CpuEngineMemory, TheLimitCountsAllSlabs) {
  constexpr std::uint64_t kPart = 2 << 20;
  auto engine = make_engine({.device = 0,
                             .memory_limit = 2 * kPart,
                             .threads = 1,
                             .interface = {},
                             .other_hosts = false})
                    .take();
  auto first = engine->memory().make_slab(kPart).take();
  auto second = engine->memory().make_slab(kPart).take();
  EXPECT_EQ(engine->memory().make_slab(kPart).code(), Errc::out_of_memory);
  engine->memory().unmap_slab(second.base, kPart);
  auto third = engine->memory().make_slab(kPart);
  ASSERT_TRUE(third.ok());
  engine->memory().unmap_slab(third->base, kPart);
  engine->memory().unmap_slab(first.base, kPart);
}

TEST(CpuEngineMemory, MoreThanThereIsIsRefused) {
  auto engine = make_engine({}).take();
  EXPECT_EQ(engine->memory().make_slab(std::uint64_t{1} << 50).code(), Errc::out_of_memory);
}

TEST(CpuEngineDescription, NamesItsLibrariesAndTellsOrdinalsApart) {
  auto first =
      make_engine(
          {.device = 0, .memory_limit = 0, .threads = 1, .interface = {}, .other_hosts = false})
          .take();
  auto second =
      make_engine(
          {.device = 1, .memory_limit = 0, .threads = 1, .interface = {}, .other_hosts = false})
          .take();
  const auto& description = first->description();
  EXPECT_EQ(description.engine, "cpu");
  EXPECT_FALSE(description.name.empty());
  EXPECT_GT(description.memory_bytes, 0u);
  EXPECT_TRUE(description.uuid.starts_with("CPU-"));
  EXPECT_NE(description.uuid, second->description().uuid);
  ASSERT_EQ(description.libraries.size(), 1u) << "Gloo; the others are not loaded";
  for (const auto& [name, version, file] : description.libraries) {
    EXPECT_FALSE(version.empty()) << name;
    EXPECT_FALSE(file.empty()) << name;
  }
  const auto devices = list_devices().take();
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_EQ(devices[0].uuid, description.uuid);
}

TEST(Modules, CarryOutWhatEachLaneHas) {
  for (const auto lane : {Lane::memory, Lane::host_to_device, Lane::device_to_host})
    EXPECT_EQ(library_of(lane), "memory");
  EXPECT_EQ(library_of(Lane::collective), "collective");
  EXPECT_EQ(library_of(library_lane("blas")), "blas");
}

TEST(Modules, AreFoundByNameAndMissedByName) {
  const auto installed = installed_libraries("cpu");
  EXPECT_EQ(std::count(installed.begin(), installed.end(), "blas"), 1);
  EXPECT_EQ(std::count(installed.begin(), installed.end(), "engine"), 0);
  EXPECT_TRUE(find_in_module("blas", "cpu", kMakeSymbol).ok());
  EXPECT_EQ(find_in_module("blas", "cpu", "nothing_of_the_kind").code(), Errc::library);
  const auto missing = find_in_module("astrology", "cpu", kMakeSymbol);
  EXPECT_EQ(missing.code(), Errc::unsupported);
  EXPECT_NE(missing.error().message.find("troupe-astrology-cpu.so"), std::string::npos);
}

// Lanes

/// Holds a lane up until opened; destroy after the engine or open first.
class Gate {
 public:
  static void pass(void* self) {
    auto* gate = static_cast<Gate*>(self);
    gate->entered_ = true;
    gate->entered_.notify_all();
    gate->open_.wait(false);
  }
  void wait_until_entered() { entered_.wait(false); }
  void open() {
    open_ = true;
    open_.notify_all();
  }

 private:
  std::atomic<bool> entered_ = false, open_ = false;
};

TEST(CpuEngineLanes, AMarkIsReachedOnlyAfterWhatStandsBeforeIt) {
  Gate gate;
  Rig rig;
  const auto x = rig.put(std::vector<float>{1});
  ASSERT_TRUE(rig.engine->call_when_reached(library_lane("blas"), Gate::pass, &gate));
  ASSERT_TRUE(rig.queue(blas::Scal{DType::f32, 1, 1, by_value<float>(2), x}));
  const auto mark = rig.engine->mark(library_lane("blas")).take();
  gate.wait_until_entered();
  EXPECT_FALSE(rig.engine->reached(mark).take());
  EXPECT_EQ(rig.get<float>(x)[0], 1);
  gate.open();
  ASSERT_TRUE(rig.engine->synchronize(library_lane("blas")));
  EXPECT_TRUE(rig.engine->reached(mark).take());
  EXPECT_EQ(rig.get<float>(x)[0], 2);
  rig.engine->release(mark);
}

TEST(CpuEngineLanes, ALaneWaitsForAMarkOfTheOtherWorkerAndOnlyThen) {
  Gate gate;
  Rig rig;
  connect_alone(*rig.engine);
  const auto x = rig.put(std::vector<float>{1}), y = rig.put(std::vector<float>{0}),
             z = rig.put(std::vector<float>{0});
  // blas: gate, x = 2x; collective waits: y = x; blas waits for that: z = y.
  ASSERT_TRUE(rig.engine->call_when_reached(library_lane("blas"), Gate::pass, &gate));
  ASSERT_TRUE(rig.queue(blas::Scal{DType::f32, 1, 1, by_value<float>(2), x}));
  const auto scaled = rig.engine->mark(library_lane("blas")).take();
  ASSERT_TRUE(rig.engine->wait(Lane::collective, scaled));
  rig.engine->release(scaled);  // while the lane still waits for it
  ASSERT_TRUE(rig.queue(collective::AllReduce{DType::f32, ReduceOp::sum, 0, 1, x, y}));
  const auto reduced = rig.engine->mark(Lane::collective).take();
  ASSERT_TRUE(rig.engine->wait(library_lane("blas"), reduced));
  ASSERT_TRUE(rig.queue(blas::Copy{DType::f32, 1, 1, 1, y, z}));
  std::this_thread::sleep_for(20ms);
  EXPECT_FALSE(rig.engine->reached(reduced).take());
  gate.open();
  ASSERT_TRUE(rig.engine->synchronize(library_lane("blas")));
  EXPECT_EQ(rig.get<float>(z)[0], 2);
  rig.engine->release(reduced);
}

TEST(CpuEngineLanes, CommunicationOverlapsComputation) {
  Gate gate;
  Rig rig;
  connect_alone(*rig.engine);
  const auto x = rig.put(std::vector<float>{3}), y = rig.put(std::vector<float>{0});
  ASSERT_TRUE(rig.engine->call_when_reached(library_lane("blas"), Gate::pass, &gate));
  ASSERT_TRUE(rig.execute(collective::AllReduce{DType::f32, ReduceOp::sum, 0, 1, x, y}));
  EXPECT_EQ(rig.get<float>(y)[0], 3);
  gate.open();
}

TEST(CpuEngineLanes, TheSignalComesForEveryArming) {
  Rig rig;
  const auto x = rig.put(std::vector<float>(64));
  for (int i = 0; i < 2000; ++i) {
    ASSERT_TRUE(rig.queue(blas::Scal{DType::f32, 64, 1, by_value<float>(2), x}));
    const auto mark = rig.engine->mark(library_lane("blas")).take();
    while (!rig.engine->reached(mark).take()) {
      rig.engine->arm();
      if (rig.engine->reached(mark).take()) break;
      ::pollfd polled{rig.engine->completion_fd(), POLLIN, 0};
      ASSERT_EQ(::poll(&polled, 1, 5000), 1) << "a wake-up was lost in round " << i;
      std::uint64_t count = 0;
      ASSERT_EQ(::read(polled.fd, &count, sizeof count), static_cast<::ssize_t>(sizeof count));
    }
    rig.engine->release(mark);
  }
}

TEST(CpuEngineLanes, NoSignalWithoutArming) {
  Rig rig;
  ASSERT_TRUE(rig.engine->synchronize(library_lane("blas")));
  ::pollfd polled{rig.engine->completion_fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&polled, 1, 0), 0);
}

TEST(CpuEngineLanes, AFullQueueSaysSoAndMarksStillFit) {
  Gate gate;
  Rig rig;
  const auto x = rig.put(std::vector<float>{1});
  ASSERT_TRUE(rig.engine->call_when_reached(library_lane("blas"), Gate::pass, &gate));
  gate.wait_until_entered();
  const blas::Scal scal{DType::f32, 1, 1, by_value<float>(1), x};
  std::size_t queued = 0;
  Result<void> last;
  while ((last = rig.queue(scal)).ok()) ASSERT_LE(++queued, 65536u);
  EXPECT_EQ(queued, 65536u);
  EXPECT_EQ(last.code(), Errc::would_block);
  const auto mark = rig.engine->mark(library_lane("blas")).take();
  gate.open();
  ASSERT_TRUE(rig.engine->synchronize(library_lane("blas")));
  EXPECT_TRUE(rig.engine->reached(mark).take());
  EXPECT_TRUE(rig.execute(scal).ok());
}

TEST(CpuEngineLanes, AnEngineWithQueuedWorkEnds) {
  Gate gate;
  {
    Rig rig;
    connect_alone(*rig.engine);
    const auto x = rig.put(std::vector<float>{1});
    ASSERT_TRUE(rig.engine->call_when_reached(library_lane("blas"), Gate::pass, &gate));
    const auto mark = rig.engine->mark(library_lane("blas")).take();
    ASSERT_TRUE(rig.engine->wait(Lane::collective, mark));
    ASSERT_TRUE(rig.queue(collective::AllReduce{DType::f32, ReduceOp::sum, 0, 1, x, x}));
    const auto reduced = rig.engine->mark(Lane::collective).take();
    ASSERT_TRUE(rig.engine->wait(library_lane("blas"), reduced));
    gate.open();
  }
}

TEST(CpuEngineLanes, StickyFaultsAreUnsupported) {
  Rig rig;
  EXPECT_EQ(rig.queue(memory::Fault{{}, memory::FaultKind::trap}).code(), Errc::unsupported);
}

}  // namespace
}  // namespace troupe::host
