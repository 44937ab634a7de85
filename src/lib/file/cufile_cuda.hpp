#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <utility>

#include <troupe/error.hpp>

namespace troupe::file {

/// cuFile, NVIDIA's library for transfers between GPU memory and files (GPUDirect Storage). It is
/// loaded at run time. Its compatibility mode, in which it silently copies through host memory, is
/// switched off: what it takes is direct, and what it cannot do directly is an error. One per
/// process, because the library has its settings for all of it.
class CuFile {
 public:
  /// `library`: its file. Errors: unsupported, if it is not installed, too old, or finds no way
  /// from the GPU to any disk.
  static Result<CuFile> load(const char* library);
  /// The installed one, loaded when it is first asked for. A context is current then.
  static const Result<CuFile>& installed();

  /// A file that is open with O_DIRECT, for transfers.
  class File {
   public:
    File(const CuFile& library, void* handle) : library_(&library), handle_(handle) {}
    File(File&& other) noexcept
        : library_(other.library_), handle_(std::exchange(other.handle_, nullptr)) {}
    File& operator=(File&&) = delete;
    ~File();

    // Bytes moved, fewer than asked for at the end of a file; -1: errno; below: cuFile's own
    // number, negative. The memory is the GPU's; offset and bytes are multiples of kBlock.
    [[nodiscard]] ssize_t write(const void* memory, std::size_t bytes, off_t offset) const;
    [[nodiscard]] ssize_t read(void* memory, std::size_t bytes, off_t offset) const;

   private:
    const CuFile* library_;
    void* handle_;
  };
  static constexpr std::size_t kBlock = 4096;  ///< what O_DIRECT wants multiples of

  /// Errors: unsupported, if cuFile cannot reach this file directly. The descriptor is the
  /// caller's, and stays open as long as the result is used. This must outlive it.
  [[nodiscard]] Result<File> open(int fd) const;

 private:
  CuFile() = default;

  void* register_ = nullptr;
  void* deregister_ = nullptr;
  void* read_ = nullptr;
  void* write_ = nullptr;
};

}  // namespace troupe::file
