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

#include "common/core/content_id.hpp"
#include "common/ipc/unique_fd.hpp"
#include "lib/kernel/image_cpu.hpp"

namespace troupe::host::cpu {

/// An image for the cpu engine, loaded: a shared object that stands in memory, made of a program's
/// kernels, or a library of host functions that the image names. Any thread.
class LoadedImage {
 public:
  /// The image of that content, loaded if it is not yet. Errors: unsupported (it is for another
  /// engine, or there is no such library), invalid, io.
  static Result<std::shared_ptr<LoadedImage>> of(const ContentId& id,
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

 private:
  static Result<std::shared_ptr<LoadedImage>> load(std::span<const std::byte> bytes);
  Result<void> open_object(std::span<const std::byte> bytes);
  Result<void> open_library(const std::string& path);

  UniqueFd fd_;
  void* module_ = nullptr;
  const troupe_kernel::Table* table_ = nullptr;
  const HostKernels* host_ = nullptr;
};

}  // namespace troupe::host::cpu
