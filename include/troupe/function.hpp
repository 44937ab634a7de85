#pragma once

#include <climits>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>

/// For a library of the program's own, whose functions run in the device host: host code that
/// launches kernels or calls libraries of CUDA's. It includes this header alone:
///
///     int smooth(cudaStream_t stream, const float* in, float* out, int n) {
///       smooth_kernel<<<(n + 255) / 256, 256, 0, stream>>>(in, out, n);
///       return cudaGetLastError();
///     }
///     TROUPE_FUNCTION(smooth)
///
/// What it does to the device it queues on the stream it is given; it may wait for that stream. It
/// returns nothing, or 0 if all went well. On the cpu engine the stream is null, and the function
/// works on the buffers before it returns.
namespace troupe {

/// How a device host calls such a function.
struct FunctionCall {
  void* stream;                  ///< a cudaStream_t
  const void* const* arguments;  ///< where each is; null: only their sizes are to be compared
  const unsigned* sizes;         ///< of each
  unsigned count;
};
/// A launch, as a function sees it that takes a kernel's place on the cpu engine.
struct HostLaunch {
  unsigned grid[3], block[3];
  unsigned shared_bytes;
};
/// A kernel by its name, and the function in its place.
struct HostKernel {
  const char* name;
  void (*run)(const HostLaunch& how, const void* const* arguments);
  const unsigned* sizes;  ///< of the arguments
  unsigned parameters;
};
/// What a library of such functions exports, by the name kHostKernelsSymbol.
struct HostKernels {
  unsigned count;
  const HostKernel* kernel;
};
inline constexpr const char* kHostKernelsSymbol = "troupe_host_kernels";

/// The function takes other arguments; nothing was done.
inline constexpr int kOtherArguments = INT_MIN;

namespace detail {

template <class T>
T argument(const void* from) {
  static_assert(std::is_trivially_copyable_v<T>);
  alignas(T) unsigned char bytes[sizeof(T)];
  std::memcpy(bytes, from, sizeof(T));
  return *reinterpret_cast<T*>(bytes);
}

template <class R, class Stream, class... P, std::size_t... i>
int call_function(R (*function)(Stream, P...), const FunctionCall& call,
                  std::index_sequence<i...>) {
  const unsigned sizes[] = {sizeof(P)..., 0};
  if (call.count != sizeof...(P)) return kOtherArguments;
  for (unsigned k = 0; k < call.count; ++k) {
    if (call.sizes[k] != sizes[k]) return kOtherArguments;
  }
  if (call.arguments == nullptr) return 0;
  const auto stream = static_cast<Stream>(call.stream);
  if constexpr (std::is_void_v<R>) {
    function(stream, argument<P>(call.arguments[i])...);
    return 0;
  } else {
    return static_cast<int>(function(stream, argument<P>(call.arguments[i])...));
  }
}
template <class R, class Stream, class... P>
int call_function(R (*function)(Stream, P...), const FunctionCall& call) {
  return call_function(function, call, std::index_sequence_for<P...>());
}

template <auto function>
struct HostKernelOf;
template <class... P, void (*function)(const HostLaunch&, P...)>
struct HostKernelOf<function> {
  static constexpr unsigned kSizes[] = {sizeof(P)..., 0};
  static constexpr unsigned kParameters = sizeof...(P);
  static void run(const HostLaunch& how, const void* const* arguments) {
    call(how, arguments, std::index_sequence_for<P...>());
  }

 private:
  template <std::size_t... i>
  static void call(const HostLaunch& how, [[maybe_unused]] const void* const* arguments,
                   std::index_sequence<i...>) {
    function(how, argument<P>(arguments[i])...);
  }
};

}  // namespace detail

/// The function in the place of the kernel that is called `name` in the program. Its first
/// parameter is the launch, the others are the kernel's; it does what all threads of the grid do.
template <auto function>
constexpr HostKernel host_kernel(const char* name) {
  using Of = detail::HostKernelOf<function>;
  return {name, &Of::run, Of::kSizes, Of::kParameters};
}

}  // namespace troupe

/// Lets device hosts call a function, whose first parameter is the stream.
#define TROUPE_FUNCTION(name)                                                   \
  extern "C" __attribute__((visibility("default"))) int troupe_function_##name( \
      const ::troupe::FunctionCall* call) {                                     \
    return ::troupe::detail::call_function(&name, *call);                       \
  }

/// Names the functions of a library that take the place of kernels on the cpu engine, once:
///
///     void warp_sum(const troupe::HostLaunch&, int n, const float* x, float* sum) { … }
///     TROUPE_HOST_KERNELS(troupe::host_kernel<&warp_sum>("warp_sum"))
#define TROUPE_HOST_KERNELS(...)                                               \
  static const ::troupe::HostKernel troupe_host_kernel_list[] = {__VA_ARGS__}; \
  extern "C" __attribute__((visibility("default")))                            \
  const ::troupe::HostKernels troupe_host_kernels = {                          \
      sizeof(troupe_host_kernel_list) / sizeof(::troupe::HostKernel), troupe_host_kernel_list};
