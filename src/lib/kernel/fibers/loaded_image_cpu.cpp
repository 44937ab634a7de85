#include "lib/kernel/fibers/loaded_image_cpu.hpp"

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

#include "common/ipc/code_file.hpp"
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

/// A descriptor's file, as the loader is told to find it.
std::string name_of(int fd) {
  return "/proc/self/fd/" + std::to_string(fd);
}

}  // namespace

/// A half that has failed keeps its images as long as the process lives: the next one takes them
/// over instead of loading them once more.
Result<std::shared_ptr<LoadedImage>> LoadedImage::of(const kernel::ModuleKey& key,
                                                     std::span<const std::byte> bytes) {
  static std::mutex mutex;
  static std::vector<std::pair<kernel::ModuleKey, std::weak_ptr<LoadedImage>>> all;
  const std::lock_guard lock(mutex);
  std::erase_if(all, [](const auto& one) { return one.second.expired(); });
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.first == key; });
  if (found != all.end()) {
    if (auto image = found->second.lock()) return image;
  }
  auto image = load(bytes);
  if (image.ok()) all.emplace_back(key, *image);
  return image;
}

LoadedImage::~LoadedImage() {
  if (original_ != nullptr) ::dlclose(original_);
  if (module_ == nullptr) return;
  ::dlclose(module_);
  // If dlclose() left the module loaded, keep the descriptor open: the loader knows the module by
  // the descriptor's number, so no other file may get that number.
  if (::dlopen(name_of(fd_.get()).c_str(), RTLD_LAZY | RTLD_NOLOAD) != nullptr) (void)fd_.release();
}

Result<std::shared_ptr<LoadedImage>> LoadedImage::load(std::span<const std::byte> bytes) {
  auto image = std::make_shared<LoadedImage>();
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  Result<void> opened;
  if (text.starts_with(kernel::kHostKernels))
    opened = image->open_library(text.substr(kernel::kHostKernels.size()));
  else if (is_object(bytes))
    opened = image->open_object(bytes);
  else
    opened = Error{Errc::unsupported, 0,
                   "kernel: the image is not for the cpu engine, which takes kernels as source, or "
                   "as host functions (CompileOptions::host_kernels)"};
  if (!opened.ok()) return opened.error();
  return image;
}

Result<void> LoadedImage::open_copy(std::span<const std::byte> bytes) {
  fd_.reset(::memfd_create("troupe-kernels", MFD_CLOEXEC));
  if (!fd_) return Error{Errc::io, errno, "kernel: memfd_create"};
  if (auto written = ipc::write_whole(fd_.get(), bytes); !written) return written;
  // The loader knows files by their names: the descriptor stays open as long as this one is used.
  module_ = ::dlopen(name_of(fd_.get()).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module_ == nullptr) return Error{Errc::invalid, 0, std::string("kernel: ") + ::dlerror()};
  return {};
}

Result<void> LoadedImage::open_object(std::span<const std::byte> bytes) {
  if (auto opened = open_copy(bytes); !opened) return opened;
  table_ = static_cast<const troupe_kernel::Table*>(::dlsym(module_, troupe_kernel::kTableSymbol));
  if (table_ == nullptr || table_->version != troupe_kernel::kVersion)
    return Error{Errc::invalid, 0, "kernel: the image was not made by this version of troupe"};
  return {};
}

Result<void> LoadedImage::open_library(std::string_view named) {
  const auto space = std::min(named.find(' '), named.size());
  const auto content = ContentId::of_text(named.substr(0, space));
  if (!content || space == named.size())
    return Error{Errc::invalid, 0, "kernel: the image names no library of host functions"};
  const ipc::CodeFile file{std::string(named.substr(space + 1)), *content};
  const auto failed = [](Error error) {
    error.message = "kernel: host functions: " + error.message;
    if (error.code == Errc::library) error.code = Errc::unsupported;
    return error;
  };
  // Load the original first: the loader finds its dependencies relative to its path, and has them
  // when the copy is loaded.
  const auto original = ipc::load_code(file, RTLD_NOW | RTLD_LOCAL);
  if (!original) return failed(original.error());
  original_ = *original;
  const auto bytes = ipc::read_code(file);
  if (!bytes) return failed(bytes.error());
  if (auto opened = open_copy(*bytes); !opened) return opened;
  const auto& path = file.path;
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

Result<std::span<const std::byte>> LoadedImage::initial(const std::string& name) {
  if (pristine_ == nullptr) {
    const auto bytes = ipc::read_whole(fd_.get());
    if (!bytes) return bytes.error();
    auto once_more = std::make_unique<LoadedImage>();
    if (auto opened = once_more->open_copy(*bytes); !opened) return opened.error();
    pristine_ = std::move(once_more);
  }
  const auto [address, bytes] = pristine_->variable(name);
  return std::span(static_cast<const std::byte*>(address), bytes);
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
