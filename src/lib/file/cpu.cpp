#include <troupe/lib/file.hpp>

#include <zlib.h>

#include "common/ipc/file_size_signal.hpp"
#include "device_host/engine/cpu/library.hpp"
#include "lib/file/transfer.hpp"

namespace troupe::host::cpu {
namespace {

/// Files: the memory of a slab is the process's own, so each transfer is direct.
class FileHalf final : public LibraryHalfOf<FileHalf, file::Operations> {
 public:
  explicit FileHalf(Services& services) : services_(services) {}
  [[nodiscard]] Dependencies stands_on() const override {
    return {{"zlib", ::zlibVersion(), ::zlibVersion}};
  }
  /// All work is queued.
  [[nodiscard]] bool blocks(const OperationInfo&, const std::byte*, const Call&) override {
    return false;
  }
  Result<void> run(const file::Write& op, const Call& call) { return queue(op, op.source, call); }
  Result<void> run(const file::Read& op, const Call& call) {
    return queue(op, op.destination, call);
  }

 private:
  template <class Op>
  Result<void> queue(const Op& op, const Operand& range, const Call& call) {
    return services_.submit(
        call, [path = file::path_in(op, call.data()), offset = op.offset, bytes = range.bytes,
               memory = call.at(range), cell = call.at(op.done)] {
          const auto done = transfer(path, file::direction_of<Op>, memory, bytes, offset);
          std::memcpy(cell, &done, sizeof done);
        });
  }
  static file::Done transfer(const std::string& path, file::Direction direction, std::byte* memory,
                             std::uint64_t bytes, std::uint64_t offset) {
    file::Done done;
    const ipc::NoFileSizeSignal held_back;
    const auto fd = file::open(path, direction);
    note(done, fd ? file::move(fd.get(), direction, memory, bytes, offset) : file::Moved{0, errno},
         path, offset);
    if (done.error == 0) {
      done.crc32 = static_cast<std::uint32_t>(
          ::crc32_z(0, reinterpret_cast<const unsigned char*>(memory), bytes));
    }
    return done;
  }

  Services& services_;
};

}  // namespace
}  // namespace troupe::host::cpu

TROUPE_MODULE_HALF(troupe::host::cpu::FileHalf, cpu)
