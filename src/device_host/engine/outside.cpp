#include "device_host/engine/outside.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <sstream>

#include "common/ipc/code_file.hpp"
#include "device_host/engine/library.hpp"
#include "plugin/module.hpp"

// Whoever changes one of these raises plugin::kAbiVersion: modules of other builds share them.
static_assert(troupe::plugin::kAbiVersion == 3);
static_assert(sizeof(troupe::Operand) == 32 && sizeof(troupe::TailOperand) == 40);
static_assert(sizeof(troupe::OperationInfo) == 240);
static_assert(sizeof(troupe::Error) == 56 && sizeof(troupe::Result<void>) == 64);
static_assert(sizeof(troupe::Parts) == 48 && sizeof(troupe::host::Call) == 72);
static_assert(sizeof(troupe::host::Dependency) == 72 && sizeof(troupe::host::AddressMap) == 96);

namespace troupe::host {
namespace {

namespace fs = std::filesystem;

/// The modules that have been loaded, by library.
struct Modules {
  std::mutex mutex;
  std::map<std::string, void*, std::less<>> by_library;
};
Modules& modules() {
  static auto& the_one = *new Modules;  // threads look things up until the process has gone
  return the_one;
}

Error unfit(const fs::path& file, const std::string& why) {
  return {Errc::unsupported, 0, file.string() + " " + why};
}

/// The module's file as the stamp wants it, or where that wants none, as it is.
Result<ipc::CodeFile> kept(const wire::LibraryStamp& stamp, const std::string& file) {
  if (stamp.module == decltype(stamp.module){}) return ipc::look_at_code(file);
  return ipc::CodeFile{file, {stamp.module[0], stamp.module[1]}};
}

/// What a module says of itself, if it fits.
Result<const plugin::Module*> fitting(void* module, const fs::path& file,
                                      const wire::LibraryStamp& stamp, const std::string& engine) {
  const auto* const about =
      static_cast<const plugin::Module*>(::dlsym(module, plugin::kModuleSymbol));
  if (about == nullptr)
    return unfit(
        file, "is no library for troupe: it does not export " + std::string(plugin::kModuleSymbol));
  if (about->abi != plugin::kAbiVersion) {
    return unfit(file, "has ABI version " + std::to_string(about->abi) +
                           ", this troupe has version " + std::to_string(plugin::kAbiVersion) +
                           ": build the library with this troupe");
  }
  if (about->engine != engine)
    return unfit(file, "is for the " + std::string(about->engine) + " engine");
  for (const auto& [library, fingerprint] : about->fingerprints()) {
    if (library != stamp.library()) continue;
    if (fingerprint == stamp.fingerprint) return about;
    return unfit(file, "has other operations of library " + std::string(library) +
                           " than the program: build both of the same sources");
  }
  return unfit(file, "has no operation of library " + std::string(stamp.library()));
}

}  // namespace

Result<void> load_outside_library(wire::LibraryStamp& stamp, const std::string& engine,
                                  const std::string& folders) {
  const std::string library(stamp.library()), name = "troupe-" + library + "-" + engine + ".so";
  std::vector<fs::path> all;
  std::istringstream text(folders);
  for (std::string folder; std::getline(text, folder, ':');) all.emplace_back(folder);
  for (const auto& folder : module_folders()) all.push_back(folder);
  std::error_code ignored;
  const auto folder = std::find_if(
      all.begin(), all.end(), [&](const fs::path& one) { return fs::exists(one / name, ignored); });
  if (folder == all.end()) {
    std::string looked;
    for (const auto& one : all) looked += (looked.empty() ? "" : ", ") + one.string();
    return Error{Errc::unsupported, 0,
                 "there is no " + name + " in " + looked + " (see --library-path)"};
  }
  const auto file = *folder / name;
  const auto found = kept(stamp, file.string());
  if (!found) return Error{Errc::unsupported, 0, found.error().message};
  const auto loaded = ipc::load_code(*found, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!loaded) {
    const bool by_loader = loaded.code() != Errc::invalid;
    return by_loader ? unfit(file, "cannot be loaded: " + loaded.error().message)
                     : Error{Errc::unsupported, 0, loaded.error().message};
  }
  void* const module = *loaded;
  const auto about = fitting(module, file, stamp, engine);
  if (!about) return about.error();

  const std::lock_guard lock(modules().mutex);
  if (known_library_lane(library)) return {};  // another device host of this process has it
  auto operations = (*about)->operations();
  std::erase_if(operations, [&](const auto* info) { return info->library() != library; });
  try {
    const Library known{std::span<const OperationInfo* const>(operations)};
  } catch (const Exception& refused) {
    return unfit(file, "cannot be used: " + refused.error().message);
  }
  modules().by_library[library] = module;
  stamp.module = {found->content.low, found->content.high};
  return {};
}

void* outside_module(std::string_view library) {
  const std::lock_guard lock(modules().mutex);
  const auto found = modules().by_library.find(library);
  return found == modules().by_library.end() ? nullptr : found->second;
}

}  // namespace troupe::host
