#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <troupe/error.hpp>

namespace troupe::host::cpu {

/// Which numbers of the sequence; `position` as curandSetGeneratorOffset takes it.
struct RandomRange {
  std::uint64_t seed = 0;
  std::uint64_t position = 0;
  std::int64_t n = 0;
};

/// Random numbers by cuRAND's host generator where libcurand can be loaded (it needs no GPU), else
/// by philox.hpp, which gives the same. One thread at a time. Failures are thrown as
/// troupe::Exception: library.
class Random {
 public:
  Random();
  ~Random();

  void bits(const RandomRange& range, std::uint32_t* destination);
  template <class T>
  void uniform(const RandomRange& range, T* destination);
  template <class T>
  void normal(const RandomRange& range, T mean, T deviation, T* destination);
  template <class T>
  void log_normal(const RandomRange& range, T mean, T deviation, T* destination);

 private:
  struct Generator;
  /// cuRAND's generator, at the begin of the range.
  Generator& at(const RandomRange& range);

  std::unique_ptr<Generator> generator_;  // made at first use
};

/// cuRAND's version, or "own Philox4x32-10".
std::string random_library();
/// Something of cuRAND's own; nullptr without it.
const void* random_symbol();

}  // namespace troupe::host::cpu
