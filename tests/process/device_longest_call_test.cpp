#include <gtest/gtest.h>
#include <signal.h>

#include <functional>
#include <memory>
#include <string>

#include "long_calls.hpp"

// A device host is killed in the middle of the longest calls of the dense and spectral libraries:
// the flight recorder says that the call has been issued, and then a third of its time goes by.
// What it read is intact bit for bit, what it was to write is right if the future says so and stale
// otherwise, and the same call afterwards gives the right result.

namespace troupe::test {
namespace {

using Clock = std::chrono::steady_clock;

struct Entry {
  std::string name;
  std::function<std::unique_ptr<LongCall>(Device&)> make;
};
template <class Call, class... Arguments>
Entry entry(std::string name, Arguments... arguments) {
  return {std::move(name),
          [=](Device& device) { return std::make_unique<Call>(device, arguments...); }};
}
void PrintTo(const Entry& entry, std::ostream* out) {
  *out << entry.name;
}

/// The newest command of that operation.
rank_process::FlightRecorder::Record newest(rank_process::DeviceCore& core,
                                            const std::string& operation) {
  const auto records = core.flight().records();
  const auto found = std::find_if(records.rbegin(), records.rend(), [&](const auto& record) {
    return operation_name(record.opcode) == operation;
  });
  return found == records.rend() ? rank_process::FlightRecorder::Record() : *found;
}

class LongestCalls : public ::testing::TestWithParam<Entry> {
 protected:
  static Clock::duration time_of(LongCall& call) {
    call.prepare();
    const auto start = Clock::now();
    call.submit().get();
    return Clock::now() - start;
  }
  /// Kills the host when the call has been under way for so long. False: it was over before.
  static bool kill_under_way(rank_process::DeviceCore& core, const std::string& operation,
                             const Future<void>& over, pid_t host, Clock::duration after) {
    const auto under_way = [&] {
      const auto record = newest(core, operation);
      return record.issued.count() != 0 && record.completed.count() == 0;
    };
    while (!under_way()) {
      if (over.ready()) return false;
      std::this_thread::sleep_for(50us);
    }
    for (const auto begun = Clock::now(); Clock::now() - begun < after;)
      std::this_thread::sleep_for(50us);
    return under_way() && ::kill(host, SIGKILL) == 0;
  }
};

TEST_P(LongestCalls, KilledInTheMiddle) {
  DeviceRig rig({"--standby", "local", "--restart-budget", "20"});
  auto& device = rig.device();
  const Bystanders bystanders(device, 44);
  const auto call = GetParam().make(device);
  call->prepare();
  const auto supported = call->submit().wait();
  if (supported.code() == Errc::unsupported) GTEST_SKIP() << supported.error().message;
  ASSERT_TRUE(supported.ok()) << supported.error().to_string();
  EXPECT_LE(call->error(), 1) << "undisturbed";
  auto wait = time_of(*call) / 3;
  bool hit = false;
  for (int attempt = 0; attempt < 10 && !hit; ++attempt) {
    SCOPED_TRACE(attempt);
    ASSERT_TRUE(eventually([] { return hosts().size() == 2; }));
    call->prepare();
    const auto old = active_host();
    const auto over = call->submit();
    const bool killed = kill_under_way(rig.core(), call->operation(), over, old, wait);
    wait /= 2;  // the measured time may have been that of a busy machine
    ASSERT_TRUE(over.wait_for(kDeadline));
    if (over.wait().ok()) {
      hit = killed && newest(rig.core(), call->operation()).repeated;
      EXPECT_LE(call->error(), 1);
    } else {
      hit = true;
      EXPECT_TRUE(call->overwrites()) << "it can run again: " << over.wait().error().to_string();
      EXPECT_EQ(over.wait().code(), Errc::device_lost);
      EXPECT_TRUE(call->is_stale());
    }
    ASSERT_TRUE(!killed || replaced(old));
    EXPECT_EQ(call->damage(), "");
    EXPECT_EQ(bystanders.damage(), "");
  }
  EXPECT_TRUE(hit) << "no device host died in the middle of the call";
  call->prepare();
  const auto next = call->submit();
  ASSERT_TRUE(next.wait_for(kDeadline));
  ASSERT_TRUE(next.wait().ok()) << "the first call after it: " << next.wait().error().to_string();
  EXPECT_LE(call->error(), 1);
}

INSTANTIATE_TEST_SUITE_P(
    Of, LongestCalls,
    ::testing::Values(entry<Product>("blas_gemm"), entry<TriangularSystem>("blas_trsm"),
                      entry<BiasedProduct>("blas_matmul"), entry<Factors>("solver_getrf"),
                      entry<Eigenvectors>("solver_syevd"), entry<SingularValues>("solver_gesvd"),
                      entry<Spectrum<double>>("fft_prime", 1, sized(33'554'393, 300'007)),
                      entry<Spectrum<float>>("fft_cube", 3, sized(512, 160)),
                      entry<GeneratorSetUp>("rng_sequence"), entry<PoissonNumbers>("rng_poisson")),
    [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace troupe::test
