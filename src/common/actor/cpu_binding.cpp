#include "common/actor/cpu_binding.hpp"

#include <hwloc.h>
#include <sched.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

namespace troupe {
namespace {

std::string to_list(hwloc_const_bitmap_t cores) {
  char* text = nullptr;
  if (hwloc_bitmap_list_asprintf(&text, cores) < 0) return {};
  const std::unique_ptr<char, void (*)(void*)> owner(text, std::free);
  return text;
}

}  // namespace

struct CpuBinding::Sets {
  hwloc_topology_t topology = nullptr;
  hwloc_bitmap_t cores = hwloc_bitmap_alloc();

  Sets() = default;
  Sets(const Sets&) = delete;
  Sets& operator=(const Sets&) = delete;
  ~Sets() {
    hwloc_bitmap_free(cores);
    if (topology != nullptr) hwloc_topology_destroy(topology);
  }
};

CpuBinding::CpuBinding(std::unique_ptr<Sets> sets) : sets_(std::move(sets)) {}
CpuBinding::CpuBinding(CpuBinding&&) noexcept = default;
CpuBinding& CpuBinding::operator=(CpuBinding&&) noexcept = default;
CpuBinding::~CpuBinding() = default;

Result<CpuBinding> CpuBinding::parse(const std::string& cpuset) {
  auto sets = std::make_unique<Sets>();
  if (hwloc_topology_init(&sets->topology) != 0 || hwloc_topology_load(sets->topology) != 0) {
    return Error{Errc::io, errno, "hwloc cannot read the machine's topology"};
  }
  if (hwloc_bitmap_list_sscanf(sets->cores, cpuset.c_str()) != 0 ||
      hwloc_bitmap_iszero(sets->cores) != 0) {
    return Error{Errc::invalid, 0, "cpuset \"" + cpuset + "\" is no list such as 0-3,8"};
  }
  if (hwloc_bitmap_isincluded(sets->cores, hwloc_topology_get_allowed_cpuset(sets->topology)) ==
      0) {
    return Error{Errc::invalid, 0, "cpuset " + cpuset + " names cores that may not be used here"};
  }
  return CpuBinding(std::move(sets));
}

Result<CpuBinding> CpuBinding::near_node(int node, const std::string& allowed) {
  auto binding = parse(allowed);
  if (!binding) return binding;
  auto& sets = *binding->sets_;
  const auto* found =
      node < 0 ? nullptr
               : hwloc_get_numanode_obj_by_os_index(sets.topology, static_cast<unsigned>(node));
  if (found == nullptr) {
    return Error{Errc::invalid, 0, "there is no NUMA node " + std::to_string(node)};
  }
  hwloc_bitmap_and(sets.cores, sets.cores, found->cpuset);
  if (hwloc_bitmap_iszero(sets.cores) != 0) {
    return Error{Errc::invalid, 0,
                 "none of the cores " + allowed + " belongs to NUMA node " + std::to_string(node)};
  }
  return binding;
}

Result<void> CpuBinding::bind(std::thread& thread) const {
  if (hwloc_set_thread_cpubind(sets_->topology, thread.native_handle(), sets_->cores, 0) != 0) {
    return Error{Errc::io, errno, "hwloc_set_thread_cpubind"};
  }
  return {};
}

unsigned CpuBinding::count() const {
  return static_cast<unsigned>(hwloc_bitmap_weight(sets_->cores));
}

std::string CpuBinding::list() const {
  return to_list(sets_->cores);
}

Result<std::string> allowed_cores() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) {
    return Error{Errc::io, errno, "sched_getaffinity"};
  }
  const std::unique_ptr<hwloc_bitmap_s, void (*)(hwloc_bitmap_t)> cores(hwloc_bitmap_alloc(),
                                                                        hwloc_bitmap_free);
  for (unsigned core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) hwloc_bitmap_set(cores.get(), core);
  }
  return to_list(cores.get());
}

}  // namespace troupe
