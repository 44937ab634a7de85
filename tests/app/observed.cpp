#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include <troupe/troupe.hpp>

// A job with something to see, counted: observe_test runs it.

namespace troupe::test {
namespace {

constexpr std::uint64_t kCountedLength = 777;  ///< of the buffer of the fills that are counted

void fill(Device& device, int times) {
  const auto counted = device.alloc<double>(kCountedLength);
  for (int i = 0; i < times; ++i) device.fill(counted, static_cast<double>(i));
  (void)device.download(counted);
}

/// Steps with commits; the last rank's device host is killed in one of them.
void run(Runtime& runtime) {
  auto& device = runtime.device();
  auto& world = runtime.world();
  auto x = device.alloc<double>(1000);
  device.fill(x, 1.0);
  Checkpoint state(device);
  state.add("x", x);
  bool struck = false;
  world.run(state,
            [&](std::int64_t step) {
              if (step == 12 && world.rank() == world.size() - 1 && !std::exchange(struck, true))
                (void)device.inject(memory::FaultKind::kill);
              world.all_reduce(x, ReduceOp::max);
              return step < 30 ? Step::again : Step::done;
            },
            {.commit_every = 5});
}

/// In each of so many collectives all ranks have submitted theirs before this one does.
void come_late(Runtime& runtime, int late, int times) {
  auto& world = runtime.world();
  const auto x = runtime.device().alloc<double>(100);
  runtime.device().fill(x, 1.0);
  for (int i = 0; i < times; ++i) {
    if (world.rank() == late) world.barrier();
    auto reduced = world.all_reduce(x, ReduceOp::max);
    if (world.rank() != late) world.barrier();
    reduced.get();
  }
}

int act(Runtime& runtime) {
  const auto& config = runtime.config();
  fill(runtime.device(), static_cast<int>(config.integer("fills")));
  if (config.flag("run")) run(runtime);
  if (config.flag("ails") && runtime.world().rank() == 0) {
    for (int i = 0; i < 3; ++i)
      runtime.device().inject_health({0, HealthKind::memory, "some memory is bad", false, 94});
  }
  while (config.flag("ails") && runtime.world().health_events().empty())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  // Every rank is told all of it.
  if (config.flag("ails") && runtime.world().health_events().front().xid != 94) return kExitFailure;
  if (config.integer("late") >= 0)
    come_late(runtime, static_cast<int>(config.integer("late")), 150);
  while (config.flag("stay")) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return kExitSuccess;
}

}  // namespace
}  // namespace troupe::test

int main(int argc, char** argv) {
  using namespace troupe;
  // Ranks that share no folder.
  const char* const apart = std::getenv("OBSERVED_APART");
  const char* const rank = std::getenv("OMPI_COMM_WORLD_RANK");
  if (apart != nullptr && rank != nullptr) {
    const auto folder = std::filesystem::path(apart) / rank;
    std::filesystem::create_directories(folder);
    std::filesystem::current_path(folder);
  }
  const Program program{"troupe-observed",
                        "Does something to be seen.",
                        {{"fills", OptionType::integer, "0", "N", "commands to count", {}, "0"},
                         {"run", OptionType::flag, "off", "on|off", "a run with a fault"},
                         {"late", OptionType::integer, "-1", "RANK", "comes last to collectives"},
                         {"ails", OptionType::flag, "off", "on|off", "rank 0's GPU says so"},
                         {"stay", OptionType::flag, "off", "on|off", "does not end"}}};
  return run_program(argc, argv, program, test::act);
}
