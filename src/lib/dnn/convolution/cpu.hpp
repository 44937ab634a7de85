#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include <troupe/lib/dnn.hpp>

namespace troupe::dnn {

/// Where the operands of a convolution are, of its dtype; bias may be nullptr.
struct ConvolutionOperands {
  const std::byte *x = nullptr, *w = nullptr, *bias = nullptr;
  std::byte* y = nullptr;
};

/// Convolutions on the host, by a library that may not be there. Used by one thread at a time.
class Convolver {
 public:
  /// `threads`: how many to compute with.
  explicit Convolver(int threads);
  ~Convolver();

  /// Whether prepare() would only have to look it up.
  [[nodiscard]] bool has(const Convolution& op) const;
  /// What carries the operation out, on any thread. Errors: unsupported (the library is not
  /// installed, or has no such convolution).
  Result<std::function<void()>> prepare(const Convolution& op, const ConvolutionOperands& operands);
  /// The version of the library; "not installed" without it.
  [[nodiscard]] static std::string version();
  /// Something of the library's own; nullptr without it.
  [[nodiscard]] static const void* symbol();

 private:
  class Cache;
  std::unique_ptr<Cache> cache_;
};

}  // namespace troupe::dnn
