#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <troupe/error.hpp>
#include <troupe/function.hpp>

#include "common/ipc/unique_fd.hpp"
#include "lib/kernel/arguments.hpp"
#include "lib/kernel/fibers/image_cpu.hpp"

namespace troupe::host::cpu {

/// A module of the cpu engine, loaded: a shared object that stands in memory, made of a program's
/// kernels, or a copy of the library of host functions that the image names. Each module has a
/// shared object, and with that variables, of its own. Any thread, but see initial().
class LoadedImage {
 public:
  /// The module of that key, loaded from its image if it is not yet. Errors: unsupported (it is for
  /// another engine, or there is no such library), invalid, io.
  static Result<std::shared_ptr<LoadedImage>> of(const kernel::ModuleKey& key,
                                                 std::span<const std::byte> bytes);
  LoadedImage() = default;
  ~LoadedImage();
  LoadedImage(const LoadedImage&) = delete;
  LoadedImage& operator=(const LoadedImage&) = delete;

  struct Kernel {
    const troupe_kernel::Entry* entry = nullptr;  ///< what each thread does; or:
    const HostKernel* host = nullptr;             ///< what all of them do
    std::span<const unsigned> sizes;              ///< of the parameters
  };
  [[nodiscard]] std::optional<Kernel> find(std::string_view name) const;
  /// There is one unless all kernels are host functions.
  [[nodiscard]] const troupe_kernel::Table* table() const noexcept { return table_; }
  /// A variable and its size; nullptr: there is none.
  [[nodiscard]] std::pair<void*, std::uint64_t> variable(const std::string& name) const;
  /// The contents of an existing variable before any kernel has run or any buffer was bound to it.
  /// The first call loads the image once more; one thread at a time. Errors: invalid, io.
  Result<std::span<const std::byte>> initial(const std::string& name);

 private:
  static Result<std::shared_ptr<LoadedImage>> load(std::span<const std::byte> bytes);
  /// Loads a shared object from a copy of its file.
  Result<void> open_copy(std::span<const std::byte> bytes);
  Result<void> open_object(std::span<const std::byte> bytes);
  /// `named`: see kernel::host_kernels_image().
  Result<void> open_library(std::string_view named);

  UniqueFd fd_;  ///< the copy
  void* module_ = nullptr;
  void* original_ = nullptr;               ///< the library that this is a copy of
  std::unique_ptr<LoadedImage> pristine_;  ///< the same, and nothing in it ever runs
  const troupe_kernel::Table* table_ = nullptr;
  const HostKernels* host_ = nullptr;
};

}  // namespace troupe::host::cpu
