#include <cstdint>
#include <numeric>

#include <troupe/lib/function.hpp>
#include <troupe/lib/kernel.hpp>

#include "bad_arguments.hpp"
#include "compiled.hpp"

// Several kernels at once, functions of the host in the place of kernels, what cannot be launched.

namespace troupe::test {
namespace {

class KernelOpsAtOnce : public NeedsKernels {};

/// Each waits until the other has begun, for a few seconds at most. To troupe both only read the
/// flags: else one would have to wait for the other.
TEST_F(KernelOpsAtOnce, KernelsThatDoNotDependOnEachOtherOverlap) {
  if (device().info().engine != "cuda")
    GTEST_SKIP() << "the cpu engine runs one kernel after another";
  const auto meet = compiled(R"(
extern "C" __global__ void meet(int own, const int* flags, int* met) {
  volatile int* const all = const_cast<int*>(flags);
  all[own] = 1;
  __threadfence_system();
  const long long begin = clock64();
  while (all[1 - own] == 0 && clock64() - begin < 6000000000LL) {}
  *met = all[1 - own];
}
)",
                             {"meet"})
                        .kernel("meet");
  const auto flags = put(std::vector<std::int32_t>(2));
  const auto first = put(std::vector<std::int32_t>(1)), second = put(std::vector<std::int32_t>(1));
  device().nop().get();
  device().launch(meet, {}, 0, read(flags), write(first));
  device().launch(meet, {}, 1, read(flags), write(second));
  EXPECT_EQ(device().download(first)[0], 1);
  EXPECT_EQ(device().download(second)[0], 1);
}

/// Many chains at once, each of steps that need the one before, and at last a step that needs all.
TEST_F(KernelOpsAtOnce, ChainsOfKernelsKeepTheirOrders) {
  const auto module = compiled(R"(
extern "C" __global__ void step(int n, int factor, const int* x, int* y) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = factor * y[i] + x[i];
}
extern "C" __global__ void add(int n, const int* x, int* sum) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum[i] += x[i];
}
)",
                               {"step", "add"});
  const auto step = module.kernel("step"), add = module.kernel("add");
  constexpr std::size_t kChains = 7, kN = 3000;
  const auto ones = put(std::vector<std::int32_t>(kN, 1)), sum = put(std::vector<std::int32_t>(kN));
  std::vector<GpuRef<std::int32_t>> chains;
  for (std::size_t c = 0; c < kChains; ++c)
    chains.push_back(put(std::vector<std::int32_t>(kN, static_cast<std::int32_t>(c))));
  std::vector<std::int32_t> expected(kChains);
  std::iota(expected.begin(), expected.end(), 0);
  for (int i = 0; i < 12; ++i) {
    for (std::size_t c = 0; c < kChains; ++c) {
      const int factor = 1 + (i + static_cast<int>(c)) % 3;
      device().launch(step, {.block = 64}, int(kN), factor, read(ones), update(chains[c]));
      expected[c] = factor * expected[c] + 1;
    }
  }
  for (const auto& chain : chains)
    device().launch(add, {.block = 64}, int(kN), read(chain), update(sum));
  const auto all = std::accumulate(expected.begin(), expected.end(), 0);
  EXPECT_EQ(device().download(sum), std::vector<std::int32_t>(kN, all));
}

/// Shuffles between the lanes of a warp: the cpu engine has a function of the host instead.
constexpr auto kWarpSums = R"(
__device__ float bias[2];
extern "C" __global__ void warp_sums(const float* x, float* sums) {
  float sum = x[blockIdx.x * blockDim.x + threadIdx.x];
  for (int apart = 16; apart > 0; apart /= 2) sum += __shfl_down_sync(0xffffffffu, sum, apart);
  if (threadIdx.x == 0) sums[blockIdx.x] = bias[0] + sum;
}
template <class T>
__global__ void doubled(T* x) { x[threadIdx.x] *= 2; }
)";

class KernelOpsOfTheHost : public NeedsKernels {
 protected:
  static KernelModule module(std::vector<std::string> names,
                             std::string library = TROUPE_TEST_HOST_KERNELS) {
    return compiled(kWarpSums, std::move(names), {.host_kernels = std::move(library)});
  }
};

TEST_F(KernelOpsOfTheHost, AFunctionTakesThePlaceOfAKernel) {
  auto warps = module({"warp_sums", "doubled<double>"});
  const auto warp_sums = warps.kernel("warp_sums");
  EXPECT_EQ(warp_sums.facts().parameters, 2u);
  std::vector<float> values(3 * 32);
  std::iota(values.begin(), values.end(), 0.0f);
  const auto x = put(values), sums = put(std::vector<float>(3));
  device().launch(warp_sums, {.grid = 3, .block = 32}, read(x), write(sums));
  EXPECT_EQ(device().download(sums), (std::vector<float>{496, 1520, 2544}));
  const auto bias = put(std::vector<float>{1000, 0});
  warps.bind_symbol("bias", bias);
  device().launch(warp_sums, {.grid = 3, .block = 32}, read(x), write(sums));
  EXPECT_EQ(device().download(sums), (std::vector<float>{1496, 2520, 3544}));
  const auto y = put(std::vector<double>{1, 2, 3});
  device().launch(warps.kernel("doubled<double>"), {.block = 3}, update(y));
  EXPECT_EQ(device().download(y), (std::vector<double>{2, 4, 6}));
}

TEST_F(KernelOpsOfTheHost, WithoutOneTheErrorSaysWhatIsMissing) {
  if (device().info().engine != "cpu") GTEST_SKIP() << "GPUs have warps";
  const auto outcome = [](const Future<KernelModule>& future) {
    const auto over = future.then([](const KernelModule&) {}).wait();
    (void)device().take_error();
    return over.ok() ? Error{} : over.error();
  };
  const auto compile = [&](const std::string& library, const std::string& name) {
    return outcome(device().compile(kWarpSums, {.names = {name}, .host_kernels = library}));
  };
  const auto none = compile("", "warp_sums");
  EXPECT_EQ(none.code, Errc::invalid);
  EXPECT_NE(none.message.find("__shfl_down_sync is beyond its subset"), std::string::npos)
      << none.message;
  const auto unknown = compile(TROUPE_TEST_HOST_KERNELS, "other");
  EXPECT_EQ(unknown.code, Errc::invalid);
  EXPECT_NE(unknown.message.find("there is no kernel other"), std::string::npos) << unknown.message;
  const auto missing = compile("/nonexistent/libmine.so", "warp_sums");
  EXPECT_EQ(missing.code, Errc::unsupported);
  EXPECT_NE(missing.message.find("/nonexistent/libmine.so"), std::string::npos) << missing.message;
  const auto image = outcome(device().load(std::vector<std::byte>(64), {"warp_sums"}));
  EXPECT_EQ(image.code, Errc::unsupported);
  EXPECT_NE(image.message.find("host_kernels"), std::string::npos) << image.message;
  const auto loaded =
      device().load(std::vector<std::byte>(64), {"doubled<double>"}, TROUPE_TEST_HOST_KERNELS);
  const auto y = put(std::vector<double>{4});
  device().launch(loaded.get().kernel("doubled<double>"), {}, update(y));
  EXPECT_EQ(device().download(y)[0], 8);
}

class KernelOpsThatCannotBe : public NeedsKernels {};

TEST_F(KernelOpsThatCannotBe, LaunchedOnWhatAFailureHasSpoilt) {
  const auto kernel =
      compiled("extern \"C\" __global__ void f(double* x, const double* y) { x[0] += y[0]; }",
               {"f"})
          .kernel("f");
  const auto spoilt = put(std::vector<double>{1}), good = put(std::vector<double>{1});
  const auto fail =
      device()
          .load_functions(on_cuda() ? TROUPE_TEST_FUNCTIONS_CUDA : TROUPE_TEST_FUNCTIONS_CPU)
          .function("fail");
  EXPECT_EQ(device().call(fail, update(spoilt), 7).wait().code(), Errc::library);
  for (const auto& refused : {device().launch(kernel, {}, update(good), read(spoilt)),
                              device().launch(kernel, {}, update(spoilt), read(good))}) {
    ASSERT_TRUE(refused.ready()) << "it was launched";
    EXPECT_EQ(refused.wait().code(), Errc::stale);
    EXPECT_NE(refused.wait().error().message.find("kernel.launch"), std::string::npos)
        << refused.wait().error().message;
  }
  EXPECT_EQ(device().download(good)[0], 1);
  (void)device().take_error();
}

/// An image for one GPU is of no use to another one.
TEST_F(KernelOpsThatCannotBe, LoadedFromAnImageForAnotherArchitecture) {
  if (!on_cuda()) GTEST_SKIP() << "images are for GPUs";
  const auto other = device().info().compute_capability == 75 ? "sm_90" : "sm_75";
  const auto refused =
      device().compile("extern \"C\" __global__ void f(int* x) { *x = 1; }",
                       {.names = {"f"}, .options = {std::string("--gpu-architecture=") + other}});
  EXPECT_EQ(refused.wait().code(), Errc::unsupported);
  EXPECT_NE(refused.wait().error().message.find("kernel: "), std::string::npos)
      << refused.wait().error().message;
  (void)device().take_error();
}

}  // namespace
}  // namespace troupe::test
