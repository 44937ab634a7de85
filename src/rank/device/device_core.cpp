#include "rank/device/device_core.hpp"

#include <algorithm>
#include <cstring>

#include <nlohmann/json.hpp>

#include <troupe/actor/patient_tell.hpp>

#include "common/ipc/descriptors.hpp"
#include "rank/device/recording/recorder.hpp"

namespace troupe::rank_process {
namespace {

/// A slab costs the rank a descriptor; a larger one leaves less for others on the GPU.
constexpr std::uint64_t kLargestSlab = std::uint64_t{2} << 30;
constexpr int kReadAttempts = 16;  ///< of a read, each but the last cut off by a fault
constexpr auto kTellLibraries = std::chrono::seconds(10);  ///< it takes milliseconds
constexpr std::size_t kStagingBytes = 8u << 20;  ///< of one copy between ordinary and device memory

DeviceInfo parse_info(const std::string& text) {
  const auto json = nlohmann::json::parse(text);
  DeviceInfo info{json.at("engine"),
                  json.at("name"),
                  json.at("uuid"),
                  json.at("bus_id"),
                  json.at("memory_bytes"),
                  json.at("numa_node"),
                  {},
                  json.at("compute_capability")};
  for (const auto& library : json.at("libraries"))
    info.libraries.push_back({library.at("name"), library.at("version"), library.at("file")});
  return info;
}

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
class DeviceCore::Lease final : public detail::BufferLease {
 public:
  Lease(std::shared_ptr<DeviceCore> core, std::uint32_t buffer)
      : core_(std::move(core)), buffer_(buffer) {}
  ~Lease() override { core_->port_.buffers().drop(buffer_); }

  [[nodiscard]] bool valid(std::uint32_t generation) const noexcept override {
    return core_->port_.buffers().valid(buffer_, generation);
  }
  [[nodiscard]] GpuToken token(std::uint32_t generation) const noexcept override {
    core_->has_tokens_.store(true, std::memory_order_relaxed);
    return {.rank = core_->rank_,
            .device = core_->options_.settings.launch.device,
            .buffer = buffer_,
            .generation = generation};
  }
  std::uint32_t renew() override { return core_->port_.buffers().generation(buffer_); }
  bool restore(const Operand& where) override { return core_->port_.buffers().restore(where); }
  void set_name(std::string_view name) override { core_->port_.buffers().set_name(buffer_, name); }

 private:
  std::shared_ptr<DeviceCore> core_;
  std::uint32_t buffer_;
};

Result<std::shared_ptr<DeviceCore>> DeviceCore::open(ActorSystem& system, Options options,
                                                     int rank) {
  ipc::raise_descriptor_limit();  // device hosts inherit it
  auto flight = FlightRecorder::create(options.flight);
  if (!flight) return flight.error();
  options.settings.flight = flight->get();
  // The library that is named must be there; the driver's may be missing.
  if (const auto& file = options.nvml; !file.empty() && file != HealthSource::kNone) {
    if (const auto nvml = Nvml::load(file.c_str()); !nvml.ok())
      return Error{Errc::invalid, 0, nvml.error().message};
  }
  options.settings.launch.flight_fd = (*flight)->segment_fd();
  options.settings.launch.tells_at_end = options.flight.activities != 0;
  std::shared_ptr<DeviceCore> core(new DeviceCore(std::move(options), std::move(*flight), rank));
  auto described = std::make_shared<Promise<std::string>>();
  const auto description = described->future();
  core->actor_ = system.spawn<DeviceActor>({.name = "device", .mailbox_capacity = 4096},
                                           core->options_.settings, &core->port_, described);
  if (core->options_.listener) core->tell(device_message::Listen{core->options_.listener});
  if (const auto& text = description.wait(); !text.ok()) return text.error();
  core->info_ = parse_info(*description.wait());
  core->flight_->show_device(core->info_.name);
  core->watch_health();
  return core;
}

DeviceCore::DeviceCore(Options options, std::unique_ptr<FlightRecorder> flight, int rank)
    : options_(std::move(options)),
      rank_(rank),
      flight_(std::move(flight)),
      port_({.spin = options_.spin, .replay = options_.replay, .flight = flight_.get()}),
      loans_(port_,
             [this](std::uint64_t bytes) -> Result<Loans::Fresh> {
               auto made = allocate(bytes, DType::u8);
               if (!made) return made.error();
               return Loans::Fresh{std::move(made->lease), made->where};
             }),
      slabs_({.segment_bytes = options_.slab_bytes,
              .largest_segment_bytes = kLargestSlab,
              .limit = options_.memory_limit,
              .region_bit = 0,
              .make = [this](std::uint32_t region,
                             std::uint64_t bytes) { return make_slab(region, bytes); },
              .drop = [this](std::uint32_t region) { drop_slab(region); }}),
      pinned_({.segment_bytes = options_.pinned_bytes,
               .limit = 0,
               .region_bit = kPinnedRegion,
               .make = [this](std::uint32_t region,
                              std::uint64_t bytes) { return make_pinned(region, bytes); },
               .drop = [this](std::uint32_t region) { drop_pinned(region); }}),
      builder_(options_.kernels) {
  options_.settings.health = &health_log_;
  port_.set_cells([this](std::size_t bytes) -> Result<detail::ResultCell> {
    auto pin = allocate_pinned(bytes, 1);
    if (!pin) return pin.error();
    std::memset(pin->data, 0, bytes);  // what only prepares writes nothing there
    return detail::ResultCell{pin->where, pin->data, std::move(pin->lease)};
  });
}

DeviceCore::~DeviceCore() {
  shut_down();
}

Result<std::vector<MemoryUse>> DeviceCore::memory_use() const {
  const auto told = std::make_shared<Promise<std::vector<MemoryUse>>>();
  auto future = told->future();
  (void)actor_.tell(device_message::AskMemory{told});
  return future.wait();
}

/// An engine without GPUs has none to watch, unless NVML is named: then it is the GPU with the
/// number that the rank has on its node.
void DeviceCore::watch_health() {
  const bool has_gpu = !info_.bus_id.empty();
  const auto absent = has_gpu ? HealthSource::kDrivers : HealthSource::kNone;
  health_ = std::make_shared<const HealthSource>(
      options_.nvml.empty() ? absent : options_.nvml,
      Nvml::Gpu{has_gpu ? info_.uuid : std::string(),
                static_cast<unsigned>(options_.settings.launch.device)});
  if (health_->library() == HealthSource::kNone) return;
  health_watch_ = std::make_unique<HealthWatch>(
      health_, HealthWatch::Options{}, [actor = actor_](HealthEvent event, unsigned processes) {
        (void)tell_patiently(actor, device_message::Health{std::move(event), processes});
      });
}

void DeviceCore::inject_health(const HealthEvent& event) {
  const auto heard = std::make_shared<Promise<void>>();
  const auto future = heard->future();
  if (actor_.tell(device_message::Health{event, 0, heard}).ok()) (void)future.wait();
}

/// Without an answer of the DeviceActor it gives what the engine itself stands on.
std::vector<OpenedLibrary> DeviceCore::libraries() const {
  std::vector<OpenedLibrary> all{{"engine", info_.libraries}};
  const auto told = std::make_shared<Promise<std::vector<OpenedLibrary>>>();
  const auto future = told->future();
  if (!actor_.tell(device_message::AskLibraries{told}).ok() || !future.wait_for(kTellLibraries))
    return all;
  const auto& opened = future.wait();
  if (opened.ok()) all.insert(all.end(), opened->begin(), opened->end());
  return all;
}

void DeviceCore::shut_down() {
  if (actor_.ended()) return;
  port_.gate().close({Errc::stopped, 0, "the runtime has ended"});
  if (health_watch_) health_watch_->stop();  // it ends while the device hosts do
  constexpr auto patience = HostLink::kOwnEnd + std::chrono::seconds(10);
  (void)actor_.ask(device_message::ShutDown{}, patience).wait();
  health_watch_.reset();
  actor_.stop();
  actor_.wait_ended();  // it and its watcher use the port
  builder_.stop();
}

// Segments

Result<void> DeviceCore::make_slab(std::uint32_t region, std::uint64_t bytes) {
  auto made = std::make_shared<Promise<void>>();
  auto future = made->future();
  if (auto told = actor_.tell(device_message::MakeSlab{region, bytes, std::move(made)}); !told)
    return told;
  auto outcome = future.wait();
  if (outcome.ok()) {
    const std::lock_guard lock(dropped_mutex_);
    slab_bytes_[region] = bytes;
    flight_->board().held_bytes.fetch_add(bytes, std::memory_order_relaxed);
  }
  return outcome;
}

void DeviceCore::drop_slab(std::uint32_t region) {
  tell(device_message::DropRegion{region});
  const std::lock_guard lock(dropped_mutex_);
  if (const auto slab = slab_bytes_.extract(region); !slab.empty())
    flight_->board().held_bytes.fetch_sub(slab.mapped(), std::memory_order_relaxed);
  if (slab_dropped_) slab_dropped_(region);
}

Result<void> DeviceCore::make_pinned(std::uint32_t region, std::uint64_t bytes) {
  if (auto kept = ipc::keep_descriptors(kReservedDescriptors); !kept) return kept;
  auto memory = make_shared_memory("troupe-pinned", bytes);
  if (!memory) return memory.error();
  auto shared = std::make_shared<ipc::SharedMemory>(std::move(*memory));
  auto mapped = std::make_shared<Promise<void>>();
  auto future = mapped->future();
  if (auto told = actor_.tell(device_message::MapPinned{region, shared, std::move(mapped)}); !told)
    return told;
  if (const auto& outcome = future.wait(); !outcome.ok()) return outcome;
  const std::lock_guard lock(pinned_mutex_);
  pinned_memory_.emplace(region, std::move(shared));
  return {};
}

void DeviceCore::drop_pinned(std::uint32_t region) {
  const std::lock_guard lock(pinned_mutex_);
  pinned_memory_.erase(region);
  tell(device_message::DropRegion{region});
}

// Allocation

void DeviceCore::reclaim() {
  for (const auto& [region, offset] : port_.buffers().collect_freed())
    slabs_.release({region, offset});
  std::vector<MemoryPool::Range> rested;
  {
    const std::lock_guard lock(pinned_mutex_);
    const auto pending = [&](std::uint64_t ticket) { return port_.pending(ticket); };
    std::erase_if(resting_, [&](const Resting& resting) {
      if (std::any_of(resting.users.begin(), resting.users.end(), pending)) return false;
      rested.push_back(resting.range);
      return true;
    });
  }
  for (const auto& range : rested) pinned_.release(range);
}

Result<detail::Allocation> DeviceCore::allocate(std::uint64_t length, DType dtype) {
  const auto bytes = total_bytes(length, size_of(dtype));
  reclaim();
  auto range = slabs_.allocate(bytes);
  if (!range) return range.error();
  auto buffer = port_.buffers().add(range->region, range->offset, bytes, dtype);
  if (!buffer) {
    slabs_.release(*range);
    return buffer.error();
  }
  return detail::Allocation{std::make_shared<Lease>(shared_from_this(), *buffer),
                            {.region = range->region,
                             .buffer = *buffer,
                             .generation = port_.buffers().generation(*buffer),
                             .offset = range->offset,
                             .bytes = bytes}};
}

Result<detail::PinnedAllocation> DeviceCore::allocate_pinned(std::uint64_t length,
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
  std::shared_ptr<void> lease(data, [core = shared_from_this(), range = *range, where](void*) {
    auto users = core->port_.users_of(where);
    const std::lock_guard lock(core->pinned_mutex_);
    core->resting_.push_back({std::move(users), range});
  });
  return detail::PinnedAllocation{std::move(lease), data, where};
}

Result<detail::PinnedAllocation> DeviceCore::allocate_apart(std::uint64_t bytes) {
  if (auto kept = ipc::keep_descriptors(kReservedDescriptors); !kept) return kept.error();
  auto memory = make_shared_memory("troupe-apart", bytes);
  if (!memory) return memory.error();
  auto shared = std::make_shared<ipc::SharedMemory>(std::move(*memory));
  const std::lock_guard lock(pinned_mutex_);
  const auto region = kPinnedRegion | kApartRegion | next_apart_++;
  pinned_memory_.emplace(region, shared);
  std::shared_ptr<void> lease(
      shared->data(), [core = shared_from_this(), region](void*) { core->drop_pinned(region); });
  return detail::PinnedAllocation{
      std::move(lease), shared->data(), {.region = region, .bytes = bytes}};
}

Future<void> DeviceCore::map_apart(const Operand& memory) {
  auto mapped = std::make_shared<Promise<void>>();
  const auto future = mapped->future();
  const std::lock_guard lock(pinned_mutex_);
  const auto told = actor_.tell(device_message::MapPinned{
      memory.region, pinned_memory_.at(memory.region), std::move(mapped), true});
  return told.ok() ? future : Future<void>(told);
}

// Copies through staging

Future<void> DeviceCore::upload(std::span<const std::byte> source, const Operand& destination,
                                DType dtype) {
  std::vector<Future<void>> parts;
  std::vector<detail::PinnedAllocation> pins;
  const auto step = std::min(source.size(), kStagingBytes);
  for (std::size_t at = 0; at < source.size(); at += step) {
    const auto bytes = std::min(step, source.size() - at);
    const auto turn =
        parts.size() % 2;  // two staging buffers: one is filled while the other is copied
    if (parts.size() < 2) {
      auto pin = allocate_pinned(step, 1);
      if (!pin) return port_.refuse(pin.error());
      pins.push_back(std::move(*pin));
    } else {
      parts[parts.size() - 2].wait_ready();
    }
    std::memcpy(pins[turn].data, source.data() + at, bytes);
    Operand from = pins[turn].where, to = destination;
    from.bytes = to.bytes = bytes;
    to.offset += at;
    parts.push_back(detail::submit(port_, memory::Copy{dtype, from, to}));
  }
  return when_all(std::move(parts));
}

Result<void> DeviceCore::download(const Operand& source, std::span<std::byte> destination,
                                  DType dtype) {
  for (int attempt = 1;; ++attempt) {
    auto outcome = download_once(source, destination, dtype);
    const bool cut = outcome.code() == Errc::device_lost || outcome.code() == Errc::world_reformed;
    if (!cut || attempt == kReadAttempts || port_.gate().closed()) return outcome;
  }
}

Result<void> DeviceCore::download_once(const Operand& source, std::span<std::byte> destination,
                                       DType dtype) {
  const auto step = std::min(destination.size(), kStagingBytes);
  std::vector<detail::PinnedAllocation> pins;
  std::vector<Future<void>> parts;
  const auto fetch = [&](std::size_t part) {
    const auto at = part * step;
    Operand from = source, to = pins[part % 2].where;
    from.bytes = to.bytes = std::min(step, destination.size() - at);
    from.offset += at;
    parts.push_back(detail::submit(port_, memory::Copy{dtype, from, to}));
  };
  const std::size_t count = step == 0 ? 0 : (destination.size() + step - 1) / step;
  for (std::size_t part = 0; part < std::min<std::size_t>(2, count); ++part) {
    auto pin = allocate_pinned(step, 1);
    if (!pin) return pin.error();
    pins.push_back(std::move(*pin));
    fetch(part);
  }
  for (std::size_t part = 0; part < count; ++part) {
    if (const auto& done = parts[part].wait(); !done.ok()) return done;
    const auto at = part * step;
    std::memcpy(destination.data() + at, pins[part % 2].data,
                std::min(step, destination.size() - at));
    if (part + 2 < count) fetch(part + 2);
  }
  return {};
}

}  // namespace troupe::rank_process
