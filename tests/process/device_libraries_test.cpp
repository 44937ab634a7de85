#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <troupe/lib/solver.hpp>
#include <troupe/lib/vector.hpp>

#include "common/wire/tuning_mark.hpp"
#include "device_rig.hpp"
#include "rank/device/host/tuning_file.hpp"

// The actors of libraries, in real device hosts: what they cost, how they fail, how they come
// through the death of their process.

namespace troupe::test {
namespace {

using memory::FaultKind;

/// Whether the process has the module of a library loaded.
bool has_loaded(pid_t host, const std::string& library) {
  std::ifstream maps("/proc/" + std::to_string(host) + "/maps");
  const auto module = "troupe-" + library + "-" + engine() + ".so";
  for (std::string line; std::getline(maps, line);) {
    if (line.ends_with(module)) return true;
  }
  return false;
}

/// A positive definite matrix of order 2.
const std::vector<double> kMatrix{4, 2, -7, 5};

TEST(Libraries, CostNothingUntilTheyAreUsedAndThenTheStandbyHasThemToo) {
  DeviceRig rig({"--standby", "local"});
  auto& device = rig.device();
  const auto x = device.alloc<double>(4), y = device.alloc<double>(4);
  device.fill(x, 2.0), device.fill(y, 3.0);
  ASSERT_TRUE(eventually([] { return hosts().size() == 2; }));
  EXPECT_EQ(device.download(x), std::vector<double>(4, 2.0));
  for (const auto& host : hosts()) {
    for (const auto* library : {"blas", "vector", "sparse", "rng", "solver"})
      EXPECT_FALSE(has_loaded(host.pid, library)) << library;
  }
  device.vector().axpby(1.0, x, 1.0, y).get();
  EXPECT_TRUE(eventually([] {
    const auto all = hosts();
    return all.size() == 2 && has_loaded(all[0].pid, "vector") && has_loaded(all[1].pid, "vector");
  })) << "the standby does not open what is in use";
  for (const auto& host : hosts()) EXPECT_FALSE(has_loaded(host.pid, "blas"));
  const auto old = active_host();
  device.inject(FaultKind::kill);
  ASSERT_TRUE(eventually([&] { return replaced(old); }));
  EXPECT_TRUE(device.vector().axpby(1.0, x, 1.0, y).wait().ok());
  EXPECT_EQ(device.download(y), std::vector<double>(4, 7.0));
  EXPECT_TRUE(eventually([] {
    const auto all = hosts();
    return all.size() == 2 && has_loaded(all[1].pid, "vector");
  })) << "nor does the next one";
}

TEST(Libraries, AFailedCallCostsItsCommandAlone) {
  DeviceRig rig;
  auto& device = rig.device();
  const Bystanders bystanders(device, 41);
  const auto x = device.alloc<double>(4), y = device.alloc<double>(4), z = device.alloc<double>(4),
             w = device.alloc<double>(4);
  device.fill(x, 2.0), device.fill(y, 3.0), device.fill(z, 4.0), device.fill(w, 3.0);
  device.blas().axpy(1.0, x, w).get();
  const auto host = active_host();
  device.inject_library_fault("blas");
  const auto failed = device.blas().axpy(1.0, x, w);
  const auto neighbour = device.vector().axpby(1.0, x, 1.0, z);
  const auto next = device.blas().axpy(2.0, x, y);
  EXPECT_EQ(failed.wait().code(), Errc::library);
  EXPECT_EQ(device.blas().scal(2.0, w).wait().code(), Errc::stale) << "it may be half written";
  EXPECT_TRUE(neighbour.wait().ok());
  EXPECT_TRUE(next.wait().ok()) << "the library was to be opened anew";
  EXPECT_EQ(device.take_error().code(), Errc::library);
  EXPECT_EQ(device.download(x), std::vector<double>(4, 2.0)) << "it was only read";
  EXPECT_EQ(device.download(y), std::vector<double>(4, 7.0));
  EXPECT_EQ(device.download(z), std::vector<double>(4, 6.0));
  EXPECT_EQ(active_host(), host);
  EXPECT_EQ(bystanders.damage(), "");
}

/// A library gets what was measured each time that it is opened; what it cannot use it leaves
/// alone.
TEST(Libraries, ResultsOfMeasurementsThatAreOfNoUse) {
  std::string file = ::testing::TempDir() + "troupe-tuning-XXXXXX";
  ASSERT_GE(::close(::mkstemp(file.data())), 0);
  std::filesystem::remove(file);
  std::vector<std::byte> plan(400, std::byte{7});
  std::memcpy(plan.data(), wire::kTuningMark.data(), wire::kTuningMark.size());
  rank_process::TuningFile(file).add({{"blas", plan}, {"no-library", plan}});
  {
    DeviceRig rig({"--tuning-cache", file});
    auto& device = rig.device();
    const auto x = device.alloc<double>(4), y = device.alloc<double>(4);
    device.fill(x, 2.0), device.fill(y, 3.0);
    device.blas().axpy(1.0, x, y).get();
    const auto host = active_host();
    device.inject_library_fault("blas");
    EXPECT_EQ(device.blas().dot(x, x, y.slice(0, 1)).wait().code(), Errc::library);
    EXPECT_EQ(device.take_error().code(), Errc::library);
    device.blas().scal(3.0, x).get();
    EXPECT_EQ(device.download(x), std::vector<double>(4, 6.0));
    EXPECT_EQ(active_host(), host);
  }
  EXPECT_EQ(rank_process::TuningFile(file).load().size(), 2u) << "they may be of use elsewhere";
  std::filesystem::remove(file), std::filesystem::remove(file + ".lock");
}

TEST(Libraries, OneThatKeepsFailingIsGivenUpAndTheOthersGoOn) {
  DeviceRig rig;
  auto& device = rig.device();
  const auto x = device.alloc<double>(4), y = device.alloc<double>(4);
  device.fill(x, 2.0), device.fill(y, 3.0);
  for (int failure = 0; failure < 4; ++failure) {
    const auto spoilt = device.alloc<double>(4);
    device.fill(spoilt, 2.0);
    device.inject_library_fault("blas");
    EXPECT_EQ(device.blas().scal(2.0, spoilt).wait().code(), Errc::library);
  }
  const auto given_up = device.blas().scal(2.0, x).wait();
  EXPECT_EQ(given_up.code(), Errc::library);
  EXPECT_NE(given_up.error().message.find("blas has failed more than 3 times in 60 s"),
            std::string::npos)
      << given_up.error().message;
  EXPECT_TRUE(device.vector().axpby(1.0, x, 1.0, y).wait().ok());
  EXPECT_EQ(device.download(y), std::vector<double>(4, 5.0));
  EXPECT_EQ(device.inject_library_fault("alchemy").wait().code(), Errc::invalid);
}

TEST(Libraries, PreparingReadsAndWritesNothing) {
  DeviceRig rig;
  auto& device = rig.device();
  const auto x = device.alloc<double>(4), y = device.alloc<double>(4), z = device.alloc<double>(8);
  device.fill(x, 2.0), device.fill(y, 3.0);
  const auto ahead = device.prepare();
  EXPECT_TRUE(vectors::on(ahead).axpby(1.0, x, 1.0, y).wait().ok());
  EXPECT_TRUE(has_loaded(active_host(), "vector"));
  EXPECT_EQ(device.download(y), std::vector<double>(4, 3.0));
  EXPECT_EQ(*solver::on(ahead).potrf(blas::Uplo::lower, MatrixRef(x, 2, 2)).wait(), 0);
  EXPECT_EQ(device.download(x), std::vector<double>(4, 2.0));
  EXPECT_EQ(vectors::on(ahead).axpby(1.0, x, 1.0, z).wait().code(), Errc::invalid);
  (void)device.take_error();
}

/// Whether the process has a file mapped.
bool has_mapped(pid_t host, const std::string& file) {
  std::ifstream maps("/proc/" + std::to_string(host) + "/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.ends_with(" " + file)) return true;
  }
  return false;
}

TEST(Libraries, TheDeviceTellsWhichFilesAndVersionsItHasLoaded) {
  DeviceRig rig;
  auto& device = rig.device();
  const auto x = device.alloc<double>(4), y = device.alloc<double>(4);
  device.fill(x, 2.0), device.fill(y, 3.0);
  auto all = device.libraries();
  ASSERT_EQ(all.size(), 1u) << "nothing but the engine has been used";
  EXPECT_EQ(all[0].name, "engine");
  EXPECT_EQ(all[0].stands_on, device.info().libraries);
  device.vector().axpby(1.0, x, 1.0, y);
  device.blas().axpy(1.0, x, y).get();
  all = device.libraries();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[1].name, "blas");
  ASSERT_EQ(all[1].stands_on.size(), 1u);
  EXPECT_EQ(all[1].stands_on[0].name, on_cuda() ? "cuBLAS" : "OpenBLAS");
  EXPECT_EQ(all[2], (OpenedLibrary{"vector", {}}));
  for (const auto& library : all) {
    for (const auto& [name, version, file] : library.stands_on) {
      EXPECT_FALSE(version.empty()) << name;
      EXPECT_TRUE(has_mapped(active_host(), file)) << name << ": " << file;
    }
  }
  const auto old = active_host();
  device.inject(FaultKind::kill);
  ASSERT_TRUE(eventually([&] { return replaced(old); }));
  EXPECT_EQ(device.libraries(), all) << "what successors open is the same";
  EXPECT_TRUE(device.blas().axpy(1.0, x, y).wait().ok());
  EXPECT_EQ(device.libraries(), all);
}

TEST(Libraries, TheDeviceTellsWhereItsMemoryHasGone) {
  DeviceRig rig;
  auto& device = rig.device();
  const auto x = device.alloc<double>(4);
  const auto all = device.memory_use();
  ASSERT_TRUE(all.ok()) << all.error().to_string();
  const auto of = [&](const std::string& cause) {
    const auto found =
        std::find_if(all->begin(), all->end(), [&](const auto& use) { return use.cause == cause; });
    return found == all->end() ? 0 : found->bytes;
  };
  EXPECT_GE(of("slabs"), device.bytes_held());
  EXPECT_GT(of("free"), 0u);
  if (on_cuda()) {
    EXPECT_GT(of("context"), 1u << 20);
  }
}

TEST(Libraries, PreparingOutlivesItsDeviceHost) {
  for (int round = 0; round < 4; ++round) {
    DeviceRig rig({"--standby", round % 2 == 0 ? "local" : "off"});
    auto& device = rig.device();
    const Bystanders bystanders(device, 43);
    const auto a = device.alloc<double>(4);
    device.upload<double>(kMatrix, a).get();
    const auto old = active_host();
    if (round < 2) device.inject(FaultKind::kill);
    const MatrixRef matrix(a, 2, 2);
    const auto prepared = solver::on(device.prepare()).potrf(blas::Uplo::lower, matrix);
    if (round >= 2) device.inject(FaultKind::kill);
    ASSERT_TRUE(prepared.wait_for(kDeadline));
    EXPECT_TRUE(prepared.wait().ok()) << prepared.wait().error().to_string();
    ASSERT_TRUE(eventually([&] { return replaced(old); }));
    EXPECT_EQ(device.download(a), kMatrix);
    EXPECT_EQ(device.solver().potrf(blas::Uplo::lower, matrix).get(), 0);
    EXPECT_EQ(bystanders.damage(), "");
  }
}

/// The standby of a program that runs the same over and over has all of it prepared, and is none
/// the worse for that.
TEST(Libraries, AStandbyThatHasPreparedWhatRecursTakesOver) {
  DeviceRig rig({"--standby", "local"});
  auto& device = rig.device();
  const Bystanders bystanders(device, 44);
  const auto x = device.alloc<double>(64), y = device.alloc<double>(64),
             sum = device.alloc<double>(1);
  device.fill(x, 1.0), device.fill(y, 0.0);
  double expected = 0;
  for (int death = 0; death < 3; ++death) {
    for (int i = 0; i < 20; ++i) device.blas().axpy(1.0, x, y), ++expected;
    device.blas().dot(x, y, sum);
    device.blas().dot(x, y, sum).get();
    const auto old = active_host();
    ASSERT_TRUE(eventually([] { return hosts().size() == 2; }));
    device.inject(FaultKind::kill);
    ASSERT_TRUE(eventually([&] { return replaced(old); }));
    EXPECT_EQ(device.download(y), std::vector<double>(64, expected));
  }
  EXPECT_EQ(bystanders.damage(), "");
}

}  // namespace
}  // namespace troupe::test
