#pragma once

#include <deque>
#include <string_view>
#include <variant>

#include <troupe/checkpoint.hpp>

namespace troupe::train {

/// Buffers that each step fills before it reads them.
class Scratch {
 public:
  explicit Scratch(Device& device) : device_(&device) {}

  template <Element T>
  GpuRef<T> room(std::int64_t length, std::string_view name) {
    return std::get<GpuRef<T>>(rooms_.emplace_back(device_->alloc<T>(length, name)));
  }
  /// This must outlive the checkpoint.
  void add_to(Checkpoint& state) {
    for (auto& one : rooms_) std::visit([&](auto& room) { state.add_scratch(room); }, one);
  }

 private:
  Device* device_;
  std::deque<std::variant<GpuRef<float>, GpuRef<BFloat16>, GpuRef<std::int32_t>>> rooms_;
};

}  // namespace troupe::train
