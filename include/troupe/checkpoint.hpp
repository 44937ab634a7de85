#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <troupe/device.hpp>

namespace troupe {

/// The state of an application: buffers and host values that together make it possible to go on.
///
/// A commit copies the buffers, device to device, into one half of a pair, in turn, and the host
/// values with them; the other half holds the commit before. The copies are operations like any
/// other: a commit costs the caller nothing but their submission. One thread at a time.
class Checkpoint {
 public:
  explicit Checkpoint(Device& device) : device_(&device) {}
  Checkpoint(const Checkpoint&) = delete;
  Checkpoint& operator=(const Checkpoint&) = delete;

  /// The contents of `buffer` belong to the state. The reference must outlive this; a rollback
  /// makes it valid again. Throws Exception (out_of_memory): two more buffers of its size are made.
  template <Element T>
  void add(GpuRef<T>& buffer) {
    const GpuRef<T> halves[2] = {device_->alloc<T>(buffer.length()),
                                 device_->alloc<T>(buffer.length())};
    add_entry([device = device_, &buffer, halves = std::vector<GpuRef<T>>(halves, halves + 2)](
                  Move move, int half) mutable {
      auto& copy = halves[static_cast<std::size_t>(half)];
      if (move == Move::commit) {
        if (!copy.valid()) copy.renew();
        return device->copy(buffer, copy);
      }
      if (move == Move::forget) return Future<void>(Result<void>());
      if (!buffer.valid()) buffer.renew();
      return device->copy(copy, buffer);
    });
  }
  /// Room whose contents need not be kept; a rollback makes the reference valid again, its contents
  /// undefined.
  template <Element T>
  void add_scratch(GpuRef<T>& buffer) {
    add_entry([&buffer](Move move, int) {
      if (move != Move::commit && !buffer.valid()) buffer.renew();
      return Future<void>(Result<void>());
    });
  }
  /// A trivially copyable host value that belongs to the state.
  template <class T>
  void add_value(T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    add_entry([&value, halves = std::vector<T>(2)](Move move, int half) mutable {
      auto& copy = halves[static_cast<std::size_t>(half)];
      if (move == Move::commit) copy = value;
      if (move == Move::rollback) value = copy;
      return Future<void>(Result<void>());
    });
  }

  /// Submits the copies of the state as it stands after `step`. World::commit() is what
  /// applications call.
  Future<void> commit(std::int64_t step);
  /// Goes back to the commit of `step`, one of the last two; waits for it.
  Result<void> rollback(std::int64_t step);
  /// Before any commit is complete everywhere: forgets the half-made one and makes the references
  /// valid that it left stale. Never fails.
  Result<void> forget();
  /// Step of the newest commit that was submitted; -1: none.
  [[nodiscard]] std::int64_t newest() const noexcept { return steps_[current_]; }

 private:
  enum class Move { commit, rollback, forget };
  using Entry = std::function<Future<void>(Move, int half)>;
  void add_entry(Entry entry) { entries_.push_back(std::move(entry)); }
  Future<void> move_all(Move move, int half);

  Device* device_;
  std::vector<Entry> entries_;
  std::int64_t steps_[2] = {-1, -1};
  std::size_t current_ = 1;  ///< the half of the newest commit
};

}  // namespace troupe
