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

}  // namespace detail
}  // namespace troupe

/// Lets device hosts call a function, whose first parameter is the stream.
#define TROUPE_FUNCTION(name)                                                   \
  extern "C" __attribute__((visibility("default"))) int troupe_function_##name( \
      const ::troupe::FunctionCall* call) {                                     \
    return ::troupe::detail::call_function(&name, *call);                       \
  }
