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
fs::path device_host_program(const Config& config) {
  if (config.given("device-host")) return config.text("device-host");
  return installed() / "troupe-device-host";
}

/// The engine beside the device host, or where a wrapper is named that lies elsewhere, the
/// installed one.
fs::path module_for(const Config& config, const std::string& engine) {
  const auto name = "troupe-engine-" + engine + ".so";
  auto beside = device_host_program(config).parent_path() / name;
  std::error_code ignored;
  return fs::exists(beside, ignored) ? beside : installed() / name;
}

/// The same of what compiles kernels.
fs::path compile_program(const Config& config) {
  auto beside = device_host_program(config).parent_path() / "troupe-compile";
  std::error_code ignored;
  return fs::exists(beside, ignored) ? beside : installed() / "troupe-compile";
}

/// Where the modules of a program's own libraries may lie: as configured, then beside the program,
/// as CMake builds and installs both.
Result<std::string> library_folders(const Config& config) {
  std::string all;
  std::error_code ignored;
  for (const auto& folder : config.list("library-path")) {
    if (!fs::is_directory(folder, ignored))
      return Error{Errc::invalid, 0, "library-path: there is no folder " + folder};
    all += fs::absolute(folder).string() + ":";
  }
  const auto own = fs::canonical("/proc/self/exe", ignored).parent_path();
  return all + own.string() + ":" + (own.parent_path() / "libexec" / "troupe").string();
}

struct SpinTimes {
  std::chrono::nanoseconds waiter;   ///< a thread of the rank that waits for a future
  std::chrono::nanoseconds reactor;  ///< after the last command, when nobody waits
};
SpinTimes spin_times(const Config& config, int cores) {
  using std::chrono::milliseconds;
  if (config.text("spin") != "auto") {
    const auto time = config.duration("spin");
    return {time, time};
  }
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

bool cuda_is_possible(const Config& config) {
  std::error_code ignored;
  return fs::exists(module_for(config, "cuda"), ignored) && fs::exists("/dev/nvidiactl", ignored);
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

Result<DeviceCore::Options> device_options(const Config& config, const std::string& engine,
                                           int local_rank, int cores) {
  const auto program = device_host_program(config);
  const auto module = module_for(config, engine);
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
  if (auto allowed = check_segments(config, engine); !allowed) return allowed.error();
  if (config.flag("rehearse")) {
    if (config.text("isolation") == "thread")
      return Error{Errc::invalid, 0, "--rehearse kills device hosts: it wants --isolation process"};
    if (config.text("on-loss") == "shrink")
      return Error{Errc::invalid, 0,
                   "--rehearse is of a world that keeps its ranks: not with --on-loss shrink"};
  }
  if (config.flag("reproducible")) {
    if (config.text("on-loss") == "shrink")
      return Error{Errc::unsupported, 0,
                   "--reproducible: sums over fewer ranks have other bits: not with --on-loss "
                   "shrink"};
    pin_order_of_sums();
  }
  const auto& interface = config.text("gloo-interface");
  if (!interface.empty() && ::if_nametoindex(interface.c_str()) == 0) {
    return Error{Errc::invalid, errno,
                 "gloo-interface: there is no network interface " + interface + " on every host"};
  }
  auto folders = library_folders(config);
  if (!folders) return folders.error();
  const auto spin = spin_times(config, cores);
  DeviceCore::Options options;
  options.spin = spin.waiter;
  options.replay = config.flag("replay");
  options.check_indices = checks(config, "indices");
  options.slab_bytes = config.bytes("slab-size");
  options.pinned_bytes = config.bytes("pinned-pool");
  options.memory_limit = config.bytes("memory-limit");
  options.kernels.tool = compile_program(config).string();
  options.kernels.host_compiler = config.text("host-compiler");
  options.kernels.cache = kernel_cache_folder(config.text("kernel-cache"));
  const auto& nvml = config.text("nvml");
  options.nvml = nvml == "auto" ? std::string() : nvml;
  options.flight.records = static_cast<std::uint64_t>(config.integer("flight-records"));
  options.flight.directory = config.text("flight-dir");
  auto& settings = options.settings;
  settings.tuning_file = tuning_cache_file(config.text("tuning-cache")).string();
  settings.standby = config.text("standby") != "off";
  settings.heartbeat_timeout = config.duration("heartbeat-timeout");
  settings.op_timeout = config.duration("op-timeout");
  settings.restart_budget = config.flag("rehearse")
                                ? std::numeric_limits<int>::max()  // they are ordered by the run
                                : static_cast<int>(config.integer("restart-budget"));
  settings.restart_window = config.duration("restart-window");
  settings.asks_to_stop = config.text("on-loss") == "stop";
  auto& launch = settings.launch;
  launch.program = program.string();
  launch.module = module.string();
  launch.in_process = config.text("isolation") == "thread";
  launch.reproducible = config.flag("reproducible");
  launch.register_buffers = config.flag("register-buffers");
  launch.interface = interface;
  launch.library_folders = std::move(*folders);
  launch.device = local_rank;
  launch.threads = cores;
  launch.memory_limit = options.memory_limit;
  const auto& completion = config.text("completion");
  launch.completion = completion == "host_fn" ? wire::Completion::host_fn
                      : completion == "sync"  ? wire::Completion::sync
                                              : wire::Completion::event;
  if (config.text("standby") == "local") launch.standby = wire::Standby::alone;
  launch.spin_us = static_cast<std::uint32_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(spin.reactor).count());
  launch.ring_bytes = 4096;
  while (launch.ring_bytes < config.bytes("ring-size")) launch.ring_bytes *= 2;
  if (launch.in_process) settings.standby = false;
  return options;
}

Result<void> check_segments(const Config& config, const std::string& engine) {
  for (const auto* const option : {"slab-size", "pinned-pool", "ring-size"}) {
    if (engine != "cpu" && std::string_view(option) == "slab-size") continue;  // it is the GPU's
    const auto allowed = ipc::check_file_size(option, config.bytes(option));
    if (!allowed.ok())
      return Error{Errc::io, allowed.error().native,
                   allowed.error().message + ": raise it, or lower --" + option};
  }
  return {};
}

bool checks(const Config& config, std::string_view what) {
  const auto& words = config.list("check");
  return std::find(words.begin(), words.end(), what) != words.end();
}

Result<void> check_settings(const Config& config) {
  if (checks(config, "none") && config.list("check").size() > 1)
    return Error{Errc::invalid, 0, "check = " + config.text("check") + ": none stands alone"};
  if (config.flag("trace-kernels") && config.text("trace").empty())
    return Error{Errc::invalid, 0, "trace-kernels = on needs trace: the file to tell of them in"};
  if (config.text("on-health") == "shrink" && config.text("isolation") == "thread")
    return Error{Errc::invalid, 0,
                 "on-health = shrink gives up a device host: it wants isolation = process"};
  const auto longer = [&](const char* name, const char* than, const char* why) -> Result<void> {
    const auto limit = config.duration(name), least = config.duration(than);
    if (limit > least || limit.count() == 0) return {};
    const auto seconds = [](std::chrono::nanoseconds time) {
      return fmt::format("{:g} s", std::chrono::duration<double>(time).count());
    };
    return Error{Errc::invalid, 0,
                 fmt::format("{} = {} must be longer than {} = {}: {}", name, seconds(limit), than,
                             seconds(least), why)};
  };
  if (auto order = longer("phase-timeout", "heartbeat-timeout",
                          "a device host that hangs in a recovery has to be found in time");
      !order) {
    return order;
  }
  return longer("token-timeout", "heartbeat-timeout",
                "a transfer has to outlast the discovery that a device host hangs");
}

SaveOptions save_options(const Config& config) {
  SaveOptions options{
      .directory = config.text("checkpoint-dir"),
      .name = ::program_invocation_short_name,
      .every = config.integer("checkpoint-every"),
      .partner = config.text("partner") == "on" ||
                 (config.text("partner") == "auto" && config.text("on-loss") == "shrink"),
      .fingerprint = config.shaping(),
      .inputs = config.shaping_files()};
  const auto& io = config.text("checkpoint-io");
  options.io = io == "direct"   ? StateIo::direct
               : io == "pinned" ? StateIo::pinned
                                : StateIo::automatic;
  const auto& restart = config.text("restart");
  options.restart = restart == "auto"    ? SaveOptions::kNewest
                    : restart == "never" ? SaveOptions::kNever
                                         : config.integer("restart");
  return options;
}

std::optional<RehearsalOptions> rehearsal_options(const Config& config) {
  if (!config.flag("rehearse")) return std::nullopt;
  return RehearsalOptions{config.real("rehearse-tolerance"),
                          static_cast<std::uint64_t>(config.integer("seed"))};
}

int stop_signal(const Config& config) {
  const auto& name = config.text("stop-signal");
  return name == "USR1" ? SIGUSR1 : name == "USR2" ? SIGUSR2 : name == "TERM" ? SIGTERM : 0;
}

}  // namespace troupe::rank_process
