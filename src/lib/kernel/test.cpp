#include <troupe/lib/kernel.hpp>

#include <cstddef>
#include <cstdint>
#include <numeric>

#include <troupe_kernels/embedded.hpp>

#include "bad_arguments.hpp"
#include "compiled.hpp"

namespace troupe::test {
namespace {

template <class T>
class KernelOpsOf : public NeedsKernels {};
TYPED_TEST_SUITE(KernelOpsOf, Reals);

template <class T>
constexpr const char* kTypeName = std::is_same_v<T, float> ? "float" : "double";

std::vector<std::int32_t> integers(std::size_t count, std::int32_t bound) {
  std::vector<std::int32_t> values(count);
  std::mt19937_64 random(51);
  for (auto& value : values)
    value = static_cast<std::int32_t>(random() % static_cast<unsigned>(bound));
  return values;
}

constexpr auto kSaxpy = R"(
template <class T>
__global__ void axpy(long long n, T alpha, const T* x, T* y) {
  const long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
  if (i < n) y[i] = alpha * x[i] + y[i];
}
)";

TYPED_TEST(KernelOpsOf, ATemplateIsNamedByAnExpression) {
  using T = TypeParam;
  const auto name = std::string("axpy<") + kTypeName<T> + ">";
  const auto axpy = compiled(kSaxpy, {name}).kernel(name);
  EXPECT_EQ(axpy.facts().parameters, 4u);
  EXPECT_GE(axpy.facts().max_threads, 256u);
  for (const std::int64_t n : {1, 255, 256, 10'000}) {
    const auto x = put(std::vector<T>(static_cast<std::size_t>(n), T(3)));
    const auto y = put(std::vector<T>(static_cast<std::size_t>(n), T(1)));
    device().launch(axpy, {.grid = (n + 255) / 256, .block = 256}, n, T(2), read(x), update(y));
    EXPECT_EQ(device().download(y), std::vector<T>(static_cast<std::size_t>(n), T(7)));
  }
}

TYPED_TEST(KernelOpsOf, AStencilStepsOverAGrid) {
  using T = TypeParam;
  const auto name = std::string("jacobi<") + kTypeName<T> + ">";
  const auto step = compiled(R"(
template <class T>
__global__ void jacobi(int rows, int columns, const T* in, T* out) {
  const int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows || column >= columns) return;
  const int at = row * columns + column;
  const bool inner = row > 0 && row + 1 < rows && column > 0 && column + 1 < columns;
  out[at] = inner ? (in[at - 1] + in[at + 1] + in[at - columns] + in[at + columns]) / 4 : in[at];
}
)",
                             {name})
                        .kernel(name);
  constexpr std::int64_t kRows = 37, kColumns = 70;
  auto expected = std::vector<T>(kRows * kColumns);
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = static_cast<T>(i * 7 % 16 * 64);
  auto in = put(expected), out = put(std::vector<T>(expected.size()));
  for (int i = 0; i < 3; ++i) {  // small integers and powers of two: exact
    device().launch(step, {.grid = {3, 5}, .block = {32, 8}, .repeatable = true}, int(kRows),
                    int(kColumns), read(in), write(out));
    std::swap(in, out);
    auto next = expected;
    for (std::int64_t row = 1; row + 1 < kRows; ++row) {
      for (std::int64_t column = 1; column + 1 < kColumns; ++column) {
        const auto at = static_cast<std::size_t>(row * kColumns + column);
        next[at] = (expected[at - 1] + expected[at + 1] + expected[at - kColumns] +
                    expected[at + kColumns]) /
                   4;
      }
    }
    expected = next;
  }
  EXPECT_EQ(device().download(in), expected);
}

class KernelOps : public NeedsKernels {};

TEST_F(KernelOps, AReductionUsesSharedMemoryAndBarriers) {
  const auto sum = compiled(R"(
extern "C" __global__ void sum(int n, const int* x, int* result) {
  __shared__ int part[128];
  int mine = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) mine += x[i];
  part[threadIdx.x] = mine;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(result, part[0]);
}
)",
                            {"sum"})
                       .kernel("sum");
  const auto values = integers(100'003, 100);
  const auto x = put(values), result = put(std::vector<std::int32_t>{0});
  device().launch(sum, {.grid = 50, .block = 128}, 100'003, read(x), update(result));
  EXPECT_EQ(device().download(result)[0], std::accumulate(values.begin(), values.end(), 0));
}

TEST_F(KernelOps, AHistogramCountsByAtomics) {
  const auto count = compiled(R"(
__global__ void histogram(int n, const int* x, int* bins, unsigned* largest) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  atomicAdd(&bins[x[i]], 1);
  atomicMax(largest, static_cast<unsigned>(x[i]));
}
)",
                              {"histogram"})
                         .kernel("histogram");
  const auto values = integers(20'000, 17);
  std::vector<std::int32_t> expected(17);
  for (const auto value : values) ++expected[static_cast<std::size_t>(value)];
  const auto x = put(values), bins = put(std::vector<std::int32_t>(17));
  const auto largest = put(std::vector<std::uint32_t>{0});
  device().launch(count, {.grid = 200, .block = 100}, 20'000, read(x), update(bins),
                  update(largest));
  EXPECT_EQ(device().download(bins), expected);
  EXPECT_EQ(device().download(largest)[0], 16u);
}

TEST_F(KernelOps, ATransposeGoesThroughATile) {
  const auto transpose = compiled(R"(
template <int tile>
__global__ void transpose(int n, const float* in, float* out) {
  __shared__ float cells[tile][tile + 1];
  int x = blockIdx.x * tile + threadIdx.x, y = blockIdx.y * tile + threadIdx.y;
  if (x < n && y < n) cells[threadIdx.y][threadIdx.x] = in[y * n + x];
  __syncthreads();
  x = blockIdx.y * tile + threadIdx.x, y = blockIdx.x * tile + threadIdx.y;
  if (x < n && y < n) out[y * n + x] = cells[threadIdx.x][threadIdx.y];
}
)",
                                  {"transpose<16>"})
                             .kernel("transpose<16>");
  constexpr std::size_t kN = 45;
  std::vector<float> values(kN * kN), expected(kN * kN);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i);
    expected[i % kN * kN + i / kN] = values[i];
  }
  const auto in = put(values), out = put(std::vector<float>(kN * kN));
  device().launch(transpose, {.grid = {3, 3}, .block = {16, 16}}, int(kN), read(in), write(out));
  EXPECT_EQ(device().download(out), expected);
}

TEST_F(KernelOps, AScanUsesDynamicSharedMemory) {
  const auto scan = compiled(R"(
extern "C" __global__ void scan(int n, const int* x, int* y) {
  extern __shared__ int sums[];
  const int i = threadIdx.x;
  sums[i] = i < n ? x[i] : 0;
  __syncthreads();
  for (int apart = 1; apart < blockDim.x; apart *= 2) {
    const int before = i >= apart ? sums[i - apart] : 0;
    __syncthreads();
    sums[i] += before;
    __syncthreads();
  }
  if (i < n) y[i] = sums[i];
}
)",
                             {"scan"})
                        .kernel("scan");
  const auto values = integers(1000, 9);
  std::vector<std::int32_t> expected(values.size());
  std::partial_sum(values.begin(), values.end(), expected.begin());
  const auto x = put(values), y = put(std::vector<std::int32_t>(values.size()));
  device().launch(scan, {.block = 1024, .shared_bytes = 4096}, 1000, read(x), write(y));
  EXPECT_EQ(device().download(y), expected);
}

struct Line {
  double slope;
  std::int32_t count;
  std::int32_t reserved;
  const double* at;
  double* values;
};
constexpr auto kLine = R"(
struct Line { double slope; int count, reserved; const double* at; double* values; };
extern "C" __global__ void line(Line line, float3 shift) {
  const int i = threadIdx.x;
  if (i < line.count) line.values[i] = line.slope * line.at[i] + shift.x + shift.y + shift.z;
}
)";
struct Shift {
  float x, y, z;
};

TEST_F(KernelOps, AStructIsPassedByValueWithAddressesInIt) {
  const auto line = compiled(kLine, {"line"}).kernel("line");
  EXPECT_EQ(line.facts().size[0], sizeof(Line));
  const auto at = put(std::vector<double>{1, 2, 3}), values = put(std::vector<double>(3));
  const Line by_value{2.0, 3, 0, nullptr, nullptr};
  device().launch(line, {.block = 32},
                  with_addresses(by_value, {troupe::at(offsetof(Line, at), read(at)),
                                            troupe::at(offsetof(Line, values), write(values))}),
                  Shift{1, 2, 4});
  EXPECT_EQ(device().download(values), (std::vector<double>{9, 11, 13}));
}

TEST_F(KernelOps, HeadersDefinesAndSeveralKernelsOfOneSource) {
  const auto module =
      compiled(R"(
#include "step.hpp"
namespace grid {
__global__ void first(int* x) { x[threadIdx.x] = step(threadIdx.x); }
__global__ void second(int* x) { x[threadIdx.x] += OFFSET; }
}
)",
               {"grid::first", "grid::second"},
               {.headers = {{"step.hpp", "__device__ inline int step(int i) { return 3 * i; }"}},
                .defines = {"OFFSET=100"}});
  const auto x = put(std::vector<std::int32_t>(4));
  device().launch(module.kernel("grid::first"), {.block = 4}, write(x));
  device().launch(module.kernel("grid::second"), {.block = 4}, update(x));
  EXPECT_EQ(device().download(x), (std::vector<std::int32_t>{100, 103, 106, 109}));
}

TEST_F(KernelOps, AVariableHasTheContentsOfItsBuffer) {
  auto module = compiled(R"(
__constant__ float weights[3];
__device__ int offset;
extern "C" __global__ void weigh(float* x) { x[threadIdx.x] = weights[threadIdx.x] + offset; }
)",
                         {"weigh"});
  const auto weights = put(std::vector<float>{1, 2, 3});
  const auto offset = put(std::vector<std::int32_t>{10});
  module.bind_symbol("weights", weights);
  module.bind_symbol("offset", offset);
  const auto x = put(std::vector<float>(3));
  const auto weigh = module.kernel("weigh");
  device().launch(weigh, {.block = 3}, write(x));
  EXPECT_EQ(device().download(x), (std::vector<float>{11, 12, 13}));
  device().fill(weights, 5.0f);
  device().launch(weigh, {.block = 3}, write(x));
  EXPECT_EQ(device().download(x), (std::vector<float>{15, 15, 15}));
  module.bind_symbol("weights", put(std::vector<float>{7, 8, 9}));
  device().launch(weigh, {.block = 3}, write(x));
  EXPECT_EQ(device().download(x), (std::vector<float>{17, 18, 19}));

  auto other = compiled("extern \"C\" __global__ void nothing() {}", {"nothing"});
  other.bind_symbol("weights", weights);
  EXPECT_EQ(device().launch(other.kernel("nothing"), {}).wait().code(), Errc::invalid);
}

TEST_F(KernelOps, TheDeviceTellsHowManyBlocksItRunsAtOnce) {
  const auto kernel =
      compiled("extern \"C\" __global__ void f(int* x) { x[0] = 1; }", {"f"}).kernel("f");
  const auto small = device().occupancy(kernel, 128).get();
  EXPECT_GE(small, 1u);
  EXPECT_LE(device().occupancy(kernel, 1024, 40'000).get(), small);
  EXPECT_EQ(device().occupancy(kernel, 0).wait().code(), Errc::invalid);
  EXPECT_EQ(device().occupancy(kernel, 4096).wait().code(), Errc::invalid);
  (void)device().take_error();
}

TEST_F(KernelOps, OrderHoldsAmongKernelsAndLibraries) {
  const auto twice =
      compiled("extern \"C\" __global__ void twice(double* x) { x[0] *= 2; }", {"twice"})
          .kernel("twice");
  const auto one = put(std::vector<double>{1}), x = put(std::vector<double>{1});
  double expected = 1;
  for (int i = 0; i < 20; ++i) {
    device().launch(twice, {}, update(x));
    device().blas().axpy(1.0, one, x);
    expected = expected * 2 + 1;
  }
  EXPECT_EQ(device().download(x)[0], expected);
}

TEST_F(KernelOps, ASourceThatDoesNotCompileIsOneErrorWithTheCompilersWords) {
  const auto bad = device().compile("__global__ void broken(int* x) {\n  x[0] = missing_name;\n}\n",
                                    {.names = {"broken"}, .file = "my_kernels.cu"});
  EXPECT_EQ(bad.wait().code(), Errc::invalid);
  const auto& message = bad.wait().error().message;
  EXPECT_NE(message.find("my_kernels.cu"), std::string::npos) << message;
  EXPECT_NE(message.find("missing_name"), std::string::npos) << message;
  EXPECT_NE(message.find("2"), std::string::npos) << "no line: " << message;
  EXPECT_EQ(device().take_error().code(), Errc::invalid);
  EXPECT_TRUE(device().take_error().ok());

  const auto unknown = device().compile("__global__ void there(int* x) {}", {.names = {"absent"}});
  EXPECT_EQ(unknown.wait().code(), Errc::invalid);
  EXPECT_NE(unknown.wait().error().message.find("absent"), std::string::npos);
  EXPECT_EQ(device().compile("__global__ void f() {}", {}).wait().code(), Errc::invalid);
  const auto module = compiled("extern \"C\" __global__ void f() {}", {"f"});
  EXPECT_THROW((void)module.kernel("g"), Exception);
  (void)device().take_error();
  EXPECT_EQ(not_working(device()), "");
}

TEST_F(KernelOps, AnImageIsLoadedAsItIs) {
  const auto module = compiled("extern \"C\" __global__ void set(int* x) { x[0] = 42; }", {"set"});
  const std::vector<std::byte> image(module.image().begin(), module.image().end());
  const auto loaded = device().load(image, {"set"}).get();
  const auto x = put(std::vector<std::int32_t>{0});
  device().launch(loaded.kernel("set"), {}, write(x));
  EXPECT_EQ(device().download(x)[0], 42);
  EXPECT_EQ(device().load(image, {"absent"}).wait().code(), Errc::invalid);
  EXPECT_EQ(device().load({}, {"set"}).wait().code(), Errc::invalid);
  auto foreign = image;
  foreign[18] = foreign[19] = std::byte{0x7f};  // of no machine that there is
  const auto refused = device().load(foreign, {"set"}).wait();
  EXPECT_TRUE(refused.code() == Errc::unsupported || refused.code() == Errc::invalid);
  const std::vector<std::byte> nonsense(1000, std::byte{'x'});
  const auto garbage = device().load(nonsense, {"set"}).wait();
  EXPECT_TRUE(garbage.code() == Errc::unsupported || garbage.code() == Errc::invalid);
  (void)device().take_error();
  EXPECT_EQ(not_working(device()), "");
}

TEST_F(KernelOps, AnImageOfNvccsIsPartOfTheProgram) {
  const auto image = troupe_kernels::embedded_image();
  if (!on_cuda()) {  // there its source serves
    EXPECT_EQ(device().load(image, {"embedded"}).wait().code(),
              image.empty() ? Errc::invalid : Errc::unsupported);
    (void)device().take_error();
  }
  const auto module = on_cuda()
                          ? device().load(image, {"embedded"}).get()
                          : compiled(std::string(troupe_kernels::embedded_source()), {"embedded"});
  const auto x = put(std::vector<std::int32_t>(100));
  device().launch(module.kernel("embedded"), {.grid = 2, .block = 64}, 100, write(x));
  std::vector<std::int32_t> expected(100);
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = 2 * static_cast<std::int32_t>(i);
  EXPECT_EQ(device().download(x), expected);
}

TEST_F(BadArguments, OfKernels) {
  if (!has_kernels()) GTEST_SKIP() << "the cpu engine was built without kernels (Boost.Context)";
  const auto module = compiled(
      "extern \"C\" __global__ void f(double* x, int n, const int* i) { x[0] = n + i[0]; }", {"f"});
  const auto kernel = module.kernel("f");
  const auto refused = [&](const Future<void>& future, const std::string& text) {
    ASSERT_TRUE(future.ready()) << text << ": it was launched";
    EXPECT_EQ(future.wait().code(), Errc::invalid) << text;
    const auto& message = future.wait().error().message;
    EXPECT_TRUE(message.starts_with("kernel.launch")) << message;
    EXPECT_NE(message.find(text), std::string::npos) << message << " instead of " << text;
  };
  const auto with = [&](const LaunchOptions& how, const std::string& text) {
    refused(device().launch(kernel, how, update(ref), 1, read(index)), text);
  };
  const auto launch = [&](const auto&... arguments) {
    return device().launch(kernel, {}, arguments...);
  };
  refused(launch(update(ref), 1), "f: it takes 3 arguments, not 2");
  refused(launch(update(ref), 1, read(index), 2), "f: it takes 3 arguments, not 4");
  refused(launch(update(ref), 1.0, read(index)), "f: argument 2 is of 4 bytes, not 8");
  refused(launch(1, 1, read(index)), "f: argument 1 is of 8 bytes, not 4");
  refused(launch(update(ref), read(index), read(index)), "f: argument 2 is of 4 bytes, not 8");
  with({.grid = 0}, "f: grid.x is 0, not from 1 to 2147483647");
  with({.grid = -1}, "f: grid.x is negative or far too large, not from 1 to 2147483647");
  with({.grid = {1, 65536}}, "f: grid.y is 65536, not from 1 to 65535");
  with({.block = 2048}, "f: block.x is 2048, not from 1 to 1024");
  with({.block = {1, 1, 65}}, "f: block.z is 65, not from 1 to 64");
  with({.block = 0}, "f: block.x is 0, not from 1 to 1024");
  with({.block = {1024, 2}}, "f: a block of 2048 threads, at most ");
  with({.shared_bytes = 1u << 30}, "f: 1073741824 bytes of dynamic shared memory, at most ");
  with({.grid = 3, .cluster = {2, 1, 1}}, "f: grid.x is no multiple of cluster.x");
  with({.grid = 16, .cluster = {16, 1, 1}}, "f: cluster.x is 16, not from 1 to 8");
  with({.grid = {4, 4}, .cluster = {4, 4, 1}}, "f: a cluster of 16 blocks, at most 8");
  refused(launch(update(ref), 1, read(GpuRef<std::int32_t>())), "a buffer is missing");
  const auto line = compiled(kLine, {"line"}).kernel("line");
  refused(device().launch(line, {}, with_addresses(Line{}, {at(sizeof(Line), read(ref))}), Shift{}),
          "the address of a buffer lies outside of its argument");
  try {
    (void)module.kernel("g");
    ADD_FAILURE() << "the module has a kernel that it was not made for";
  } catch (const Exception& e) {
    EXPECT_EQ(e.code(), Errc::invalid);
    EXPECT_NE(e.error().message.find("was not made for a kernel \"g\""), std::string::npos);
  }
}

/// Records that no call of this library makes.

}  // namespace
}  // namespace troupe::test
