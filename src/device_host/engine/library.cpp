#include "device_host/engine/library.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <ranges>

#include "common/ipc/code_file.hpp"
#include "device_host/engine/outside.hpp"

namespace troupe::host {

namespace fs = std::filesystem;

std::vector<fs::path> module_folders() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&find_in_module), &info) == 0) return {};
  std::error_code ignored;
  const auto own = fs::canonical(info.dli_fname, ignored).parent_path();
  return {own, own.parent_path() / "libexec" / "troupe"};
}

/// Each of the lanes between host and device has a half of its own.
std::string_view library_of(Lane lane) noexcept {
  const bool moves = lane == Lane::host_to_device || lane == Lane::device_to_host;
  return to_string(moves ? Lane::memory : lane);
}

/// Why the module of a library is nowhere: this build lacked what the library needs, or somebody
/// has removed the file.
std::string why_absent(const std::string& name, const std::string& engine,
                       const std::string& file) {
  for (const auto part : std::views::split(std::string_view(TROUPE_NOT_BUILT), '|')) {
    const std::string_view entry(part.begin(), part.end());  // NAME-ENGINE=NEEDS
    const auto at = entry.find('=');
    if (entry.substr(0, at) != name + "-" + engine) continue;
    return "troupe was built without " + std::string(entry.substr(at + 1)) +
           "; install it, then configure and build troupe again";
  }
  const auto folders = module_folders();
  return "there is no " + ((folders.empty() ? fs::path() : folders.front()) / file).string();
}

Result<void*> find_in_module(const std::string& name, const std::string& engine,
                             const char* symbol) {
  if (void* const outside = outside_module(name); outside != nullptr) {
    if (void* const found = ::dlsym(outside, symbol); found != nullptr) return found;
    return Error{Errc::library, 0, name + ": " + ::dlerror()};
  }
  const auto file = "troupe-" + name + "-" + engine + ".so";
  for (const auto& folder : module_folders()) {
    const auto path = folder / file;
    std::error_code ignored;  // of a folder that may not be looked at
    if (!fs::exists(path, ignored)) continue;
    if (auto whole = ipc::check_whole(path.string()); !whole)
      return Error{Errc::library, whole.error().native, name + ": " + whole.error().message};
    // Never unloaded: what a library has registered or started is not undone.
    void* const module = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    void* const found = module == nullptr ? nullptr : ::dlsym(module, symbol);
    if (found != nullptr) return found;
    auto error = ipc::load_error({});
    const bool missing = error.code == Errc::unsupported;  // what the module needs, perhaps
    error.message = name + (missing ? ": not installed: " : ": ") + error.message;
    return error;
  }
  return Error{Errc::unsupported, 0, name + ": not installed: " + why_absent(name, engine, file)};
}

std::vector<LoadedLibrary> located(const Dependencies& dependencies) {
  std::vector<LoadedLibrary> all;
  for (const auto& [name, version, symbol] : dependencies) {
    Dl_info info{};
    const bool known = symbol != nullptr && ::dladdr(symbol, &info) != 0;
    std::error_code unresolved;
    const auto file = known ? fs::canonical(info.dli_fname, unresolved).string() : std::string();
    // OpenBLAS calls its version "OpenBLAS 0.3.21 …".
    const bool names_itself = version.starts_with(name + " ");
    all.push_back({name, names_itself ? version.substr(name.size() + 1) : version,
                   unresolved ? info.dli_fname : file});
  }
  return all;
}

std::vector<std::string> installed_libraries(const std::string& engine) {
  const std::string begin = "troupe-", end = "-" + engine + ".so";
  std::vector<std::string> names;
  for (const auto& folder : module_folders()) {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(folder, ignored)) {
      const auto file = entry.path().filename().string();
      if (!file.starts_with(begin) || !file.ends_with(end) || file.starts_with("troupe-engine-"))
        continue;
      names.push_back(file.substr(begin.size(), file.size() - begin.size() - end.size()));
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace troupe::host
