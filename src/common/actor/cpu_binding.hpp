#pragma once

#include <memory>
#include <string>
#include <thread>

#include <troupe/error.hpp>

namespace troupe {

/// A set of cores that threads can be bound to.
class CpuBinding {
 public:
  /// `cpuset` is a list of core numbers as the operating system counts them, "0-3,8". Errc::invalid
  /// if it is malformed or names cores that this process may not use.
  static Result<CpuBinding> parse(const std::string& cpuset);
  CpuBinding(CpuBinding&&) noexcept;
  CpuBinding& operator=(CpuBinding&&) noexcept;
  ~CpuBinding();

  /// Errc::io if the operating system refuses.
  Result<void> bind(std::thread& thread) const;

 private:
  struct Sets;
  explicit CpuBinding(std::unique_ptr<Sets> sets);
  std::unique_ptr<Sets> sets_;
};

}  // namespace troupe
