#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <troupe/device.hpp>
#include <troupe/lib/submit.hpp>
#include <troupe/remote_device.hpp>

/// Kernels of the program's own, in CUDA C++: compiled from source, or loaded as an image that nvcc
/// has made. docs/kernels.md has an example, and what the cpu engine can compile.
namespace troupe::kernel {

/// Limits of one kernel.
inline constexpr std::size_t kMaxArguments = 128, kMaxArgumentBytes = 4096;
/// The limit of a name as it stands in an image.
inline constexpr std::size_t kMaxNameBytes = 2048;
/// Variables of a module whose contents come from buffers.
inline constexpr std::size_t kMaxSymbols = 32;

/// What is known of a kernel on a device.
struct Facts {
  std::uint32_t max_threads = 0;         ///< of a block
  std::uint32_t registers = 0;           ///< of a thread
  std::uint32_t shared_bytes = 0;        ///< of a block, without dynamic shared memory
  std::uint32_t max_dynamic_shared = 0;  ///< bytes
  std::uint32_t local_bytes = 0;         ///< of a thread
  std::uint32_t parameters = 0;
  /// How many blocks as large as asked for run at once on a multiprocessor; 0: not asked for.
  std::uint32_t blocks_at_once = 0;
  std::uint32_t multiprocessors = 0;
  std::array<std::uint16_t, kMaxArguments> size{};  ///< of each parameter
};

static_assert(sizeof(Facts) % 8 == 0);

/// Loads a module and tells what a kernel of it is. Inline: the kernel's name in the image.
struct Describe {
  static constexpr std::string_view kName = "kernel.describe";
  static constexpr DTypes kDTypes = DTypes::all();
  static constexpr Traits kTraits = {.repeatable = true, .blocking = true, .not_prepared = true};
  static constexpr std::uint32_t kData = kMaxNameBytes;

  OpDType dtype;
  std::uint64_t image_id[2] = {};  ///< what the image is called by its contents
  std::uint64_t instance = 0;      ///< see Launch
  std::uint32_t threads = 0;       ///< of a block, for Facts::blocks_at_once
  std::uint32_t shared_bytes = 0;  ///< dynamic, of such a block
  Operand image;                   ///< in pinned memory
  Operand facts;

  static constexpr std::array kOperands{read("image", &Describe::image),
                                        write("facts", &Describe::facts)};
  static constexpr auto kCell = &Describe::facts;
  Result<void> check() const;
  Result<void> check_parts(const Parts& parts) const;
  [[nodiscard]] std::uint64_t written(const Operand& operand) const noexcept {
    return &operand == &facts ? sizeof(Facts) : 0;
  }
};

/// How long the parts of a launch's inline bytes are.
struct InlineExtent {
  std::uint32_t name_bytes = 0, arguments = 0, symbol_bytes = 0;
};

/// Launches a kernel. Inline: see Inline. Each buffer is an operand of the tail; its tag says where
/// its address belongs.
struct Launch {
  static constexpr std::string_view kName = "kernel.launch";
  static constexpr DTypes kDTypes = DTypes::all();
  static constexpr Traits kTraits = {.capturable = true, .not_prepared = true};
  static constexpr std::string_view kTail = "argument";
  static constexpr std::uint32_t kData = 12288;
  /// In an argument: its index, and 256 times the place of the address in it, in bytes.
  static constexpr std::uint32_t argument_tag(std::size_t index, std::size_t offset) noexcept {
    return static_cast<std::uint32_t>(offset << 8 | index);
  }
  /// Not an argument, but the contents of a variable of the module.
  static constexpr std::uint32_t kSymbol = 0x8000'0000u;

  OpDType dtype;
  std::uint64_t image_id[2] = {};
  /// Tells modules of one image apart, each of which has variables of its own.
  std::uint64_t instance = 0;
  std::uint32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1}, cluster[3] = {};
  std::uint32_t shared_bytes = 0;  ///< dynamic
  std::uint32_t cooperative = 0;   ///< 1: all blocks run at once, and may wait for one another
  std::uint32_t name_bytes = 0, arguments = 0, symbol_bytes = 0;
  Operand image;

  static constexpr std::array kOperands{read("image", &Launch::image)};
  [[nodiscard]] InlineExtent extent() const noexcept {
    return {name_bytes, arguments, symbol_bytes};
  }
  Result<void> check() const;
  Result<void> check_parts(const Parts& parts) const;
};

/// The same of a kernel that computes the same from the same inputs: after a fault it may run
/// again. What it is said to write it writes whole.
struct RepeatableLaunch : Launch {
  static constexpr std::string_view kName = "kernel.launch_repeatable";
  static constexpr Traits kTraits = {.repeatable = true, .capturable = true, .not_prepared = true};

  [[nodiscard]] std::uint64_t tail_written(const TailOperand& operand) const noexcept {
    return operand.range.bytes;
  }
};

/// A launch on another rank's device, which that rank makes a Launch of, with the image of its own.
/// In the place of the image's name stands what the module was made from, in the place of the
/// kernel's name in the image that in the program.
struct LaunchThere : Launch {
  static constexpr std::string_view kName = "kernel.launch_there";
  static constexpr Traits kTraits = {.remote = true, .not_prepared = true};
  static constexpr std::array<DeclaredOperand<LaunchThere>, 0> kOperands{};

  Result<void> check() const;
};
/// The same of what the owner makes a RepeatableLaunch.
struct RepeatableLaunchThere : LaunchThere {
  static constexpr std::string_view kName = "kernel.launch_there_repeatable";
};

/// What stands inline in a launch, each part padded to 8 bytes: the kernel's name in the image, the
/// size of each argument (32 bits), the arguments, the names of variables, each ended by a zero.
class Inline {
 public:
  /// Errors: invalid.
  static Result<Inline> parse(std::string_view operation, const InlineExtent& extent,
                              const Parts& parts);
  /// `values`: the arguments, each padded to 8 bytes; `symbols`: names, each ended by a zero.
  static std::vector<std::byte> pack(std::string_view name, std::span<const std::uint32_t> sizes,
                                     std::span<const std::byte> values, std::string_view symbols);

  [[nodiscard]] std::string_view name() const noexcept { return name_; }
  [[nodiscard]] std::span<const std::uint32_t> sizes() const noexcept { return sizes_; }
  /// The arguments, one behind another, each padded to 8 bytes.
  [[nodiscard]] std::span<const std::byte> values() const noexcept { return values_; }
  /// The name of a variable; empty: there are not so many.
  [[nodiscard]] std::string_view symbol(std::size_t index) const noexcept;

  static constexpr std::size_t padded(std::size_t bytes) noexcept { return (bytes + 7) / 8 * 8; }

 private:
  std::string_view name_;
  std::span<const std::uint32_t> sizes_;
  std::span<const std::byte> values_;
  std::string_view symbols_;
};

/// All of them; whoever includes this header knows them.
using Operations = List<Describe, Launch, RepeatableLaunch, LaunchThere, RepeatableLaunchThere>;
std::span<const OperationInfo* const> operations() noexcept;
inline const Library kLibrary{operations()};

}  // namespace troupe::kernel

namespace troupe {

namespace detail {
struct ModuleState;
}
class KernelModule;

namespace kernel {
/// The image of a library of host functions is this, what the library's file is called by its
/// contents, a space, and its path; see CompileOptions::host_kernels.
inline constexpr std::string_view kHostKernels = "troupe host kernels: ";
}  // namespace kernel

/// How a source is compiled.
struct CompileOptions {
  /// The kernels that will be launched, as CUDA C++ names them: "saxpy", "scale<float>".
  std::vector<std::string> names = {};
  std::string file = "kernel.cu";  ///< what the compiler's messages call the source
  std::map<std::string, std::string> headers = {};  ///< name and text of headers that are no files
  std::vector<std::string> include_paths = {};
  std::vector<std::string> defines = {};  ///< "N=4", "DEBUG"
  std::vector<std::string> options = {};  ///< others of NVRTC, or of the host's compiler
  std::string standard = "c++17";
  bool link_time_optimization = false;  ///< NVRTC's -dlto, and nvJitLink
  /// On the cpu engine nothing is compiled: a shared library, whose functions take the place of the
  /// kernels that are named (TROUPE_HOST_KERNELS in <troupe/function.hpp>). Its path as for a
  /// FunctionLibrary; the file must stay as it is. The way for what the cpu engine cannot compile.
  std::string host_kernels = {};
};

/// Where and how a kernel is launched.
struct LaunchOptions {
  /// The extent of a grid or a block, in up to three dimensions.
  struct Extent {
    std::uint32_t x = 1, y = 1, z = 1;
    Extent(std::integral auto in_x) : x(whole(in_x)) {}
    Extent(std::integral auto in_x, std::integral auto in_y) : x(whole(in_x)), y(whole(in_y)) {}
    Extent(std::integral auto in_x, std::integral auto in_y, std::integral auto in_z)
        : x(whole(in_x)), y(whole(in_y)), z(whole(in_z)) {}

   private:
    /// What is too large or negative stays too large.
    static std::uint32_t whole(std::integral auto number) noexcept {
      return std::in_range<std::uint32_t>(number) ? static_cast<std::uint32_t>(number) : ~0u;
    }
  };
  Extent grid = 1, block = 1;
  std::uint32_t shared_bytes = 0;  ///< of dynamic shared memory
  Extent cluster = {0, 0, 0};      ///< blocks that share a cluster; zeros: as the kernel says
  bool cooperative = false;        ///< all blocks at once; too large a grid is refused
  /// From the same arguments the kernel computes the same, and does nothing else: after a fault it
  /// may run again. Then `write(x)` says that it writes the whole of x.
  bool repeatable = false;
};

/// A buffer as an argument, and what the kernel does to it.
struct BufferArgument {
  Operand range;
  Access access{};
};
/// The kernel reads it and does not write it.
template <Element T>
BufferArgument read(const GpuRef<T>& buffer) {
  return {buffer.operand(), Access::read};
}
/// The kernel writes it, and reads nothing that it has not written.
template <Element T>
BufferArgument write(const GpuRef<T>& buffer) {
  return {buffer.operand(), Access::write};
}
/// The kernel reads and writes it, or may leave parts of it as they are.
template <Element T>
BufferArgument update(const GpuRef<T>& buffer) {
  return {buffer.operand(), Access::update};
}

/// The same of buffers on the device of a RemoteDevice.
template <Element T>
BufferArgument read(const RemoteRef<T>& buffer) {
  return {buffer.operand(), Access::read};
}
template <Element T>
BufferArgument write(const RemoteRef<T>& buffer) {
  return {buffer.operand(), Access::write};
}
template <Element T>
BufferArgument update(const RemoteRef<T>& buffer) {
  return {buffer.operand(), Access::update};
}

/// The address of a buffer within a struct that is passed by value.
struct AddressAt {
  std::size_t offset;  ///< of the pointer in the struct, as offsetof() gives it
  BufferArgument buffer;
};
inline AddressAt at(std::size_t offset, const BufferArgument& buffer) {
  return {offset, buffer};
}
/// A struct that is passed by value, with addresses in it: `with_addresses(grid, {at(offsetof(Grid,
/// cells), update(cells))})`. What stands there before is replaced.
template <class T>
struct StructArgument {
  T value;
  std::vector<AddressAt> addresses;
};
template <class T>
StructArgument<T> with_addresses(const T& value, std::vector<AddressAt> addresses) {
  return {value, std::move(addresses)};
}

/// A kernel of a module: a value, sharing ownership of its image.
class Kernel {
 public:
  Kernel() = default;
  /// As it was named when the module was made.
  [[nodiscard]] const std::string& name() const;
  /// What the device says of it.
  [[nodiscard]] const kernel::Facts& facts() const;

  // For troupe itself: the module and the kernel's place in it.

  Kernel(std::shared_ptr<detail::ModuleState> module, std::size_t index)
      : module_(std::move(module)), index_(index) {}
  [[nodiscard]] const std::shared_ptr<detail::ModuleState>& module() const noexcept {
    return module_;
  }
  [[nodiscard]] std::size_t index() const noexcept { return index_; }

 private:
  std::shared_ptr<detail::ModuleState> module_;
  std::size_t index_ = 0;
};

/// Kernels compiled together, as an image that lies in memory of the rank's: a device host that
/// comes later loads it from there. A value, sharing ownership.
class KernelModule {
 public:
  KernelModule() = default;
  /// One of those that the module was made for. Throws Exception (invalid).
  [[nodiscard]] Kernel kernel(std::string_view name) const;
  /// From now on each launch of the module's kernels reads the buffer: it is what stands in the
  /// variable of that name, which is declared `__constant__` or `__device__`. So the variable has
  /// these contents on any device host. If the variable is longer than the buffer, its rest is as
  /// the source initialises it. Other modules, also of the same source, have variables of their
  /// own. What a kernel writes to the variable is lost.
  template <Element T>
  void bind_symbol(std::string_view name, const GpuRef<T>& contents) {
    bind(name, contents.operand(), std::make_shared<GpuRef<T>>(contents));
  }
  /// The image: a cubin, or a shared object of the host's.
  [[nodiscard]] std::span<const std::byte> image() const;
  /// What the compiler had to say although it compiled.
  [[nodiscard]] const std::string& log() const;

  explicit KernelModule(std::shared_ptr<detail::ModuleState> state) : state_(std::move(state)) {}

 private:
  void bind(std::string_view name, const Operand& contents, std::shared_ptr<void> keeps);
  std::shared_ptr<detail::ModuleState> state_;
};

namespace detail {

/// The arguments of a launch, one behind another.
class LaunchArguments {
 public:
  LaunchArguments() = default;
  /// With room for as many arguments, of so many bytes.
  LaunchArguments(std::size_t count, std::size_t bytes) {
    sizes_.reserve(count);
    bytes_.reserve(bytes + 8 * count);
    buffers_.reserve(count);
  }
  template <class... Arguments>
  static LaunchArguments of(const Arguments&... arguments) {
    LaunchArguments all(sizeof...(arguments), (std::size_t{0} + ... + sizeof(arguments)));
    (all.add(arguments), ...);
    return all;
  }

  void add(const BufferArgument& buffer) {
    place(buffer, 0);
    add_bytes(std::as_bytes(std::span(&kNoAddress, 1)));
  }
  template <class T>
  void add(const StructArgument<T>& argument) {
    for (const auto& [offset, buffer] : argument.addresses) place(buffer, offset);
    add(argument.value);
  }
  template <class T>
  void add(const Parameter<T>& parameter) {
    parameters_.push_back({parameter.id(), static_cast<std::uint32_t>(bytes_.size())});
    add(parameter.initial());
  }
  template <class T>
  void add(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>,
                  "an argument is a number, a struct of plain bytes, or a buffer: read(x), "
                  "write(x), update(x)");
    static_assert(!std::is_pointer_v<T>, "an address of the rank's means nothing to the device");
    add_bytes(std::as_bytes(std::span(&value, 1)));
  }
  template <Element T>
  void add(const GpuRef<T>&) {
    static_assert(sizeof(T) == 0, "say what the kernel does to it: read(x), write(x), update(x)");
  }
  template <Element T>
  void add(const RemoteRef<T>&) {
    static_assert(sizeof(T) == 0, "say what the kernel does to it: read(x), write(x), update(x)");
  }

  [[nodiscard]] std::span<const std::uint32_t> sizes() const noexcept { return sizes_; }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::span<const TailOperand> buffers() const noexcept { return buffers_; }
  /// Offsets in bytes().
  [[nodiscard]] std::span<const InlineParameter> parameters() const noexcept { return parameters_; }

 private:
  static constexpr std::uint64_t kNoAddress = 0;
  void place(const BufferArgument& buffer, std::size_t offset) {
    buffers_.push_back(
        {buffer.range, kernel::Launch::argument_tag(sizes_.size(), offset), buffer.access, {}});
  }
  void add_bytes(std::span<const std::byte> value) {
    sizes_.push_back(static_cast<std::uint32_t>(value.size()));
    bytes_.insert(bytes_.end(), value.begin(), value.end());
    bytes_.resize((bytes_.size() + 7) / 8 * 8);
  }
  std::vector<std::uint32_t> sizes_;
  std::vector<std::byte> bytes_;  ///< each padded to 8
  std::vector<TailOperand> buffers_;
  std::vector<InlineParameter> parameters_;
};

}  // namespace detail

/// Compiling, loading and launching on one device; from `kernel::on(device)`, or by the functions
/// of the same names of Device.
class Kernels {
 public:
  // What Device's functions take.
  using Compile = troupe::CompileOptions;
  using Launching = troupe::LaunchOptions;
  using Module = KernelModule;
  using One = Kernel;

  explicit Kernels(const Device& device) : device_(&device) {}

  /// Compiles CUDA C++ in a process of its own, or takes what was compiled from the same before.
  /// Errors: invalid (it does not compile: the compiler's log; a kernel of that name is not in it),
  /// unsupported (there is no compiler), timeout.
  Future<KernelModule> compile(std::string source, CompileOptions options) const;
  /// Takes an image that nvcc has made: a cubin, a fatbin, PTX. `names`: those of the kernels as
  /// they stand in it, mangled if they are not extern "C". `host_kernels`: as in CompileOptions.
  /// Errors: invalid (there is no such kernel), unsupported (it is for other devices than this).
  Future<KernelModule> load(std::span<const std::byte> image, std::vector<std::string> names,
                            std::string host_kernels = {}) const;
  /// How many blocks of so many threads, with so much dynamic shared memory, the device runs at
  /// once. Errors: invalid (more than the kernel can have).
  Future<std::uint64_t> occupancy(const Kernel& kernel, std::uint32_t threads,
                                  std::uint32_t shared_bytes = 0) const;
  /// Errors, before anything is launched: invalid (number and sizes of arguments, extents beyond
  /// what the device or the kernel allows), stale.
  template <class... Arguments>
  Future<void> launch(const Kernel& kernel, const LaunchOptions& how,
                      const Arguments&... arguments) const {
    return submit(kernel, how, detail::LaunchArguments::of(arguments...));
  }
  /// On another rank's device: see RemoteDevice::launch().
  template <class... Arguments>
  static Future<void> launch_there(detail::Submitter& there, const Kernel& kernel,
                                   const LaunchOptions& how, const Arguments&... arguments) {
    return submit_there(there, kernel, how, detail::LaunchArguments::of(arguments...));
  }

 private:
  static Future<void> submit_there(detail::Submitter& there, const Kernel& kernel,
                                   const LaunchOptions& how,
                                   const detail::LaunchArguments& arguments);
  Future<void> submit(const Kernel& kernel, const LaunchOptions& how,
                      const detail::LaunchArguments& arguments) const;
  const Device* device_;
};

namespace kernel {
inline Kernels on(const Device& device) {
  return Kernels(device);
}
}  // namespace kernel

}  // namespace troupe
