#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <troupe/lib/function.hpp>
#include <troupe/lib/kernel.hpp>

#include "device_rig.hpp"

// Kernels of the program's in device hosts that die.

namespace troupe::test {
namespace {

namespace fs = std::filesystem;
using memory::FaultKind;

/// `slow` is at work for a good while, so that a kill behind it meets it.
constexpr auto kSource = R"(
__constant__ double step;
extern "C" __global__ void add(double* x) { x[threadIdx.x] += step; }
extern "C" __global__ void slow(const double* x, double* y, int additions) {
  volatile double value = x[threadIdx.x];
  for (int i = 0; i < additions; ++i) value = value + 0.0;
  y[threadIdx.x] = value + 1;
}
)";
constexpr int kLong = 200'000'000;

class Kernels : public ::testing::TestWithParam<const char*> {
 protected:
  DeviceRig rig{{"--standby", GetParam(), "--kernel-cache", "none"}};
  Device& device = rig.device();
  KernelModule module = device.compile(kSource, {.names = {"add", "slow"}}).get();
  GpuRef<double> step = [this] {
    const auto buffer = device.alloc<double>(1);
    device.fill(buffer, 3.0).get();
    return buffer;
  }();

  void SetUp() override {
    module.bind_symbol("step", step);
    // A kernel that is still being loaded when the fault comes was never in flight.
    const auto x = device.alloc<double>(1), y = device.alloc<double>(1);
    device.fill(x, 1.0);
    device.launch(module.kernel("slow"), {}, read(x), write(y), 0).get();
  }
};

TEST_P(Kernels, AreThereAfterARecoveryAndNotCompiledAgain) {
  const auto x = device.alloc<double>(2);
  device.fill(x, 1.0);
  const auto add = module.kernel("add");
  device.launch(add, {.block = 2}, update(x)).get();
  const auto compiled = rig.core().modules().builder().compiled();
  double expected = 4;
  for (int death = 0; death < 3; ++death) {
    const auto old = active_host();
    device.inject(FaultKind::kill);
    ASSERT_TRUE(eventually([&] { return replaced(old); }));
    EXPECT_TRUE(device.launch(add, {.block = 2}, update(x)).wait().ok());
    expected += 3;
    EXPECT_EQ(device.download(x), std::vector<double>(2, expected)) << "or its variable is lost";
  }
  EXPECT_EQ(rig.core().modules().builder().compiled(), compiled);
}

TEST_P(Kernels, InFlightRunAgainWhereTheyMay) {
  const Bystanders bystanders(device, 61);
  const auto x = device.alloc<double>(2), y = device.alloc<double>(2);
  device.fill(x, 1.0).get();
  const auto old = active_host();
  const auto launched = device.launch(module.kernel("slow"), {.block = 2, .repeatable = true},
                                      read(x), write(y), kLong);
  device.inject(FaultKind::kill);
  ASSERT_TRUE(launched.wait_for(kDeadline));
  ASSERT_TRUE(eventually([&] { return replaced(old); }));
  EXPECT_TRUE(launched.wait().ok()) << launched.wait().error().to_string();
  EXPECT_EQ(device.download(y), std::vector<double>(2, 2.0));
  EXPECT_EQ(bystanders.damage(), "");
}

TEST_P(Kernels, InFlightAreLostWithWhatTheyWriteWhereTheyMayNotRunAgain) {
  const Bystanders bystanders(device, 62);
  const auto x = device.alloc<double>(2);
  auto y = device.alloc<double>(2);
  device.fill(x, 1.0), device.fill(y, 0.0).get();
  const auto old = active_host();
  const auto slow = module.kernel("slow");
  const auto launched = device.launch(slow, {.block = 2}, read(x), write(y), kLong);
  device.inject(FaultKind::kill);
  ASSERT_TRUE(launched.wait_for(kDeadline));
  ASSERT_TRUE(eventually([&] { return replaced(old); }));
  EXPECT_EQ(launched.wait().code(), Errc::device_lost);
  EXPECT_TRUE(x.valid());
  EXPECT_FALSE(y.valid());
  const auto refused = device.launch(slow, {.block = 2}, read(y), write(x), kLong);
  EXPECT_EQ(refused.wait().code(), Errc::stale);
  y.renew();
  EXPECT_TRUE(device.launch(slow, {.block = 2}, read(x), write(y), kLong).wait().ok());
  EXPECT_EQ(device.download(y), std::vector<double>(2, 2.0));
  EXPECT_EQ(bystanders.damage(), "");
}

TEST_P(Kernels, AndFunctionsAreThereAfterARecovery) {
  const auto function =
      device.load_functions(on_cuda() ? TROUPE_TEST_FUNCTIONS_CUDA : TROUPE_TEST_FUNCTIONS_CPU)
          .function("increment");
  const auto x = device.alloc<double>(100);
  device.fill(x, 0.0);
  const auto increment = [&] { return device.call(function, update(x), 100LL); };
  EXPECT_TRUE(increment().wait().ok());
  const auto old = active_host();
  device.inject(FaultKind::kill);
  ASSERT_TRUE(eventually([&] { return replaced(old); }));
  EXPECT_TRUE(increment().wait().ok());
  EXPECT_EQ(device.download(x), std::vector<double>(100, 2.0));
}

/// Loses the device host that serves, and waits for the next one.
void lose_host(Device& device) {
  const auto old = active_host();
  device.inject(FaultKind::kill);
  ASSERT_TRUE(eventually([&] { return replaced(old); }));
}

TEST_P(Kernels, HaveVariablesOfTheirModuleOnAnyDeviceHost) {
  constexpr auto kShow = R"(
extern "C" __device__ int weight[2] = {1, 10};
extern "C" __global__ void show(int* x) { x[0] = weight[0], x[1] = weight[1]; }
extern "C" __global__ void set(int value) { weight[1] = value; }
)";
  const auto make = [&] { return device.compile(kShow, {.names = {"show", "set"}}).get(); };
  auto bound = make(), unbound = make();
  const auto pair = device.alloc<int>(2), one = device.alloc<int>(1);
  device.upload<int>(std::vector<int>{5, 50}, pair).get();
  device.upload<int>(std::vector<int>{7}, one).get();
  const auto shows = [&](const KernelModule& kernels) {
    const auto x = device.alloc<int>(2);
    device.launch(kernels.kernel("show"), {}, write(x));
    return device.download(x);
  };
  using Values = std::vector<int>;
  EXPECT_EQ(shows(unbound), (Values{1, 10}));
  bound.bind_symbol("weight", pair);
  EXPECT_EQ(shows(bound), (Values{5, 50}));
  EXPECT_EQ(shows(unbound), (Values{1, 10}));
  bound.bind_symbol("weight", one);
  EXPECT_EQ(shows(bound), (Values{7, 10})) << "the rest is as the source says";
  lose_host(device);
  EXPECT_EQ(shows(bound), (Values{7, 10}));
  EXPECT_EQ(shows(unbound), (Values{1, 10}));
  bound.bind_symbol("weight", pair);
  EXPECT_EQ(shows(bound), (Values{5, 50}));
  device.launch(unbound.kernel("set"), {}, 3).get();  // lost with its device host, and its own
  EXPECT_EQ(shows(unbound), (Values{1, 3}));
  EXPECT_EQ(shows(bound), (Values{5, 50}));
  EXPECT_EQ(shows(make()), (Values{1, 10}));
}

/// A folder with a copy of a library, which can be built anew.
class LibraryCopy {
 public:
  explicit LibraryCopy(const std::string& library) {
    char name[] = "/tmp/troupe-process-test-XXXXXX";
    folder_ = ::mkdtemp(name);
    fs::copy_file(library, path());
  }
  ~LibraryCopy() { fs::remove_all(folder_); }
  [[nodiscard]] std::string path() const { return folder_ / "libmine.so"; }
  [[nodiscard]] const fs::path& folder() const { return folder_; }
  void build_anew() const {
    fs::rename(path(), folder_ / "first.so");
    fs::copy_file(folder_ / "first.so", path());
    std::ofstream(path(), std::ios::app) << "built anew";
  }
  void restore() const { fs::rename(folder_ / "first.so", path()); }

 private:
  fs::path folder_;
};

/// True if the error is that the file has changed.
void expect_changed(const Result<void>& outcome, const std::string& file) {
  ASSERT_EQ(outcome.code(), Errc::invalid);
  EXPECT_NE(outcome.error().message.find(file + " has changed since this job began to use it"),
            std::string::npos)
      << outcome.error().message;
}

TEST_P(Kernels, AndFunctionsAreThoseThatTheJobBeganWith) {
  const LibraryCopy copy(on_cuda() ? TROUPE_TEST_FUNCTIONS_CUDA : TROUPE_TEST_FUNCTIONS_CPU);
  const auto before = fs::current_path();
  fs::current_path(copy.folder());
  const auto function = device.load_functions("./libmine.so").function("increment");
  fs::current_path(before);
  auto x = device.alloc<double>(100);
  device.fill(x, 0.0);
  const auto increment = [&] { return device.call(function, update(x), 100LL).wait(); };
  EXPECT_TRUE(increment().ok());
  copy.build_anew();
  EXPECT_TRUE(increment().ok()) << "what is loaded stays";
  lose_host(device);
  expect_changed(increment(), "libmine.so");
  (void)device.take_error();
  x.renew();
  device.fill(x, 2.0);
  const auto again = device.load_functions(copy.path()).function("increment");
  expect_changed(device.call(again, update(x), 100LL).wait(), copy.path());
  (void)device.take_error();
  copy.restore();
  x.renew();
  device.fill(x, 2.0);
  EXPECT_TRUE(increment().ok());
  EXPECT_EQ(device.download(x), std::vector<double>(100, 3.0));
}

TEST_P(Kernels, OfTheHostAreThoseThatTheJobBeganWith) {
  if (on_cuda()) GTEST_SKIP() << "they take the place of kernels on the cpu engine";
  const LibraryCopy copy(TROUPE_TEST_HOST_KERNELS);
  const auto load = [&] {
    return device.load(std::vector<std::byte>(64), {"warp_sums"}, copy.path()).get();
  };
  auto biased = load(), plain = load();
  const auto bias = device.alloc<float>(1);
  device.fill(bias, 100.0f);
  biased.bind_symbol("bias", bias);
  const auto sum = [&](const KernelModule& kernels) -> Result<float> {
    const auto x = device.alloc<float>(32), sums = device.alloc<float>(1);
    device.fill(x, 1.0f);
    const auto outcome =
        device.launch(kernels.kernel("warp_sums"), {.block = 32}, read(x), write(sums)).wait();
    if (!outcome.ok()) return outcome.error();
    return device.download(sums)[0];
  };
  EXPECT_EQ(sum(biased).take(), 132.0f);
  EXPECT_EQ(sum(plain).take(), 32.0f) << "each module has variables of its own";
  copy.build_anew();
  lose_host(device);
  const auto after = sum(plain);
  if (after.ok() && std::string_view(GetParam()) != "off") {
    EXPECT_EQ(*after, 32.0f) << "the standby has loaded it before it was built anew";
  } else {
    expect_changed(after.ok() ? Result<void>() : Result<void>(after.error()), copy.path());
  }
  (void)device.take_error();
  copy.restore();
  EXPECT_EQ(sum(plain).take(), 32.0f);
  EXPECT_EQ(sum(biased).take(), 132.0f);
}

TEST_P(Kernels, AModuleIsMadeWhileItsDeviceHostDies) {
  for (int round = 0; round < 3; ++round) {
    const auto old = active_host();
    const auto made = device.compile(
        "extern \"C\" __global__ void set(double* x) { x[0] = " + std::to_string(round) + "; }",
        {.names = {"set"}});
    device.inject(FaultKind::kill);
    ASSERT_TRUE(made.wait_for(kDeadline));
    ASSERT_TRUE(made.wait().ok()) << made.wait().error().to_string();
    ASSERT_TRUE(eventually([&] { return replaced(old); }));
    const auto x = device.alloc<double>(1);
    device.launch(made.wait()->kernel("set"), {}, write(x));
    EXPECT_EQ(device.download(x)[0], round);
  }
}

/// Whether a process of the cpu engine has an image of kernels loaded.
bool has_kernels(pid_t host) {
  std::ifstream maps("/proc/" + std::to_string(host) + "/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("memfd:troupe-kernels") != std::string::npos) return true;
  }
  return false;
}

/// Its module is loaded, and it does not run there: on zeros it would end the standby.
TEST(KernelsOfAStandby, AreLoadedAheadOfTimeAndNotRun) {
  DeviceRig rig({"--standby", "local"});
  auto& device = rig.device();
  ASSERT_TRUE(eventually([] { return hosts().size() == 2; }));
  const auto standby = hosts()[1].pid;
  const auto x = device.alloc<double>(1);
  device.fill(x, 1.0);
  const auto module = device
                          .compile(
                              "extern \"C\" __global__ void next(double* x) { if (x[0] == 0) "
                              "__trap(); x[0] += 1; }",
                              {.names = {"next"}})
                          .get();
  const auto next = module.kernel("next");
  for (int i = 0; i < 20; ++i) {
    device.launch(next, {.repeatable = true}, update(x)).get();
    std::this_thread::sleep_for(2ms);  // what recurs is told now and then
  }
  if (!on_cuda()) {
    EXPECT_TRUE(eventually([] {
      const auto all = hosts();
      return all.size() == 2 && has_kernels(all[0].pid) && has_kernels(all[1].pid);
    })) << "the standby does not load what is in use";
  }
  ASSERT_EQ(hosts().size(), 2u);
  EXPECT_EQ(hosts()[1].pid, standby) << "the standby has run the kernel";
  const auto old = active_host();
  device.inject(FaultKind::kill);
  ASSERT_TRUE(eventually([&] { return replaced(old); }));
  EXPECT_EQ(active_host(), standby);
  device.launch(next, {}, update(x));
  EXPECT_EQ(device.download(x)[0], 22.0);
}

/// CUDA writes which one it was to the standard error of the device host, and tells the program
/// only that there was one.
TEST(KernelAssertions, AreNamedByTheErrorOnTheCpuEngine) {
  if (on_cuda()) GTEST_SKIP() << "of the CPU engine";
  DeviceRig rig({"--standby", "off"});
  auto& device = rig.device();
  const auto x = device.alloc<double>(1);
  device.fill(x, -1.0).get();
  const auto old = active_host();
  const auto module = device
                          .compile(
                              "#include <assert.h>\n\n"
                              "__global__ void root(double* x) { assert(x[0] >= 0); }",
                              {.names = {"root"}, .file = "root.cu"})
                          .get();
  const auto launched = device.launch(module.kernel("root"), {}, update(x));
  ASSERT_TRUE(launched.wait_for(kDeadline));
  const auto message = launched.wait().error().to_string();
  EXPECT_EQ(launched.wait().code(), Errc::device_lost);
  EXPECT_NE(message.find("root.cu:3: "), std::string::npos) << message;
  EXPECT_NE(message.find("Assertion `x[0] >= 0' failed"), std::string::npos) << message;
  EXPECT_TRUE(replaced(old));
}

TEST(FunctionsThatFork, LeaveNoProcessBehind) {
  if (on_cuda()) GTEST_SKIP() << "the function is one of the host's";
  pid_t last = 0;
  {
    DeviceRig rig({"--standby", "off"});
    auto& device = rig.device();
    const auto fork = device.load_functions(TROUPE_TEST_FUNCTIONS_CPU).function("leave_child");
    const auto child = device.alloc<std::int64_t>(1);
    const auto left = [&] {
      device.call(fork, write(child)).get();
      return static_cast<pid_t>(device.download(child)[0]);
    };
    const auto first = left();
    ASSERT_TRUE(is_alive(first));
    const auto old = active_host();
    ASSERT_TRUE(kill_active());
    EXPECT_TRUE(eventually([&] { return !is_alive(first); })) << "it outlives its device host";
    ASSERT_TRUE(replaced(old));
    last = left();
    EXPECT_TRUE(is_alive(last));
  }
  EXPECT_TRUE(eventually([&] { return !is_alive(last); })) << "it outlives the job";
}

INSTANTIATE_TEST_SUITE_P(Standby, Kernels, ::testing::Values("off", "local"),
                         [](const auto& one) { return std::string(one.param); });

TEST(KernelsAtTheEnd, ADeviceThatEndsLetsNoCompilerWait) {
  Future<KernelModule> made;
  {
    DeviceRig rig({"--standby", "off", "--kernel-cache", "none"});
    made = rig.device().compile(kSource, {.names = {"add"}});
  }
  ASSERT_TRUE(made.wait_for(kDeadline));
  if (!made.wait().ok()) {
    EXPECT_EQ(made.wait().code(), Errc::stopped);
  }
}

}  // namespace
}  // namespace troupe::test
