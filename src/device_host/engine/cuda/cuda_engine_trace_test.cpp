// What the CUDA engine tells of the GPU's work.

#include <map>
#include <mutex>

#include <troupe/clock.hpp>

#include "cuda_engine_rig.hpp"
#include "device_host/engine/tracing.hpp"

namespace troupe::host {
namespace {

TEST_F(CudaEngine, TracesWhatTheGpuDoesForEachCommand) {
  struct Told {
    std::int64_t begin, end;
    std::string name;
  };
  std::mutex mutex;
  std::multimap<std::uint64_t, Told> told;
  auto tracing = make_tracing([&](std::uint64_t ticket, std::int64_t begin, std::int64_t end,
                                  std::uint32_t, std::string_view name) {
    const std::lock_guard lock(mutex);
    told.emplace(ticket, Told{begin, end, std::string(name)});
  });
  if (tracing == nullptr) GTEST_SKIP() << "no CUPTI here";
  constexpr std::int64_t kLength = 1 << 20;
  const auto x = space(kLength * sizeof(double)), y = space(kLength * sizeof(double));
  const auto before = SteadyClock::time();
  {
    const TracedCommand traced(tracing.get(), 41, "memory.fill");
    queue(memory::Fill{DType::f64, kLength, {}, x}).take();
  }
  {
    const TracedCommand traced(tracing.get(), 42, "memory.copy");
    queue(memory::Copy{DType::f64, x, y}).take();
  }
  engine_->synchronize(Lane::memory).take();
  queue(memory::Fill{DType::f64, kLength, {}, x}).take();  // of no command
  {
    const TracedCommand traced(tracing.get(), 43, "vector.axpby");
    queue(vectors::Axpby{DType::f64, kLength, Scalar::of(1.0), Scalar::of(1.0), x, y}).take();
  }
  engine_->synchronize(Lane::memory).take();
  engine_->synchronize(library_lane("vector")).take();
  const auto after = SteadyClock::time();
  tracing.reset();  // what is not told by now never is
  for (const std::uint64_t ticket : {41, 42, 43}) EXPECT_GE(told.count(ticket), 1u) << ticket;
  EXPECT_EQ(told.count(0), 0u);
  // CUPTI knows the GPU's clock to some microseconds.
  constexpr std::chrono::nanoseconds kClocks = std::chrono::milliseconds(1);
  for (const auto& [ticket, one] : told) {
    EXPECT_TRUE(ticket >= 41 && ticket <= 43) << ticket;
    EXPECT_FALSE(one.name.empty());
    EXPECT_LE(one.begin, one.end);
    EXPECT_GE(one.begin, (before - kClocks).count());
    EXPECT_LE(one.end, (after + kClocks).count());
  }
}

}  // namespace
}  // namespace troupe::host
