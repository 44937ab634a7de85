#pragma once

namespace troupe {

/// Tells the core that this is a spin loop.
inline void cpu_relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  asm volatile("" ::: "memory");
#endif
}

}  // namespace troupe
