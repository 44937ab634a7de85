#pragma once

namespace troupe {

/// Asks for the line to be written soon. The compiler's builtin asks x86 for a copy to read only,
/// unless it may use this instruction, which older processors ignore.
inline void prefetch_to_write(const void* at) noexcept {
#if defined(__x86_64__)
  asm volatile("prefetchw (%0)" ::"r"(at));
#else
  __builtin_prefetch(at, 1);
#endif
}

}  // namespace troupe
