#include "facts.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>

#include <troupe/runtime.hpp>

extern char** environ;

namespace troupe::info {
namespace {

namespace fs = std::filesystem;

std::string first_line(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

std::vector<int> allowed_cores() {
  cpu_set_t set;
  std::vector<int> cores;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set) != 0) cores.push_back(core);
  }
  return cores;
}

/// The numbers of a list as the kernel writes it: "0-3,8".
std::vector<int> numbers_in(const std::string& list) {
  std::vector<int> numbers;
  std::istringstream ranges(list);
  for (std::string range; std::getline(ranges, range, ',');) {
    int first = 0, last = 0;
    const int found = std::sscanf(range.c_str(), "%d-%d", &first, &last);
    if (found == 1) last = first;
    for (int number = first; found > 0 && number <= last; ++number) numbers.push_back(number);
  }
  return numbers;
}

std::map<std::string, std::vector<int>> numa_nodes() {
  std::map<std::string, std::vector<int>> nodes;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator("/sys/devices/system/node", none)) {
    const auto name = entry.path().filename().string();
    if (name.starts_with("node") && name.size() > 4 && std::isdigit(name[4]) != 0)
      nodes[name.substr(4)] = numbers_in(first_line(entry.path() / "cpulist"));
  }
  return nodes;
}

std::map<std::string, std::string> variables() {
  constexpr std::string_view kPrefixes[] = {
      "SLURM_NTASKS=", "SLURM_PROCID=", "OMPI_COMM_WORLD_SIZE=", "CUDA_VISIBLE_DEVICES=", "NCCL_"};
  std::map<std::string, std::string> found;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (std::none_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [&](auto prefix) { return text.starts_with(prefix); }))
      continue;
    const auto name = text.substr(0, text.find('='));
    found.emplace(name, text.substr(name.size() + 1));
  }
  return found;
}

std::uint64_t limit_of(__rlimit_resource resource, rlim_t rlimit::*which) {
  rlimit limits{};
  const bool known = ::getrlimit(resource, &limits) == 0;
  return known && limits.*which != RLIM_INFINITY ? limits.*which : kUnlimited;
}

std::uint64_t number_or_none(const fs::path& file) {
  std::ifstream in(file);
  std::uint64_t value = 0;
  return in >> value ? value : kUnlimited;
}

/// What the node has left, and the control group of this process (version 2), if that has less.
std::uint64_t available_memory() {
  std::uint64_t available = kUnlimited, kib = 0;
  std::ifstream meminfo("/proc/meminfo");
  for (std::string line; std::getline(meminfo, line);) {
    if (std::sscanf(line.c_str(), "MemAvailable: %lu", &kib) == 1) available = kib << 10;
  }
  auto group = first_line("/proc/self/cgroup");
  if (!group.starts_with("0::/")) return available;
  const auto folder = fs::path("/sys/fs/cgroup") / group.substr(4);
  const auto most = number_or_none(folder / "memory.max");  // "max": no number
  const auto used = number_or_none(folder / "memory.current");
  if (most == kUnlimited || used == kUnlimited) return available;
  return std::min(available, most - std::min(most, used));
}

/// "580.65.06" of the line that the driver of GPUs shows; empty: there is none.
std::string driver_version() {
  std::istringstream words(first_line("/proc/driver/nvidia/version"));
  for (std::string word; words >> word;) {
    if (std::isdigit(word[0]) != 0 && word.find('.') != std::string::npos) return word;
  }
  return {};
}

std::string errno_text(const std::string& what) {
  return what + ": " + std::strerror(errno);
}

/// Why no file can be written there; empty: it can.
std::string try_to_write(const fs::path& file, const std::string& contents) {
  std::ofstream out(file);
  out << contents;
  out.close();
  return out ? std::string() : errno_text(file.string() + " cannot be written");
}

std::string random_text() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

/// A file that was written elsewhere may be seen late in a folder of a network.
bool appears(const fs::path& file, const std::string& contents) {
  for (int look = 0; look < 20; ++look) {
    if (first_line(file) == contents) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return false;
}

/// The folder, or the nearest above it that is there: a run makes what is missing below.
fs::path nearest(const fs::path& folder) {
  std::error_code error;
  auto there = fs::absolute(folder, error);
  while (!fs::exists(fs::symlink_status(there, error)) && there.has_relative_path())
    there = there.parent_path();
  return there;
}

/// Why this rank cannot use the folder by itself; empty: it can.
/// `free`: how many bytes are free there.
std::string try_folder(const fs::path& folder, const std::string& file_name, std::uint64_t& free) {
  std::error_code error;
  const auto status = fs::status(folder, error);
  if (!fs::exists(status)) return "it does not exist";
  if (!fs::is_directory(status)) return "it is no folder";
  const auto file = folder / file_name;
  auto failed = try_to_write(file, file_name);
  fs::remove(file, error);
  struct statvfs room {};
  if (::statvfs(folder.c_str(), &room) == 0)
    free = static_cast<std::uint64_t>(room.f_bavail) * room.f_frsize;
  return failed;
}

}  // namespace

RankFacts facts_of(const LaunchedJob& job) {
  RankFacts facts;
  facts.rank = job.rank();
  facts.local_rank = job.local_rank();
  facts.node = job.node();
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  facts.host = host;
  facts.environment = variables();
  facts.cores = allowed_cores();
  facts.nodes = numa_nodes();
  facts.descriptors = limit_of(RLIMIT_NOFILE, &rlimit::rlim_max);  // a rank goes up to it
  facts.locked_bytes = limit_of(RLIMIT_MEMLOCK, &rlimit::rlim_cur);
  std::error_code none;
  facts.rdma = !fs::is_empty("/sys/class/infiniband", none) && !none;
  struct statvfs shm {};
  if (::statvfs("/dev/shm", &shm) == 0) {
    facts.shm_bytes = static_cast<std::uint64_t>(shm.f_blocks) * shm.f_frsize;
    facts.shm_free = static_cast<std::uint64_t>(shm.f_bavail) * shm.f_frsize;
  }
  facts.host_memory = available_memory();
  facts.versions = {{"troupe", troupe_version()}, {"MPI", mpi_version()}};
  if (const auto driver = driver_version(); !driver.empty())
    facts.versions.emplace("NVIDIA driver", driver);
  return facts;
}

void add_device(RankFacts& facts, const Result<DeviceInfo>& device) {
  if (!device.ok()) {
    facts.device_error = device.error().to_string();
    return;
  }
  facts.engine = device->engine;
  facts.device_name = device->name;
  facts.uuid = device->uuid;
  facts.device_node = device->numa_node;
  facts.device_bytes = device->memory_bytes;
  for (const auto& library : device->libraries) facts.versions[library.name] = library.version;
}

void look_at_folder(const LaunchedJob& job, const std::string& folder, RankFacts& facts) {
  if (folder.empty()) return;
  const auto secret = job.gather_text(random_text()).front();
  const fs::path tried = job.gather_text(nearest(folder).string()).front();
  std::error_code error;
  if (!fs::exists(folder, error)) facts.folder_made_in = tried.string();
  const auto shared = tried / (".troupe-info-" + secret);
  facts.folder_error =
      try_folder(tried, fmt::format(".troupe-info-{}-{}", secret, job.rank()), facts.folder_free);
  std::string written;  // on rank 0: why not
  if (job.rank() == 0)
    written = facts.folder_error.empty() ? try_to_write(shared, secret) : facts.folder_error;
  const bool there = job.gather_text(written).front().empty();
  if (there && facts.folder_error.empty() && !appears(shared, secret))
    facts.folder_error = "it is not the folder that rank 0 sees";
  (void)job.gather_text("");  // all have looked
  std::error_code ignored;
  if (job.rank() == 0) fs::remove(shared, ignored);
}

void look_at_near_folder(const std::string& folder, RankFacts& facts) {
  if (folder.empty()) return;
  const auto tried = nearest(folder);
  std::error_code error;
  if (!fs::exists(folder, error)) facts.near_made_in = tried.string();
  facts.near_error = try_folder(tried, ".troupe-info-" + random_text(), facts.near_free);
}

std::string in_words(std::uint64_t bytes) {
  if (bytes == kUnlimited) return "unlimited";
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  return fmt::format("{:.{}f} {}", value, value < 10 && unit > 0 ? 1 : 0, kUnits[unit]);
}

}  // namespace troupe::info
