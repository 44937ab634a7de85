#include "rank/launch.hpp"

#include <dlfcn.h>
#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <limits>

#include <fmt/format.h>

#include "common/ipc/pages.hpp"

namespace troupe::rank_process {
namespace {

namespace fs = std::filesystem;

/// Where this code itself lies: libtroupe, or the program it is linked into.
fs::path own_folder() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&cuda_is_possible), &info) == 0 ||
      info.dli_fname == nullptr)
    return {};
  std::error_code ignored;
  return fs::canonical(info.dli_fname, ignored).parent_path();
}

fs::path installed() {
  return own_folder().parent_path() / "libexec" / "troupe";
}

/// The device-host program: as configured, else in libexec/troupe beside the folder of the library
/// or program.
fs::path device_host_program(const Settings& settings) {
  if (!settings.device_host.empty()) return settings.device_host;
  return installed() / "troupe-device-host";
}

/// The engine beside the device host, or where a wrapper is named that lies elsewhere, the
/// installed one.
fs::path module_for(const Settings& settings, const std::string& engine) {
  const auto name = "troupe-engine-" + engine + ".so";
  auto beside = device_host_program(settings).parent_path() / name;
  std::error_code ignored;
  return fs::exists(beside, ignored) ? beside : installed() / name;
}

/// The same of what compiles kernels.
fs::path compile_program(const Settings& settings) {
  auto beside = device_host_program(settings).parent_path() / "troupe-compile";
  std::error_code ignored;
  return fs::exists(beside, ignored) ? beside : installed() / "troupe-compile";
}

/// Where the modules of a program's own libraries may lie: as configured, then beside the program,
/// as CMake builds and installs both.
Result<std::string> library_folders(const Settings& settings) {
  std::string all;
  std::error_code ignored;
  for (const auto& folder : settings.library_path) {
    if (!fs::is_directory(folder, ignored))
      return Error{Errc::invalid, 0, "library-path: there is no folder " + folder};
    all += fs::absolute(folder).string() + ":";
  }
  const auto own = fs::canonical("/proc/self/exe", ignored).parent_path();
  return all + own.string() + ":" + (own.parent_path() / "libexec" / "troupe").string();
}

wire::Completion completion_of(CompletionMode mode) {
  switch (mode) {
    case CompletionMode::event: return wire::Completion::event;
    case CompletionMode::host_fn: return wire::Completion::host_fn;
    case CompletionMode::sync: return wire::Completion::sync;
  }
  return wire::Completion::event;
}

struct SpinTimes {
  std::chrono::nanoseconds waiter;   ///< a thread of the rank that waits for a future
  std::chrono::nanoseconds reactor;  ///< after the last command, when nobody waits
};
SpinTimes spin_times(const Settings& settings, int cores) {
  using std::chrono::milliseconds;
  if (settings.spin) return {*settings.spin, *settings.spin};
  // A rank has two threads that spin: its own, and its device host's reactor. To wake both takes a
  // quarter of a millisecond: half a percent of the longest wait without that. To wake the reactor
  // alone takes 50 us, three percent of the time that it spins.
  return cores >= 3 ? SpinTimes{milliseconds(50), milliseconds(2)} : SpinTimes{};
}

}  // namespace

std::string core_mask() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return {};
  std::string mask(CPU_SETSIZE, '0');
  for (std::size_t core = 0; core < mask.size(); ++core) {
    if (CPU_ISSET(core, &set) != 0) mask[core] = '1';
  }
  return mask;
}

int core_share(const std::vector<std::string>& masks, std::size_t rank) {
  double share = 0;
  for (std::size_t core = 0; core < masks[rank].size(); ++core) {
    if (masks[rank][core] != '1') continue;
    share += 1.0 / static_cast<double>(
                       std::count_if(masks.begin(), masks.end(), [&](const std::string& mask) {
                         return core < mask.size() && mask[core] == '1';
                       }));
  }
  return std::max(1, static_cast<int>(share + 1e-6));  // thirds do not add up exactly
}

bool cuda_is_possible(const Settings& settings) {
  std::error_code ignored;
  return fs::exists(module_for(settings, "cuda"), ignored) && fs::exists("/dev/nvidiactl", ignored);
}

/// NCCL and cuBLAS read these in the device hosts, which inherit them. By itself NCCL chooses among
/// algorithms that add in different orders, some of which depend on who comes first; a ring with
/// one protocol adds in the order of the ranks on it. (How many rings there are, and so which one
/// adds an element, is pinned where communicators are made.) cuBLAS may split a product up in
/// different ways where several streams share its workspace, unless that is as large as this. What
/// else computes, here and in the cpu engine, gives the same bits in any case.
static void pin_order_of_sums() {
  for (const auto& [name, value] : {std::pair{"NCCL_ALGO", "Ring"},
                                    {"NCCL_PROTO", "Simple"},
                                    {"CUBLAS_WORKSPACE_CONFIG", ":4096:8"}})
    ::setenv(name, value, 1);
}

Result<DeviceCore::Options> device_options(const Settings& settings, const std::string& engine,
                                           int local_rank, int cores) {
  const auto program = device_host_program(settings);
  const auto module = module_for(settings, engine);
  for (const auto& file : {program, module}) {
    std::error_code ignored;
    if (!fs::exists(file, ignored)) {
      return Error{
          Errc::io, 0,
          file == program
              ? "there is no device-host program at " + file.string() + " (see --device-host)"
              : "the " + engine + " engine is not installed: no " + file.string()};
    }
  }
  if (::access(program.c_str(), X_OK) != 0) {
    return Error{Errc::io, 0,
                 "the device-host program " + program.string() + " cannot be executed"};
  }
  if (auto allowed = check_segments(settings, engine); !allowed) return allowed.error();
  if (settings.rehearse) {
    if (settings.isolation == Isolation::thread)
      return Error{Errc::invalid, 0, "--rehearse kills device hosts: it wants --isolation process"};
    if (settings.on_loss == OnLoss::shrink)
      return Error{Errc::invalid, 0,
                   "--rehearse is of a world that keeps its ranks: not with --on-loss shrink"};
  }
  if (settings.reproducible) {
    if (settings.on_loss == OnLoss::shrink)
      return Error{Errc::unsupported, 0,
                   "--reproducible: sums over fewer ranks have other bits: not with --on-loss "
                   "shrink"};
    pin_order_of_sums();
  }
  const auto& interface = settings.gloo_interface;
  if (!interface.empty() && ::if_nametoindex(interface.c_str()) == 0) {
    return Error{Errc::invalid, errno,
                 "gloo-interface: there is no network interface " + interface + " on every host"};
  }
  auto folders = library_folders(settings);
  if (!folders) return folders.error();
  const auto spin = spin_times(settings, cores);
  DeviceCore::Options options;
  options.spin = spin.waiter;
  options.replay = settings.replay;
  options.check_indices = settings.checks("indices");
  options.slab_bytes = settings.slab_size;
  options.pinned_bytes = settings.pinned_pool;
  options.memory_limit = settings.memory_limit;
  options.kernels.tool = compile_program(settings).string();
  options.kernels.host_compiler = settings.host_compiler;
  options.kernels.cache = kernel_cache_folder(settings.kernel_cache);
  options.nvml = settings.nvml == "auto" ? std::string() : settings.nvml;
  options.flight.records = static_cast<std::uint64_t>(settings.flight_records);
  options.flight.directory = settings.flight_dir;
  auto& device = options.settings;
  device.tuning_file = tuning_cache_file(settings.tuning_cache).string();
  device.standby = settings.standby != StandbyMode::off;
  device.heartbeat_timeout = settings.heartbeat_timeout;
  device.op_timeout = settings.op_timeout;
  device.restart_budget = settings.rehearse
                              ? std::numeric_limits<int>::max()  // they are ordered by the run
                              : static_cast<int>(settings.restart_budget);
  device.restart_window = settings.restart_window;
  device.asks_to_stop = settings.on_loss == OnLoss::stop;
  auto& launch = device.launch;
  launch.program = program.string();
  launch.module = module.string();
  launch.in_process = settings.isolation == Isolation::thread;
  launch.reproducible = settings.reproducible;
  launch.check_products = settings.checks("products");
  launch.register_buffers = settings.register_buffers;
  launch.interface = interface;
  launch.library_folders = std::move(*folders);
  launch.device = local_rank;
  launch.threads = engine == "cpu" ? cores : 1;  // which compute
  launch.memory_limit = options.memory_limit;
  launch.completion = completion_of(settings.completion);
  if (settings.standby == StandbyMode::local) launch.standby = wire::Standby::alone;
  launch.spin_us = static_cast<std::uint32_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(spin.reactor).count());
  launch.ring_bytes = 4096;
  while (launch.ring_bytes < settings.ring_size) launch.ring_bytes *= 2;
  if (launch.in_process) device.standby = false;
  return options;
}

Result<void> check_segments(const Settings& settings, const std::string& engine) {
  struct Segment {
    const char* option;
    std::uint64_t bytes;
  };
  std::vector<Segment> segments{{"pinned-pool", settings.pinned_pool},
                                {"ring-size", settings.ring_size}};
  // The memory of a GPU is no file.
  if (engine == "cpu") segments.insert(segments.begin(), {"slab-size", settings.slab_size});
  for (const auto& [option, bytes] : segments) {
    const auto allowed = ipc::check_file_size(option, bytes);
    if (!allowed.ok())
      return Error{Errc::io, allowed.error().native,
                   allowed.error().message + ": raise it, or lower --" + option};
  }
  return {};
}

Result<void> check_settings(const Settings& settings) {
  if (settings.checks("none") && settings.check.size() > 1)
    return Error{Errc::invalid, 0,
                 fmt::format("check = {}: none stands alone", fmt::join(settings.check, ","))};
  if (settings.trace_kernels && settings.trace.empty())
    return Error{Errc::invalid, 0, "trace-kernels = on needs trace: the file to tell of them in"};
  if (settings.on_health == OnHealth::shrink && settings.isolation == Isolation::thread)
    return Error{Errc::invalid, 0,
                 "on-health = shrink gives up a device host: it wants isolation = process"};
  if (settings.on_rank_loss == OnRankLoss::respawn && settings.isolation == Isolation::thread)
    return Error{Errc::invalid, 0,
                 "on-rank-loss = respawn wants isolation = process: the device host must not be in "
                 "the process that dies"};
  if (settings.verify > 0 && settings.rehearse)
    return Error{Errc::invalid, 0, "verify: not with rehearse, which does all intervals again"};
  if (settings.on_rank_loss == OnRankLoss::respawn && settings.rehearse)
    return Error{Errc::invalid, 0, "on-rank-loss = respawn: not with rehearse"};
  if (settings.on_rank_loss == OnRankLoss::respawn && settings.partner == Partner::off)
    return Error{
        Errc::invalid, 0,
        "on-rank-loss = respawn wants partner = on: a rank that comes back has its state from "
        "there"};
  if (settings.spares > 0 && settings.on_rank_loss != OnRankLoss::respawn)
    return Error{Errc::invalid, 0,
                 fmt::format("spares = {}: only with on-rank-loss = respawn", settings.spares)};
  if (settings.on_health == OnHealth::replace && settings.spares == 0)
    return Error{Errc::invalid, 0, "on-health = replace wants spares: places to go to"};
  if (settings.on_slow == OnSlow::leave && settings.on_health == OnHealth::warn)
    return Error{
        Errc::invalid, 0,
        "on-slow = leave wants on-health = shrink or replace, which says how a GPU is left"};
  if (settings.slow_factor > 0 && settings.slow_factor <= 1)
    return Error{Errc::invalid, 0,
                 fmt::format("slow-factor = {}: greater than 1, or 0", settings.slow_factor)};
  const auto longer_than_a_heartbeat = [&](const char* name, std::chrono::nanoseconds limit,
                                           const char* why) -> Result<void> {
    if (limit > settings.heartbeat_timeout || limit.count() == 0) return {};
    const auto seconds = [](std::chrono::nanoseconds time) {
      return fmt::format("{:g} s", std::chrono::duration<double>(time).count());
    };
    return Error{Errc::invalid, 0,
                 fmt::format("{} = {} must be longer than heartbeat-timeout = {}: {}", name,
                             seconds(limit), seconds(settings.heartbeat_timeout), why)};
  };
  if (auto order =
          longer_than_a_heartbeat("phase-timeout", settings.phase_timeout,
                                  "a device host that hangs in a recovery has to be found in time");
      !order) {
    return order;
  }
  return longer_than_a_heartbeat(
      "token-timeout", settings.token_timeout,
      "a transfer has to outlast the discovery that a device host hangs");
}

std::string keeper_program() {
  return (installed() / "troupe-keeper").string();
}

SaveOptions save_options(const Settings& settings, const Config& config) {
  SaveOptions options{
      .directory = settings.checkpoint_dir,
      .name = ::program_invocation_short_name,
      .every = settings.checkpoint_every,
      .partner =
          settings.partner == Partner::on || settings.partner == Partner::every ||
          (settings.partner == Partner::automatic &&
           (settings.on_loss == OnLoss::shrink || settings.on_rank_loss == OnRankLoss::respawn ||
            !settings.checkpoint_local.empty())),
      .every_copy = settings.partner == Partner::every,
      .fingerprint = config.shaping(),
      .inputs = config.shaping_files()};
  options.local = settings.checkpoint_local;
  options.io = settings.checkpoint_io == CheckpointIo::direct   ? StateIo::direct
               : settings.checkpoint_io == CheckpointIo::pinned ? StateIo::pinned
                                                                : StateIo::automatic;
  const auto& restart = settings.restart;
  options.restart = restart.state == RestartFrom::State::newest ? SaveOptions::kNewest
                    : restart.state == RestartFrom::State::none ? SaveOptions::kNever
                                                                : restart.step;
  return options;
}

std::optional<RehearsalOptions> rehearsal_options(const Settings& settings) {
  if (!settings.rehearse) return std::nullopt;
  return RehearsalOptions{settings.rehearse_tolerance, static_cast<std::uint64_t>(settings.seed)};
}

int stop_signal(const Settings& settings) {
  switch (settings.stop_signal) {
    case StopSignal::usr1: return SIGUSR1;
    case StopSignal::usr2: return SIGUSR2;
    case StopSignal::term: return SIGTERM;
    case StopSignal::none: return 0;
  }
  return 0;
}

}  // namespace troupe::rank_process
