#include <dlfcn.h>

#include <filesystem>
#include <stdexcept>

#include "side.hpp"

namespace troupe::perf {

std::unique_ptr<Side> load_peer(const std::string& name, const PeerSetup& setup) {
  namespace fs = std::filesystem;
  const auto folder = fs::read_symlink("/proc/self/exe").parent_path().parent_path();
  const auto path = folder / "libexec" / "troupe" / ("troupe-perf-" + name + ".so");
  if (!fs::exists(path))
    throw std::runtime_error("--peer " + name + ": not built here: there is no " + path.string());
  void* module = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) throw std::runtime_error("--peer " + name + ": " + ::dlerror());
  const auto make =
      reinterpret_cast<decltype(&troupe_perf_make_peer)>(::dlsym(module, "troupe_perf_make_peer"));
  if (make == nullptr) throw std::runtime_error("--peer " + name + ": " + ::dlerror());
  return std::unique_ptr<Side>(make(setup));  // the module stays
}

}  // namespace troupe::perf
