#pragma once

#include <cstddef>

// GCC says which sanitizer a file is compiled for, and so does Clang, by other means.
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace troupe::host::cpu {

/// Tells the sanitizers that a thread goes from its own stack to that of a fiber and back: else
/// they take what lies on the one for errors on the other. In other builds it does nothing. Of one
/// fiber, which one thread resumes.
class FiberSwitch {
 public:
  FiberSwitch() = default;
  FiberSwitch(const FiberSwitch&) = delete;
  FiberSwitch& operator=(const FiberSwitch&) = delete;
  ~FiberSwitch() {
#if defined(__SANITIZE_THREAD__)
    if (own_ != nullptr) __tsan_destroy_fiber(own_);
#endif
  }

  /// The fiber's stack: the lowest address, and the size in bytes. Before the first switch.
  void set_stack([[maybe_unused]] const void* bottom, [[maybe_unused]] std::size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
    bottom_ = bottom, bytes_ = bytes;
#endif
#if defined(__SANITIZE_THREAD__)
    own_ = __tsan_create_fiber(0);
#endif
  }

  /// On the caller's stack, around the switch to the fiber.
  void before_resume() {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(&callers_frames_, bottom_, bytes_);
#endif
#if defined(__SANITIZE_THREAD__)
    caller_ = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(own_, 0);
#endif
  }
  void after_resume() {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(callers_frames_, nullptr, nullptr);
#endif
  }

  /// On the fiber's stack: at its beginning and behind each switch back to it.
  void entered() {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(frames_, &callers_bottom_, &callers_bytes_);
#endif
  }
  /// Before the switch to the caller; `for_good`: it is the last one.
  void before_leave([[maybe_unused]] bool for_good) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(for_good ? nullptr : &frames_, callers_bottom_, callers_bytes_);
#endif
#if defined(__SANITIZE_THREAD__)
    __tsan_switch_to_fiber(caller_, 0);
#endif
  }

 private:
#if defined(__SANITIZE_ADDRESS__)
  const void* bottom_ = nullptr;
  const void* callers_bottom_ = nullptr;
  std::size_t bytes_ = 0, callers_bytes_ = 0;
  void* frames_ = nullptr;
  void* callers_frames_ = nullptr;
#endif
#if defined(__SANITIZE_THREAD__)
  void* own_ = nullptr;
  void* caller_ = nullptr;
#endif
};

}  // namespace troupe::host::cpu
