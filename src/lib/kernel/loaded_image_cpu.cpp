#include "lib/kernel/loaded_image_cpu.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <vector>

#include <troupe/lib/kernel.hpp>

#include "common/ipc/whole_file.hpp"

namespace troupe::host::cpu {
namespace {

#if defined(__x86_64__)
constexpr std::uint16_t kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr std::uint16_t kMachine = EM_AARCH64;
#endif

bool is_object(std::span<const std::byte> bytes) {
  ElfW(Ehdr) head;
  if (bytes.size() < sizeof head) return false;
  std::memcpy(&head, bytes.data(), sizeof head);
  return std::memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 && head.e_machine == kMachine;
}

/// The first of `count` that has the name; nullptr: none.
template <class Entry>
const Entry* named(const Entry* first, unsigned count, std::string_view name) {
  const auto* const found =
      std::find_if(first, first + count, [&](const Entry& one) { return one.name == name; });
  return found == first + count ? nullptr : found;
}

}  // namespace

/// A half that has failed keeps its images as long as the process lives: the next one takes them
/// over instead of loading them once more.
Result<std::shared_ptr<LoadedImage>> LoadedImage::of(const ContentId& id,
                                                     std::span<const std::byte> bytes) {
  static std::mutex mutex;
  static std::vector<std::pair<ContentId, std::weak_ptr<LoadedImage>>> all;
  const std::lock_guard lock(mutex);
  std::erase_if(all, [](const auto& one) { return one.second.expired(); });
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.first == id; });
  if (found != all.end()) {
    if (auto image = found->second.lock()) return image;
  }
  auto image = load(bytes);
  if (image.ok()) all.emplace_back(id, *image);
  return image;
}

LoadedImage::~LoadedImage() {
  if (module_ != nullptr) ::dlclose(module_);
}

Result<std::shared_ptr<LoadedImage>> LoadedImage::load(std::span<const std::byte> bytes) {
  auto image = std::make_shared<LoadedImage>();
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  Result<void> opened;
  if (text.starts_with(kernel::kHostKernels))
    opened = image->open_library(std::string(text.substr(kernel::kHostKernels.size())));
  else if (is_object(bytes))
    opened = image->open_object(bytes);
  else
    opened = Error{Errc::unsupported, 0,
                   "kernel: the image is not for the cpu engine, which takes kernels as source, or "
                   "as host functions (CompileOptions::host_kernels)"};
  if (!opened.ok()) return opened.error();
  return image;
}

Result<void> LoadedImage::open_object(std::span<const std::byte> bytes) {
  fd_.reset(::memfd_create("troupe-kernels", MFD_CLOEXEC));
  if (!fd_) return Error{Errc::io, errno, "kernel: memfd_create"};
  if (auto written = ipc::write_whole(fd_.get(), bytes); !written) return written;
  // The loader knows files by their names: the descriptor stays open as long as this one is used.
  const auto path = "/proc/self/fd/" + std::to_string(fd_.get());
  module_ = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module_ == nullptr) return Error{Errc::invalid, 0, std::string("kernel: ") + ::dlerror()};
  table_ = static_cast<const troupe_kernel::Table*>(::dlsym(module_, troupe_kernel::kTableSymbol));
  if (table_ == nullptr || table_->version != troupe_kernel::kVersion)
    return Error{Errc::invalid, 0, "kernel: the image was not made by this version of troupe"};
  return {};
}

Result<void> LoadedImage::open_library(const std::string& path) {
  module_ = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module_ == nullptr)
    return Error{Errc::unsupported, 0, std::string("kernel: host functions: ") + ::dlerror()};
  host_ = static_cast<const HostKernels*>(::dlsym(module_, kHostKernelsSymbol));
  if (host_ == nullptr)
    return Error{Errc::unsupported, 0,
                 "kernel: " + path + " names no host functions (TROUPE_HOST_KERNELS)"};
  return {};
}

std::optional<LoadedImage::Kernel> LoadedImage::find(std::string_view name) const {
  if (host_ != nullptr) {
    const auto* const host = named(host_->kernel, host_->count, name);
    if (host == nullptr) return std::nullopt;
    return Kernel{.host = host, .sizes = {host->sizes, host->parameters}};
  }
  const auto* const entry = named(table_->entry, table_->entries, name);
  if (entry == nullptr) return std::nullopt;
  return Kernel{.entry = entry, .sizes = {entry->sizes, entry->parameters}};
}

std::pair<void*, std::uint64_t> LoadedImage::variable(const std::string& name) const {
  void* const address = ::dlsym(module_, name.c_str());
  Dl_info info{};
  void* symbol = nullptr;
  if (address == nullptr || ::dladdr1(address, &info, &symbol, RTLD_DL_SYMENT) == 0 ||
      symbol == nullptr)
    return {};
  return {address, static_cast<const ElfW(Sym)*>(symbol)->st_size};
}

}  // namespace troupe::host::cpu
