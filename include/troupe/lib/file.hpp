#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <troupe/lib/outside.hpp>
#include <troupe/lib/submit.hpp>

/// Files: ranges of device memory to and from a file, without a copy in the rank process.
///
/// The device host opens the file by its path. The cpu engine reads and writes a slab's memory
/// itself. The cuda engine has cuFile (GPUDirect Storage) move the data between the GPU and the
/// disk where the file system can; libcufile.so.0 is loaded when it is first asked for. Where that
/// cannot be, the data goes through a buffer in host memory, and the result says so.
namespace troupe::file {

/// How the data went.
enum class Way : std::uint32_t {
  direct,  ///< straight between device memory and the file
  compat   ///< through a buffer in host memory
};

/// What a transfer tells.
struct Done {
  std::uint64_t bytes = 0;  ///< from the start of the range; all of them unless `error` is set
  std::uint32_t crc32 = 0;  ///< zlib's crc32 of the whole range, if all of it was moved
  std::int32_t error = 0;  ///< errno of what went wrong; 0: nothing; ENODATA: the file is too short
  Way way{};
  std::uint32_t reserved = 0;
  char text[104] = {};  ///< what went wrong, or why the way is not direct; ends with a zero

  [[nodiscard]] std::string_view words() const noexcept {
    return {text, ::strnlen(text, sizeof text)};
  }
};

inline constexpr Traits kTraits{.repeatable = true, .blocking = true, .not_prepared = true};
inline constexpr std::uint32_t kMostPathBytes = 4096;

/// Writes a range of device memory to a file from `offset` on, and takes the range's checksum. The
/// file is made if it is not there, and otherwise keeps its other bytes. The path, absolute, stands
/// in the inline bytes. The data is the file's when this has ended; nothing waits until it is on
/// disk.
///
/// With cuFile whole blocks of 4 KiB of the file go straight from the GPU; what the range has
/// beside them at its ends, less than a block each, goes through host memory.
///
/// Errors: io, with errno as the native code (the file cannot be opened or written). With `report`
/// the value tells of it.
struct Write {
  static constexpr std::string_view kName = "file.write";
  static constexpr DTypes kDTypes = DTypes::all();
  static constexpr Traits kTraits = file::kTraits;
  static constexpr std::uint32_t kData = kMostPathBytes;

  OpDType dtype;
  OnFailure on_failure{};
  std::uint32_t path_bytes = 0;
  std::uint64_t offset = 0;
  Operand source;
  Operand done;          ///< Done
  Operand inode, place;  ///< see Touched

  static constexpr std::array kOperands{read("source", &Write::source), write("done", &Write::done),
                                        write("file", &Write::inode),
                                        write("place", &Write::place)};
  static constexpr auto kCell = &Write::done;
  Result<void> check() const;
  Result<void> check_parts(const Parts& parts) const;
  [[nodiscard]] Result<void> verdict(const std::byte* cell) const;
  /// Only `done` is overwritten as a whole: the file keeps its bytes outside the written range.
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    return &operand == &done ? sizeof(Done) : 0;
  }
};

/// Reads a range of device memory from a file, from `offset` on, and takes the range's checksum, of
/// what is in device memory then. Otherwise as Write; a file that ends too early is an error
/// (ENODATA). With `report` the contents of the range are undefined after an error.
struct Read {
  static constexpr std::string_view kName = "file.read";
  static constexpr DTypes kDTypes = DTypes::all();
  static constexpr Traits kTraits = file::kTraits;
  static constexpr std::uint32_t kData = kMostPathBytes;

  OpDType dtype;
  OnFailure on_failure{};
  std::uint32_t path_bytes = 0;
  std::uint64_t offset = 0;
  Operand destination;
  Operand done;          ///< Done
  Operand inode, place;  ///< see Touched

  static constexpr std::array kOperands{write("destination", &Read::destination),
                                        write("done", &Read::done), read("file", &Read::inode),
                                        read("place", &Read::place)};
  static constexpr auto kCell = &Read::done;
  Result<void> check() const;
  Result<void> check_parts(const Parts& parts) const;
  [[nodiscard]] Result<void> verdict(const std::byte* cell) const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    return &operand == &done ? sizeof(Done) : destination.bytes;
  }
};

/// All of them; whoever includes this header knows them.
using Operations = List<Write, Read>;
std::span<const OperationInfo* const> operations() noexcept;
inline const Library kLibrary{operations()};

/// Of a transfer.
struct Options {
  std::uint64_t offset = 0;  ///< bytes, in the file
  OnFailure on_failure = OnFailure::error;
};

/// The operands by which a file operation names its file (see outside.hpp). If the folder of the
/// path cannot be found, `place` is outside::everything().
struct Touched {
  Operand inode;  ///< of the file; absent: there is none yet
  Operand place;  ///< its name in its folder, where the file is or is made
};
/// Where an absolute path leads now.
Touched touched_by(const std::filesystem::path& path);

/// Submits Write or Read with a path, which need not be absolute, for a caller that waits for each
/// of its operations: it is ordered by memory alone.
template <Operation Op>
Future<Done> submit_unordered(detail::Submitter& submitter, Op op,
                              const std::filesystem::path& path, const Options& options) {
  std::error_code failed;  // of an empty path: the operation's check says so
  const auto absolute = std::filesystem::absolute(path, failed).string();
  std::vector<std::uint64_t> data((absolute.size() + 7) / 8);  // aligned
  std::memcpy(data.data(), absolute.data(), absolute.size());
  op.on_failure = options.on_failure, op.offset = options.offset;
  op.path_bytes = static_cast<std::uint32_t>(absolute.size());
  return detail::submit_for_value<Done>(
      submitter, op,
      Parts(std::span<const TailOperand>(), std::as_bytes(std::span(data)).first(absolute.size())));
}

/// The same in the order of all operations on the file.
template <Operation Op>
Future<Done> submit(detail::Submitter& submitter, Op op, const std::filesystem::path& path,
                    const Options& options) {
  const auto touched = touched_by(path);
  op.inode = touched.inode, op.place = touched.place;
  return submit_unordered(submitter, op, path, options);
}

}  // namespace troupe::file

namespace troupe {

/// Transfers between one device and files: see file::Write and file::Read. From `file::on(device)`.
class Files {
 public:
  explicit Files(detail::Submitter& submitter) : submitter_(&submitter) {}

  template <Element T>
  Future<file::Done> write(const GpuRef<T>& source, const std::filesystem::path& path,
                           const file::Options& options = {}) const {
    file::Write op;
    op.dtype = dtype_of<T>, op.source = source.operand();
    return file::submit(*submitter_, op, path, options);
  }
  template <Element T>
  Future<file::Done> read(const std::filesystem::path& path, const GpuRef<T>& destination,
                          const file::Options& options = {}) const {
    file::Read op;
    op.dtype = dtype_of<T>, op.destination = destination.operand();
    return file::submit(*submitter_, op, path, options);
  }

 private:
  detail::Submitter* submitter_;
};

namespace file {
/// The library's operations on a Device.
template <class D>
Files on(D&& device) {
  return Files(device.submitter());
}
}  // namespace file

}  // namespace troupe
