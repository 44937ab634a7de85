#include "rank/device/memory/device_pools.hpp"

#include <algorithm>
#include <cstring>

#include "common/ipc/descriptors.hpp"
#include "rank/device/device_core.hpp"

namespace troupe::rank_process {
namespace {

/// A slab costs the rank a descriptor; a larger one leaves less for others on the GPU.
constexpr std::uint64_t kLargestSlab = std::uint64_t{2} << 30;

std::uint64_t total_bytes(std::uint64_t length, std::size_t element) {
  std::uint64_t bytes = 0;
  return __builtin_mul_overflow(length, element, &bytes) ? UINT64_MAX : bytes;
}

/// It is the program that asks for it, for as much as it likes.
Result<ipc::SharedMemory> make_shared_memory(const char* label, std::uint64_t bytes) {
  auto memory = ipc::SharedMemory::create(label, bytes, ipc::Look::first);
  if (memory.ok()) return memory;
  auto error = memory.error();
  error.message = "pinned memory: " + error.message;
  return error;
}

}  // namespace

/// Frees the buffer when the last reference goes, wherever that is.
class DevicePools::Lease final : public detail::BufferLease {
 public:
  Lease(std::shared_ptr<DeviceCore> core, std::uint32_t buffer)
      : core_(std::move(core)), buffer_(buffer) {}
  ~Lease() override { core_->port().buffers().drop(buffer_); }

  [[nodiscard]] bool valid(std::uint32_t generation) const noexcept override {
    return core_->port().buffers().valid(buffer_, generation);
  }
  [[nodiscard]] GpuToken token(std::uint32_t generation) const noexcept override {
    core_->pools().has_tokens_.store(true, std::memory_order_relaxed);
    return {.rank = core_->pools().options_.rank,
            .device = core_->pools().options_.device,
            .buffer = buffer_,
            .generation = generation};
  }
  std::uint32_t renew() override { return core_->port().buffers().generation(buffer_); }
  bool restore(const Operand& where) override { return core_->port().buffers().restore(where); }
  void set_name(std::string_view name) override { core_->port().buffers().set_name(buffer_, name); }

 private:
  std::shared_ptr<DeviceCore> core_;
  std::uint32_t buffer_;
};

DevicePools::DevicePools(DeviceCore& core, const Options& options)
    : core_(core),
      options_(options),
      slabs_({.segment_bytes = options.slab_bytes,
              .largest_segment_bytes = kLargestSlab,
              .limit = options.memory_limit,
              .region_bit = 0,
              .make = [this](std::uint32_t region,
                             std::uint64_t bytes) { return make_slab(region, bytes); },
              .drop = [this](std::uint32_t region) { drop_slab(region); }}),
      pinned_({.segment_bytes = options.pinned_bytes,
               .limit = 0,
               .region_bit = kPinnedRegion,
               .make = [this](std::uint32_t region,
                              std::uint64_t bytes) { return make_pinned(region, bytes); },
               .drop = [this](std::uint32_t region) { drop_pinned(region); }}) {}

void DevicePools::on_slab_dropped(std::function<void(std::uint32_t region)> listener) {
  const std::lock_guard lock(dropped_mutex_);
  slab_dropped_ = std::move(listener);
}

// Segments

Result<void> DevicePools::make_slab(std::uint32_t region, std::uint64_t bytes) {
  auto made = std::make_shared<Promise<void>>();
  auto future = made->future();
  if (auto told = core_.actor().tell(device_message::MakeSlab{region, bytes, std::move(made)});
      !told)
    return told;
  auto outcome = future.wait();
  if (outcome.ok()) {
    const std::lock_guard lock(dropped_mutex_);
    slab_bytes_[region] = bytes;
    core_.flight().board().held_bytes.fetch_add(bytes, std::memory_order_relaxed);
  }
  return outcome;
}

void DevicePools::drop_slab(std::uint32_t region) {
  core_.tell(device_message::DropRegion{region});
  const std::lock_guard lock(dropped_mutex_);
  if (const auto slab = slab_bytes_.extract(region); !slab.empty())
    core_.flight().board().held_bytes.fetch_sub(slab.mapped(), std::memory_order_relaxed);
  if (slab_dropped_) slab_dropped_(region);
}

Result<void> DevicePools::make_pinned(std::uint32_t region, std::uint64_t bytes) {
  if (auto kept = ipc::keep_descriptors(kReservedDescriptors); !kept) return kept;
  auto memory = make_shared_memory("troupe-pinned", bytes);
  if (!memory) return memory.error();
  auto shared = std::make_shared<ipc::SharedMemory>(std::move(*memory));
  auto mapped = std::make_shared<Promise<void>>();
  auto future = mapped->future();
  if (auto told = core_.actor().tell(device_message::MapPinned{region, shared, std::move(mapped)});
      !told)
    return told;
  if (const auto& outcome = future.wait(); !outcome.ok()) return outcome;
  const std::lock_guard lock(pinned_mutex_);
  pinned_memory_.emplace(region, std::move(shared));
  return {};
}

void DevicePools::drop_pinned(std::uint32_t region) {
  const std::lock_guard lock(pinned_mutex_);
  pinned_memory_.erase(region);
  core_.tell(device_message::DropRegion{region});
}

// Allocation

void DevicePools::reclaim() {
  for (const auto& [region, offset] : core_.port().buffers().collect_freed())
    slabs_.release({region, offset});
  std::vector<MemoryPool::Range> rested;
  {
    const std::lock_guard lock(pinned_mutex_);
    const auto pending = [&](std::uint64_t ticket) { return core_.port().pending(ticket); };
    std::erase_if(resting_, [&](const Resting& resting) {
      if (std::any_of(resting.users.begin(), resting.users.end(), pending)) return false;
      rested.push_back(resting.range);
      return true;
    });
  }
  for (const auto& range : rested) pinned_.release(range);
}

Result<detail::Allocation> DevicePools::allocate(std::uint64_t length, DType dtype) {
  const auto bytes = total_bytes(length, size_of(dtype));
  reclaim();
  auto range = slabs_.allocate(bytes);
  if (!range) return range.error();
  auto buffer = core_.port().buffers().add(range->region, range->offset, bytes, dtype);
  if (!buffer) {
    slabs_.release(*range);
    return buffer.error();
  }
  return detail::Allocation{std::make_shared<Lease>(core_.shared_from_this(), *buffer),
                            {.region = range->region,
                             .buffer = *buffer,
                             .generation = core_.port().buffers().generation(*buffer),
                             .offset = range->offset,
                             .bytes = bytes}};
}

Result<detail::PinnedAllocation> DevicePools::allocate_pinned(std::uint64_t length,
                                                              std::size_t element) {
  const auto bytes = total_bytes(length, element);
  reclaim();
  auto range = pinned_.allocate(bytes);
  if (!range) return range.error();
  std::byte* data = nullptr;
  {
    const std::lock_guard lock(pinned_mutex_);
    data = pinned_memory_.at(range->region)->data() + range->offset;
  }
  // Copies under way may still use the range when its owner lets go of it.
  const Operand where{.region = range->region, .offset = range->offset, .bytes = bytes};
  std::shared_ptr<void> lease(data,
                              [core = core_.shared_from_this(), range = *range, where](void*) {
                                auto users = core->port().users_of(where);
                                const std::lock_guard lock(core->pools().pinned_mutex_);
                                core->pools().resting_.push_back({std::move(users), range});
                              });
  return detail::PinnedAllocation{std::move(lease), data, where};
}

Result<detail::PinnedAllocation> DevicePools::allocate_apart(std::uint64_t bytes) {
  if (auto kept = ipc::keep_descriptors(kReservedDescriptors); !kept) return kept.error();
  auto memory = make_shared_memory("troupe-apart", bytes);
  if (!memory) return memory.error();
  auto shared = std::make_shared<ipc::SharedMemory>(std::move(*memory));
  const std::lock_guard lock(pinned_mutex_);
  const auto region = kPinnedRegion | kApartRegion | next_apart_++;
  pinned_memory_.emplace(region, shared);
  std::shared_ptr<void> lease(shared->data(), [core = core_.shared_from_this(), region](void*) {
    core->pools().drop_pinned(region);
  });
  return detail::PinnedAllocation{
      std::move(lease), shared->data(), {.region = region, .bytes = bytes}};
}

Future<void> DevicePools::map_apart(const Operand& memory) {
  auto mapped = std::make_shared<Promise<void>>();
  const auto future = mapped->future();
  const std::lock_guard lock(pinned_mutex_);
  const auto told = core_.actor().tell(device_message::MapPinned{
      memory.region, pinned_memory_.at(memory.region), std::move(mapped), true});
  return told.ok() ? future : Future<void>(told);
}

}  // namespace troupe::rank_process
