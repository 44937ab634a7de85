#pragma once

#include <algorithm>
#include <cstdint>

namespace troupe::test {

/// How many of `count` random cases a test tries: where tests are brief, a third.
constexpr std::uint32_t fewer_if_brief(std::uint32_t count) {
#ifdef TROUPE_BRIEF_TESTS
  return std::max(1u, count / 3);
#else
  return count;
#endif
}

/// How many of `count` random cases a test tries: under a sanitizer, which runs them ten times
/// slower, a tenth.
constexpr std::uint32_t random_cases(std::uint32_t count) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return std::max(1u, count / 10);
#else
  return count;
#endif
}

}  // namespace troupe::test
