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
  /// The cores of `allowed`, a list as above, that belong to the NUMA node with the operating
  /// system's number `node`. Errc::invalid if there are none, or
  /// as for parse().
  static Result<CpuBinding> near_node(int node, const std::string& allowed);
  CpuBinding(CpuBinding&&) noexcept;
  CpuBinding& operator=(CpuBinding&&) noexcept;
  ~CpuBinding();

  /// Errc::io if the operating system refuses.
  Result<void> bind(std::thread& thread) const;
  /// How many cores.
  [[nodiscard]] unsigned count() const;
  /// "0-3,8"
  [[nodiscard]] std::string list() const;

 private:
  struct Sets;
  explicit CpuBinding(std::unique_ptr<Sets> sets);
  std::unique_ptr<Sets> sets_;
};

/// The cores that the calling thread may run on, "0-3,8"; Errc::io if the operating system does not
/// say.
Result<std::string> allowed_cores();

}  // namespace troupe
