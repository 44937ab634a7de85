#include <troupe/lib/file.hpp>

#include <array>
#include <optional>

#include "common/ipc/file_size_signal.hpp"
#include "device_host/engine/cuda/library.hpp"
#include "lib/file/checksum.hpp"
#include "lib/file/checksum_kernels.cuh"
#include "lib/file/cufile_cuda.hpp"
#include "lib/file/transfer.hpp"

namespace troupe::host::cuda {
namespace {

using file::Direction;
using file::Moved;

constexpr std::uint64_t kStagingBytes = std::uint64_t{8} << 20;  // twice

/// A file that is open for one transfer: for the processor and, where that can be, for cuFile.
struct Target {
  UniqueFd plain, unbuffered;
  std::optional<file::CuFile::File> direct;
  std::string reason;  ///< why it is not
};

Target open_target(const std::string& path, Direction direction) {
  Target target;
  target.plain = file::open(path, direction);
  if (!target.plain) return target;
  const auto& library = file::CuFile::installed();
  if (!library.ok()) {
    target.reason = library.error().message;
    return target;
  }
  target.unbuffered = file::open(path, direction, O_DIRECT);
  if (!target.unbuffered) {
    target.reason = std::string("O_DIRECT: ") + std::strerror(errno);
    return target;
  }
  auto opened = library->open(target.unbuffered.get());
  if (opened.ok()) {
    target.direct.emplace(std::move(*opened));
  } else {
    target.reason = opened.error().message;
  }
  return target;
}

/// Files, on the library's thread: a call comes back when its transfer has ended.
class FileHalf final : public LibraryHalfOf<FileHalf, file::Operations> {
 public:
  explicit FileHalf(Services& services) : services_(services) {}
  Result<void> open(Queue) override;
  Result<void> run(const file::Write& op, const Call& call) { return move(op, op.source, call); }
  Result<void> run(const file::Read& op, const Call& call) {
    return move(op, op.destination, call);
  }

 private:
  template <class Op>
  Result<void> move(const Op& op, const Operand& range, const Call& call);
  /// All of the range, in pieces that cuFile moves and others.
  Result<Moved> transfer(const Target& target, Direction direction, std::byte* memory,
                         std::uint64_t bytes, std::uint64_t offset, cudaStream_t stream);
  /// Whole blocks by cuFile.
  static Moved directly(const file::CuFile::File& file, Direction direction, std::byte* memory,
                        std::uint64_t bytes, std::uint64_t offset);
  /// Through pinned memory, two pieces at a time: one on the bus, the other on its way to the disk
  /// or from there.
  Result<Moved> staged(int fd, Direction direction, std::byte* memory, std::uint64_t bytes,
                       std::uint64_t offset, cudaStream_t stream);
  Result<Moved> write_staged(int fd, const std::byte* memory, std::uint64_t bytes,
                             std::uint64_t offset, cudaStream_t stream);
  Result<Moved> read_staged(int fd, std::byte* memory, std::uint64_t bytes, std::uint64_t offset,
                            cudaStream_t stream);
  Result<std::uint32_t> checksum(const std::byte* memory, std::uint64_t bytes, Queue queue);
  [[nodiscard]] std::byte* staging(std::uint64_t piece) const {
    return static_cast<std::byte*>(staging_.get()) + piece % 2 * kStagingBytes;
  }

  Services& services_;
  HostMemory staging_;  ///< two pieces
  HostMemory sum_;      ///< the checksum's sum, and the bytes behind the last word
  Workspace device_sum_;
};

Result<void> FileHalf::open(Queue) {
  TROUPE_CUDA_TRY(kernels::load_crc32());
  if (!staging_) TROUPE_CUDA_TRY(cudaMallocHost(staging_.out(), 2 * kStagingBytes));
  if (!sum_) TROUPE_CUDA_TRY(cudaMallocHost(sum_.out(), 2 * sizeof(std::uint32_t)));
  return {};
}

template <class Op>
Result<void> FileHalf::move(const Op& op, const Operand& range, const Call& call) {
  constexpr auto kDirection = file::direction_of<Op>;
  const auto path = file::path_in(op, call.data());
  auto* const memory = call.at(range);
  const auto stream = services_.stream(call.queue());
  TROUPE_CUDA_TRY(cudaStreamSynchronize(stream));  // what the range depends on has ended
  file::Done done;
  const ipc::NoFileSizeSignal held_back;
  const auto target = open_target(path, kDirection);
  if (!target.plain) {
    note(done, {0, errno}, path, op.offset);
  } else {
    done.way = target.direct ? file::Way::direct : file::Way::compat;
    put_words(done, target.reason);
    const auto moved = transfer(target, kDirection, memory, range.bytes, op.offset, stream);
    if (!moved) return moved.error();
    note(done, *moved, path, op.offset);
  }
  if (done.error == 0) {
    const auto crc = checksum(memory, range.bytes, call.queue());
    if (!crc) return crc.error();
    done.crc32 = *crc;
  }
  std::memcpy(call.at(op.done), &done, sizeof done);
  return {};
}

Result<Moved> FileHalf::transfer(const Target& target, Direction direction, std::byte* memory,
                                 std::uint64_t bytes, std::uint64_t offset, cudaStream_t stream) {
  constexpr std::uint64_t kBlock = file::CuFile::kBlock;
  const auto end = offset + bytes;
  const auto first = std::min(end, (offset + kBlock - 1) / kBlock * kBlock);
  const auto last = std::max(first, end / kBlock * kBlock);
  const int fd = target.plain.get();
  if (!target.direct || first == last) return staged(fd, direction, memory, bytes, offset, stream);
  auto moved = staged(fd, direction, memory, first - offset, offset, stream);
  if (!moved || moved->error != 0) return moved;
  auto more = directly(*target.direct, direction, memory + moved->bytes, last - first, first);
  moved->bytes += more.bytes, moved->error = more.error;
  if (moved->error != 0) return moved;
  const auto rest = staged(fd, direction, memory + moved->bytes, end - last, last, stream);
  if (!rest) return rest;
  return Moved{moved->bytes + rest->bytes, rest->error};
}

Moved FileHalf::directly(const file::CuFile::File& file, Direction direction, std::byte* memory,
                         std::uint64_t bytes, std::uint64_t offset) {
  Moved moved;
  while (moved.bytes < bytes) {
    auto* const from = memory + moved.bytes;
    const auto count = static_cast<std::size_t>(bytes - moved.bytes);
    const auto at = static_cast<off_t>(offset + moved.bytes);
    const auto done =
        direction == Direction::write ? file.write(from, count, at) : file.read(from, count, at);
    if (done == -1 && errno == EINTR) continue;
    if (done < 0) return {moved.bytes, done == -1 && errno != 0 ? errno : EIO};
    if (done == 0) return {moved.bytes, direction == Direction::write ? ENOSPC : ENODATA};
    moved.bytes += static_cast<std::uint64_t>(done);
    // In the middle of a block nothing can be asked for: that is the end of the file, or the disk.
    if (moved.bytes < bytes && moved.bytes % file::CuFile::kBlock != 0)
      return {moved.bytes, direction == Direction::write ? ENOSPC : ENODATA};
  }
  return moved;
}

Result<Moved> FileHalf::staged(int fd, Direction direction, std::byte* memory, std::uint64_t bytes,
                               std::uint64_t offset, cudaStream_t stream) {
  return direction == Direction::write ? write_staged(fd, memory, bytes, offset, stream)
                                       : read_staged(fd, memory, bytes, offset, stream);
}

Result<Moved> FileHalf::write_staged(int fd, const std::byte* memory, std::uint64_t bytes,
                                     std::uint64_t offset, cudaStream_t stream) {
  const auto size_of_piece = [&](std::uint64_t at) { return std::min(kStagingBytes, bytes - at); };
  const auto fetch = [&](std::uint64_t at) -> Result<void> {
    if (at >= bytes) return {};
    TROUPE_CUDA_TRY(cudaMemcpyAsync(staging(at / kStagingBytes), memory + at, size_of_piece(at),
                                    cudaMemcpyDeviceToHost, stream));
    return {};
  };
  TROUPE_CUDA_PROPAGATE(fetch(0));
  Moved moved;
  while (moved.bytes < bytes) {
    const auto at = moved.bytes;
    TROUPE_CUDA_TRY(cudaStreamSynchronize(stream));
    TROUPE_CUDA_PROPAGATE(fetch(at + kStagingBytes));
    const auto written = file::move(fd, Direction::write, staging(at / kStagingBytes),
                                    size_of_piece(at), offset + at);
    moved.bytes += written.bytes, moved.error = written.error;
    if (moved.error != 0) break;
  }
  TROUPE_CUDA_TRY(cudaStreamSynchronize(stream));
  return moved;
}

Result<Moved> FileHalf::read_staged(int fd, std::byte* memory, std::uint64_t bytes,
                                    std::uint64_t offset, cudaStream_t stream) {
  Moved moved;
  while (moved.bytes < bytes && moved.error == 0) {
    const auto at = moved.bytes;
    auto* const piece = staging(at / kStagingBytes);
    const auto read =
        file::move(fd, Direction::read, piece, std::min(kStagingBytes, bytes - at), offset + at);
    // The piece before is in place, and its buffer free, before the next but one is read.
    TROUPE_CUDA_TRY(cudaStreamSynchronize(stream));
    if (read.bytes != 0)
      TROUPE_CUDA_TRY(
          cudaMemcpyAsync(memory + at, piece, read.bytes, cudaMemcpyHostToDevice, stream));
    moved.bytes += read.bytes, moved.error = read.error;
  }
  TROUPE_CUDA_TRY(cudaStreamSynchronize(stream));
  return moved;
}

Result<std::uint32_t> FileHalf::checksum(const std::byte* memory, std::uint64_t bytes,
                                         Queue queue) {
  const auto words = bytes / sizeof(std::uint32_t), tail = bytes % sizeof(std::uint32_t);
  const auto stream = services_.stream(queue);
  TROUPE_CUDA_PROPAGATE(device_sum_.reserve(services_, queue, sizeof(std::uint32_t)));
  auto* const sum = static_cast<std::uint32_t*>(device_sum_.get());
  auto* const seen = static_cast<std::uint32_t*>(sum_.get());
  TROUPE_CUDA_TRY(kernels::crc32_sum(services_.launch(queue), memory, words, sum));
  TROUPE_CUDA_TRY(cudaMemcpyAsync(seen, sum, sizeof *sum, cudaMemcpyDeviceToHost, stream));
  if (tail != 0)
    TROUPE_CUDA_TRY(
        cudaMemcpyAsync(seen + 1, memory + bytes - tail, tail, cudaMemcpyDeviceToHost, stream));
  TROUPE_CUDA_TRY(cudaStreamSynchronize(stream));
  return crc32::finish(seen[0], words, reinterpret_cast<const unsigned char*>(seen + 1), tail);
}

}  // namespace
}  // namespace troupe::host::cuda

TROUPE_MODULE_HALF(troupe::host::cuda::FileHalf, cuda)
