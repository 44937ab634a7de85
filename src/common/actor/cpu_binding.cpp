#include "common/actor/cpu_binding.hpp"

#include <hwloc.h>

#include <cerrno>
#include <utility>

namespace troupe {

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

Result<void> CpuBinding::bind(std::thread& thread) const {
  if (hwloc_set_thread_cpubind(sets_->topology, thread.native_handle(), sets_->cores, 0) != 0) {
    return Error{Errc::io, errno, "hwloc_set_thread_cpubind"};
  }
  return {};
}

}  // namespace troupe
