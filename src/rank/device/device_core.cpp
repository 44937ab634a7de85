#include "rank/device/device_core.hpp"

#include <cstring>

#include <nlohmann/json.hpp>

#include <troupe/actor/patient_tell.hpp>

#include "common/ipc/descriptors.hpp"
#include "rank/device/recording/recorder.hpp"

namespace troupe::rank_process {
namespace {

constexpr auto kTellLibraries = std::chrono::seconds(10);  ///< it takes milliseconds

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

}  // namespace

Result<std::shared_ptr<DeviceCore>> DeviceCore::open(ActorSystem& system, Options options,
                                                     int rank) {
  ipc::raise_descriptor_limit();  // device hosts inherit it
  auto early = std::exchange(options.early, nullptr);
  if (early && !early->suits(options.settings.launch, options.flight)) early.reset();
  auto flight = early ? FlightRecorder::create(options.flight, early->take_segment())
                      : FlightRecorder::create(options.flight);
  if (!flight) return flight.error();
  options.settings.flight = flight->get();
  // The library that is named must be there; the driver's may be missing.
  if (const auto& file = options.nvml; !file.empty() && file != HealthSource::kNone) {
    if (const auto nvml = Nvml::load(file.c_str()); !nvml.ok())
      return Error{Errc::invalid, 0, nvml.error().message};
  }
  options.settings.launch =
      launch_beside(options.settings.launch, options.flight, (*flight)->segment_fd());
  std::shared_ptr<DeviceCore> core(new DeviceCore(std::move(options), std::move(*flight), rank));
  auto described = std::make_shared<Promise<std::string>>();
  const auto description = described->future();
  core->actor_ =
      system.spawn<DeviceActor>({.name = "device", .mailbox_capacity = 4096},
                                core->options_.settings, &core->port_, described, std::move(early));
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
               auto made = pools_.allocate(bytes, DType::u8);
               if (!made) return made.error();
               return Loans::Fresh{std::move(made->lease), made->where};
             }),
      pools_(*this, {.rank = rank,
                     .device = options_.settings.launch.device,
                     .slab_bytes = options_.slab_bytes,
                     .pinned_bytes = options_.pinned_bytes,
                     .memory_limit = options_.memory_limit}),
      modules_(*this, options_.kernels) {
  options_.settings.health = &health_log_;
  port_.buffers().begin_with(options_.first_generation);
  port_.set_cells([this](std::size_t bytes) -> Result<detail::ResultCell> {
    auto pin = pools_.allocate_pinned(bytes, 1);
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
  modules_.builder().stop();
}

}  // namespace troupe::rank_process
