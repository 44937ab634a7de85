#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <troupe/device_info.hpp>
#include <troupe/future.hpp>
#include <troupe/gpu_health.hpp>
#include <troupe/gpu_ref.hpp>
#include <troupe/lib/memory.hpp>
#include <troupe/lib/submit.hpp>
#include <troupe/mapped_ref.hpp>

namespace troupe {

// Compilers show these lines where a header is missing.
template <class Refs>
class BasicBlas;  // #include <troupe/lib/blas.hpp>
template <class Refs>
class BasicFft;  // #include <troupe/lib/fft.hpp>
template <class Refs>
class BasicRng;  // #include <troupe/lib/rng.hpp>
template <class Refs>
class BasicSparse;  // #include <troupe/lib/sparse.hpp>
template <class Refs>
class BasicVector;  // #include <troupe/lib/vector.hpp>
class Solver;       // #include <troupe/lib/solver.hpp>
class Kernels;      // #include <troupe/lib/kernel.hpp>
class Functions;    // #include <troupe/lib/function.hpp>
class Sequence;     // #include <troupe/sequence.hpp>

namespace rank_process {
class DeviceCore;
}

namespace detail {
/// Device memory for a buffer, until the lease ends.
struct Allocation {
  std::shared_ptr<BufferLease> lease;
  Operand where;
};
/// Pinned memory, likewise.
struct PinnedAllocation {
  std::shared_ptr<void> lease;
  std::byte* data = nullptr;
  Operand where;
};
}  // namespace detail

/// Runs of elements that Device::copy_rows copies: the rows of a matrix, say, out of a larger one.
struct RowCopy {
  std::int64_t rows = 0, length = 0;  ///< how many, of how many elements each
  /// From the start of a row to that of the next, in elements; 0: they lie without gaps.
  std::int64_t source_leading = 0, destination_leading = 0;
};

/// What has taken so much of a device's memory: "slabs" (where buffers lie), "context",
/// "communicator", a library by its name, "workspaces", "standby", "free".
struct MemoryUse {
  std::string cause;
  std::uint64_t bytes = 0;
};

/// The GPU of this rank. It stays the same when the processes that drive it are replaced.
///
/// Operations are asynchronous and run as if in the order in which they were submitted; nothing
/// needs to be synchronised. Their futures resolve with an Error when they fail; errors of the
/// arguments are found before anything is launched. Every function may be called from any thread.
/// A Device is a handle, as a pointer is: its functions are const, and so are the calls of the
/// libraries' objects.
///
/// An object of a library, `const auto blas = device.blas()`, may be kept as long as the Runtime
/// is there. Each of its calls goes where the device's own would: into a recording that the calling
/// thread makes just then, else to the device.
class Device {
 public:
  using Refs = LocalRefs;  ///< what its library calls take

  /// A buffer of `length` elements, uninitialised; messages call it `name`. Throws Exception
  /// (out_of_memory, …).
  template <Element T>
  [[nodiscard]] GpuRef<T> alloc(std::int64_t length, std::string_view name = {}) const {
    return try_alloc<T>(length, name).take();
  }
  template <Element T>
  [[nodiscard]] Result<GpuRef<T>> try_alloc(std::int64_t length, std::string_view name = {}) const {
    if (length < 0)
      return Error{Errc::invalid, 0, "alloc: a buffer of " + std::to_string(length) + " elements"};
    auto allocation = allocate(static_cast<std::uint64_t>(length), dtype_of<T>);
    if (!allocation) return allocation.error();
    GpuRef<T> made(std::move(allocation->lease), allocation->where, length);
    if (!name.empty()) made.set_name(name);
    return made;
  }
  /// Pinned host memory, uninitialised. Throws Exception (out_of_memory).
  template <Element T>
  [[nodiscard]] PinnedBuffer<T> pinned(std::size_t length) const {
    auto pin = allocate_pinned(length, sizeof(T)).take();
    return PinnedBuffer<T>(std::move(pin.lease), reinterpret_cast<T*>(pin.data), length, pin.where);
  }

  /// Sets every element to `value`.
  template <Element T>
  Future<void> fill(const GpuRef<T>& destination, const std::type_identity_t<T>& value) const {
    memory::Fill op{
        dtype_of<T>, static_cast<std::uint64_t>(destination.length()), {}, destination.operand()};
    std::memcpy(op.pattern, &value, sizeof value);
    return detail::submit(submitter(), op);
  }
  /// Sets the first element of `result` to a number that tells the contents of `source` apart (see
  /// memory::Digest): the same for the same bytes on any rank and engine, another one if only one
  /// word of 8 bytes differs, and if more do with a probability of 1 - 2^-64.
  template <Element T>
  Future<void> digest(const GpuRef<T>& source, const GpuRef<std::uint64_t>& result) const {
    return detail::submit(submitter(),
                          memory::Digest{dtype_of<T>, source.operand(), result.operand()});
  }
  /// Copies all of `source` (device to device).
  template <Element T>
  Future<void> copy(const GpuRef<T>& source, const GpuRef<T>& destination) const {
    return detail::submit(submitter(),
                          memory::Copy{dtype_of<T>, source.operand(), destination.operand()});
  }
  /// The same from memory of another rank.
  template <Element T>
  Future<void> copy(const MappedRef<T>& source, const GpuRef<T>& destination) const {
    return read_mapped(source.range(),
                       memory::Copy{dtype_of<T>, source.range().where, destination.operand()});
  }
  /// Copies rows that lie apart, from the start of `source` to that of `destination`; between rows
  /// the destination is left as it is. Errors: invalid (a leading dimension is smaller than the
  /// length; a row lies beyond the end).
  template <Element T>
  Future<void> copy_rows(const GpuRef<T>& source, const GpuRef<T>& destination,
                         const RowCopy& rows) const {
    return detail::submit(submitter(),
                          copy_of_rows(dtype_of<T>, source.operand(), destination.operand(), rows));
  }
  template <Element T>
  Future<void> copy_rows(const MappedRef<T>& source, const GpuRef<T>& destination,
                         const RowCopy& rows) const {
    return read_mapped(source.range(), copy_of_rows(dtype_of<T>, source.range().where,
                                                    destination.operand(), rows));
  }
  /// Copies the first destination.length() elements of `source`, which must not change until the
  /// future resolves.
  template <Element T>
  Future<void> copy(const PinnedBuffer<T>& source, const GpuRef<T>& destination) const {
    if (static_cast<std::int64_t>(source.size()) < destination.length())
      return too_short("pinned source", source.size(), destination.length());
    return detail::submit(
        submitter(),
        memory::Copy{dtype_of<T>, source.operand(0, static_cast<std::size_t>(destination.length())),
                     destination.operand()});
  }
  /// Copies all of `source` to the start of `destination`.
  template <Element T>
  Future<void> copy(const GpuRef<T>& source, const PinnedBuffer<T>& destination) const {
    if (static_cast<std::int64_t>(destination.size()) < source.length())
      return too_short("pinned destination", destination.size(), source.length());
    return detail::submit(
        submitter(),
        memory::Copy{dtype_of<T>, source.operand(),
                     destination.operand(0, static_cast<std::size_t>(source.length()))});
  }
  /// Copies from ordinary memory, through pinned staging; `source` may be reused when the call
  /// returns. It must be as long as `destination`.
  template <Element T>
  Future<void> upload(std::span<const std::type_identity_t<T>> source, const GpuRef<T>& destination,
                      const std::source_location& where = std::source_location::current()) const {
    if (std::ssize(source) != destination.length())
      return wrong_upload(source.size(), destination.length(), where);
    return upload_bytes(std::as_bytes(source), destination.operand(), dtype_of<T>);
  }
  /// Waits for the contents of `source`. Throws Exception.
  template <Element T>
  [[nodiscard]] std::vector<T> download(const GpuRef<T>& source) const {
    std::vector<T> out(static_cast<std::size_t>(source.length()));
    download_bytes(source.operand(), std::as_writable_bytes(std::span(out)), dtype_of<T>).take();
    return out;
  }

  // The calls of the libraries. To use one, include its header, such as <troupe/lib/blas.hpp>:
  // this one includes no library. All others by `dnn::on(device)`.
  template <class Library = BasicVector<LocalRefs>>
  [[nodiscard]] auto vector() const {
    static_assert(detail::included<Library>, "vector() needs #include <troupe/lib/vector.hpp>");
    return Library(submitter());
  }
  template <class Library = BasicBlas<LocalRefs>>
  [[nodiscard]] auto blas() const {
    static_assert(detail::included<Library>, "blas() needs #include <troupe/lib/blas.hpp>");
    return Library(submitter());
  }
  template <class Library = BasicSparse<LocalRefs>>
  [[nodiscard]] auto sparse() const {
    static_assert(detail::included<Library>, "sparse() needs #include <troupe/lib/sparse.hpp>");
    return Library(submitter());
  }
  template <class Library = BasicRng<LocalRefs>>
  [[nodiscard]] auto rng() const {
    static_assert(detail::included<Library>, "rng() needs #include <troupe/lib/rng.hpp>");
    return Library(submitter());
  }
  template <class Library = BasicFft<LocalRefs>>
  [[nodiscard]] auto fft() const {
    static_assert(detail::included<Library>, "fft() needs #include <troupe/lib/fft.hpp>");
    return Library(submitter());
  }
  template <class Library = Solver>
  [[nodiscard]] auto solver() const {
    static_assert(detail::included<Library>, "solver() needs #include <troupe/lib/solver.hpp>");
    return Library(submitter());
  }

  // Kernels of the program's own: <troupe/lib/kernel.hpp> says more.
  /// `device.compile(source, {.names = {"scale<float>"}})`
  template <class Library = Kernels>
  auto compile(std::string source, typename Library::Compile options) const {
    return Library(*this).compile(std::move(source), std::move(options));
  }
  /// Takes an image that nvcc has made.
  template <class Library = Kernels>
  auto load(std::span<const std::byte> image, std::vector<std::string> names,
            std::string host_kernels = {}) const {
    return Library(*this).load(image, std::move(names), std::move(host_kernels));
  }
  /// `device.launch(kernel, {.grid = 8, .block = 256}, read(x), update(y), n, 2.0f)`
  template <class Library = Kernels, class... Arguments>
  Future<void> launch(const typename Library::One& kernel, const typename Library::Launching& how,
                      const Arguments&... arguments) const {
    return Library(*this).launch(kernel, how, arguments...);
  }

  /// A shared library of the program's whose functions run in the device host:
  /// <troupe/lib/function.hpp> says more.
  template <class Library = Functions>
  auto load_functions(std::string path) const {
    return typename Library::Libraries(std::move(path));
  }
  /// `device.call(functions.function("smooth"), read(x), write(y), n)`
  template <class Library = Functions, class... Arguments>
  Future<void> call(const typename Library::One& function, const Arguments&... arguments) const {
    return Library(*this).call(function, arguments...);
  }
  /// How many blocks of so many threads the device runs at once.
  template <class Library = Kernels>
  Future<std::uint64_t> occupancy(const typename Library::One& kernel, std::uint32_t threads,
                                  std::uint32_t shared_bytes = 0) const {
    return Library(*this).occupancy(kernel, threads, shared_bytes);
  }

  /// Calls that only make ready what the same calls will need:
  /// `fft::on(device.prepare()).forward(x, y, shape)` opens the library, makes the plan and loads
  /// the kernels, on zeros in scratch memory; x and y are neither read nor written. What has been
  /// prepared or run more than once is prepared by itself where a device host takes over. Futures
  /// with a value give zero. Errors: those of the call; unsupported for collectives and what moves
  /// memory.
  class Preparing {
   public:
    using Refs = LocalRefs;
    explicit Preparing(detail::Submitter& submitter) : submitter_(&submitter) {}
    [[nodiscard]] detail::Submitter& submitter() const noexcept { return *submitter_; }

   private:
    detail::Submitter* submitter_;
  };
  [[nodiscard]] Preparing prepare() const { return Preparing(preparer()); }

  /// Calls `calls`, whose submissions to this device, from this thread, are recorded instead of
  /// being run: <troupe/sequence.hpp> says more. What moves memory to or from the host, or by
  /// tokens, gives a value, or may block, cannot be recorded. Throws Exception: unsupported, with
  /// the name of what cannot be; invalid if nothing was submitted; what a call was refused for;
  /// what `calls` throws.
  [[nodiscard]] Sequence record(const std::function<void()>& calls) const;

  /// Does nothing, through the whole path.
  Future<void> nop() const { return detail::submit(submitter(), memory::Nop{}); }
  /// Lets the device host suffer a real fault when it reaches this command: for tests and drills.
  Future<void> inject(memory::FaultKind kind) const {
    return detail::submit(submitter(), memory::Fault{{}, kind, 0});
  }
  /// Changes one bit of `memory`, counted from its first byte on, as broken hardware might: for
  /// tests and drills.
  template <Element T>
  Future<void> flip(const GpuRef<T>& memory, std::uint64_t bit) const {
    return detail::submit(submitter(), memory::Flip{dtype_of<T>, bit, memory.operand()});
  }
  /// Lets this rank's GPU compute wrong numbers, which nothing tells of: for tests and drills.
  void inject(SilentFault fault) const;
  /// Has this rank's GPU say something of its health, which is then dealt with as what it says by
  /// itself: for tests and drills. HealthEvent::rank does not matter.
  void inject_health(const HealthEvent& event) const;
  /// Lets the next call of a library ("blas") fail: its command answers `library`, and the library
  /// is opened anew.
  Future<void> inject_library_fault(std::string_view library) const {
    memory::LibraryFault op;
    std::memcpy(op.library, library.data(), std::min(library.size(), sizeof op.library));
    return detail::submit(submitter(), op);
  }

  [[nodiscard]] const DeviceInfo& info() const;
  /// The first error of any command since the last call, like cudaGetLastError: wrong arguments,
  /// failed operations, transfers and remote operations, whether their futures were kept, read or
  /// dropped. Losses by a fault do not count. World::run() looks after every step.
  [[nodiscard]] Result<void> take_error() const;
  /// Those errors that nobody has read, neither by the future (see Future) nor by take_error().
  /// World::wait_active() forgives those of commands that a loss has ended or kept from running.
  /// run_program() ends a program that has left any with status 1.
  [[nodiscard]] UnreadErrors unread_errors() const;
  /// Where the device's memory has gone, as far as this rank knows: measured by what was free
  /// before and after, so that what other processes do at the same time is counted along. Waits for
  /// the device host. Errors: device_lost.
  [[nodiscard]] Result<std::vector<MemoryUse>> memory_use() const;
  /// What the GPU says of its own state. Takes some milliseconds, needs no device host, and says
  /// the same to all ranks that share the GPU. Errors: unsupported, if there is no GPU, or NVML,
  /// which comes with the driver, is not installed; library.
  [[nodiscard]] Result<GpuHealth> health() const;
  /// What has been opened until now, each with the files and versions that were loaded: "engine",
  /// then libraries of operations by name. Waits for the device host, where there is one.
  [[nodiscard]] std::vector<OpenedLibrary> libraries() const;
  /// Bytes of slabs this rank holds.
  [[nodiscard]] std::uint64_t bytes_held() const;
  /// Where commands go: for operations that have no typed call here.
  [[nodiscard]] detail::Submitter& submitter() const;

  // For troupe itself: what stands behind a device.

  explicit Device(std::shared_ptr<rank_process::DeviceCore> core) : core_(std::move(core)) {}
  [[nodiscard]] rank_process::DeviceCore& core() const noexcept { return *core_; }

 private:
  [[nodiscard]] detail::Submitter& preparer() const;
  static memory::CopyRows copy_of_rows(DType dtype, const Operand& source,
                                       const Operand& destination, const RowCopy& rows) noexcept {
    const auto leading = [&rows](std::int64_t given) {
      return given != 0 ? given : std::max<std::int64_t>(1, rows.length);
    };
    return {dtype,
            rows.length,
            rows.rows,
            leading(rows.source_leading),
            leading(rows.destination_leading),
            source,
            destination};
  }
  template <Operation Op>
  Future<void> read_mapped(const detail::MappedRange& source, const Op& op) const {
    return read_mapped(source, info_of<Op>, std::as_bytes(std::span(&op, 1)));
  }
  /// Submits an operation that reads `source`, in the epoch of its mapping. Errors: stale.
  Future<void> read_mapped(const detail::MappedRange& source, const OperationInfo& info,
                           std::span<const std::byte> op) const;
  Future<void> too_short(const char* what, std::size_t has, std::int64_t needed) const;
  Future<void> wrong_upload(std::size_t source, std::int64_t destination,
                            const std::source_location& where) const;
  Result<detail::Allocation> allocate(std::uint64_t length, DType dtype) const;
  Result<detail::PinnedAllocation> allocate_pinned(std::uint64_t length, std::size_t element) const;
  Future<void> upload_bytes(std::span<const std::byte> source, const Operand& destination,
                            DType dtype) const;
  Result<void> download_bytes(const Operand& source, std::span<std::byte> destination,
                              DType dtype) const;

  std::shared_ptr<rank_process::DeviceCore> core_;
};

}  // namespace troupe
