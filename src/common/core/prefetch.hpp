#pragma once

namespace troupe {

/// Asks for a cache line that is about to be written, so that the store does not wait until another
/// core has given it up. __builtin_prefetch() asks x86 processors for a copy to read only.
inline void prefetch_for_write(const void* line) noexcept {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
#else
  __builtin_prefetch(line, 1);
#endif
}

}  // namespace troupe
