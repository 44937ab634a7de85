#include "own_code.hpp"

#include <filesystem>

#include "hands.hpp"

namespace troupe::torture {
namespace {

constexpr auto kSource = R"(
template <class T>
__global__ void combine(int n, T alpha, const T* x, const T* y, T* z) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) z[i] = alpha * x[i] + y[n - 1 - i];
}

template <class T>
__global__ void smooth(int n, const T* x, T* y) {
  extern __shared__ double room[];
  T* const near = reinterpret_cast<T*>(room);
  const int i = blockIdx.x * blockDim.x + threadIdx.x, own = threadIdx.x + 1;
  near[own] = i < n ? x[i] : T(0);
  if (threadIdx.x == 0) near[0] = i > 0 ? x[i - 1] : T(0);
  if (threadIdx.x + 1 == blockDim.x) near[own + 1] = i + 1 < n ? x[i + 1] : T(0);
  __syncthreads();
  if (i < n) y[i] = near[own - 1] + near[own] + near[own + 1];
}

__global__ void tally(int n, int bins, const int* x, int* count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&count[(x[i] % bins + bins) % bins], 1);
}
)";

/// Beside the device host: see CMakeLists.txt.
std::string functions_of(const std::string& engine) {
  const auto own = std::filesystem::read_symlink("/proc/self/exe");
  return own.parent_path().parent_path() / "libexec/troupe" /
         ("troupe-torture-functions-" + engine + ".so");
}

/// What a rank asks of its own device by tokens is not ordered with the fetch: it waits for that.
template <class T>
Future<void> carry_over(World* world, Device* device, Carry carry) {
  const auto room = device->alloc<T>(static_cast<std::int64_t>(carry.from.length));
  co_await world->fetch(carry.from, room);
  co_await world->device(Rank(world->rank()))
      .copy(RemoteRef<T>(room.token()), RemoteRef<T>(carry.to));
}

bool is_missing(const Result<void>& outcome) {
  if (!outcome.ok() && outcome.code() != Errc::unsupported) throw Exception(outcome.error());
  return !outcome.ok();
}

}  // namespace

OwnCode::OwnCode(Device& device) {
  const auto compiled = device.compile(
      kSource,
      {.names = {"combine<float>", "combine<double>", "smooth<float>", "smooth<double>", "tally"}});
  if (is_missing(compiled.then([](const KernelModule&) {}).wait()))
    missing_ = {Kind::combine, Kind::smooth, Kind::tally};
  else
    kernels_ = compiled.get();
  const auto functions = device.load_functions(functions_of(device.info().engine));
  accumulate_ = functions.function("accumulate_f64");
  narrow_accumulate_ = functions.function("accumulate_f32");
  const auto x = device.alloc<double>(1), y = device.alloc<double>(1);
  device.fill(x, 1.0), device.fill(y, 1.0);
  if (is_missing(device.call(accumulate_, 1, 1.0, read(x), update(y)).wait()))
    missing_.insert(Kind::accumulate);
}

Kernel OwnCode::kernel(Kind kind, DType dtype) const {
  auto name = std::string(to_string(kind));
  if (kind != Kind::tally) name += dtype == DType::f32 ? "<float>" : "<double>";
  return kernels_.kernel(name);
}

Future<void> Carrier::on(const Carry& carry) {
  return with_type(static_cast<DType>(carry.from.dtype),
                   [&](auto zero) { return carry_over<decltype(zero)>(world_, device_, carry); });
}

}  // namespace troupe::torture
