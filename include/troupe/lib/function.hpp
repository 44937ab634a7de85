#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <troupe/lib/kernel.hpp>
#include <troupe/lib/outside.hpp>

/// Functions of the program's own that run in the device host, from a shared library that
/// <troupe/function.hpp> describes: the way for CUDA code that exists. An actor of their own calls
/// them, with a stream.
namespace troupe::functions {

/// Calls a function. Inline: as in kernel::Launch, with the library's path in the place of
/// variables. `status` is what the function returns; what is not 0 fails the command.
struct Call {
  static constexpr std::string_view kName = "function.call";
  static constexpr DTypes kDTypes = DTypes::all();
  static constexpr Traits kTraits = {.blocking = true, .capturable = true, .not_prepared = true};
  static constexpr std::string_view kTail = "argument";
  static constexpr std::uint32_t kData = kernel::Launch::kData;

  OpDType dtype;
  std::uint32_t name_bytes = 0, arguments = 0, path_bytes = 0;
  std::uint32_t only_queues = 0;            ///< see FunctionOptions
  std::uint64_t library_id[2] = {};         ///< what the library's file is called by its contents
  Operand status;                           ///< std::int32_t
  Operand touches = outside::everything();  ///< absent: nothing outside of memory

  static constexpr std::array kOperands{write("status", &Call::status),
                                        update("touches", &Call::touches)};
  static constexpr auto kCell = &Call::status;
  [[nodiscard]] kernel::InlineExtent extent() const noexcept {
    return {name_bytes, arguments, path_bytes};
  }
  Result<void> check() const;
  Result<void> check_parts(const Parts& parts) const;
  [[nodiscard]] Result<void> verdict(const std::byte* cell) const;
  [[nodiscard]] std::uint64_t written(const Operand&) const noexcept {
    return sizeof(std::int32_t);
  }
};

/// The same of a function that computes the same from the same arguments, and does nothing else:
/// its `touches` is absent.
struct RepeatableCall : Call {
  static constexpr std::string_view kName = "function.call_repeatable";
  static constexpr Traits kTraits = {
      .repeatable = true, .blocking = true, .capturable = true, .not_prepared = true};

  [[nodiscard]] std::uint64_t tail_written(const TailOperand& operand) const noexcept {
    return operand.range.bytes;
  }
};

/// A call on another rank's device, which that rank makes one of the others of.
struct CallThere {
  static constexpr std::string_view kName = "function.call_there";
  static constexpr DTypes kDTypes = DTypes::all();
  static constexpr Traits kTraits = {.remote = true, .not_prepared = true};
  static constexpr std::string_view kTail = "argument";
  static constexpr std::uint32_t kData = Call::kData;

  OpDType dtype;
  std::uint32_t name_bytes = 0, arguments = 0, path_bytes = 0, repeatable = 0;

  static constexpr std::array<DeclaredOperand<CallThere>, 0> kOperands{};
  [[nodiscard]] kernel::InlineExtent extent() const noexcept {
    return {name_bytes, arguments, path_bytes};
  }
  Result<void> check() const;
  Result<void> check_parts(const Parts& parts) const;
};
/// Submits what the owner makes of it.
Future<void> submit_here(detail::Submitter& submitter, const CallThere& op, const Parts& parts);

/// All of them; whoever includes this header knows them.
using Operations = List<Call, RepeatableCall, CallThere>;
std::span<const OperationInfo* const> operations() noexcept;
inline const Library kLibrary{operations()};

/// The file of a library as this process first found it: device hosts that come later load that, or
/// nothing.
struct LibraryFile {
  std::string path;          ///< absolute
  std::uint64_t id[2] = {};  ///< what it is called by its contents
  Result<void> found;        ///< why it cannot be used
};
/// Reads the file when the path is first asked for. Any thread.
std::shared_ptr<const LibraryFile> library_file(const std::string& path);

}  // namespace troupe::functions

namespace troupe {

/// What a program says of a function of its own.
struct FunctionOptions {
  /// See LaunchOptions::repeatable. A function that is not may do something outside of its
  /// arguments: such calls keep the program's order among themselves, and beside operations on
  /// files.
  bool repeatable = false;
  /// All it does is to queue on its stream, and never to wait: from the second time on it is called
  /// without a thread's help, and on a GPU a recorded sequence may keep what it has queued in place
  /// of calling it. Remote calls take no notice.
  bool only_queues = false;
};

/// A function of a library: a value.
class Function {
 public:
  Function() = default;
  /// As FunctionLibrary::function() makes it.
  Function(std::shared_ptr<const functions::LibraryFile> library, std::string name,
           const FunctionOptions& options)
      : library_(std::move(library)), name_(std::move(name)), options_(options) {}
  /// The library's file as FunctionLibrary noted it; nullptr in a default-constructed Function.
  [[nodiscard]] const std::shared_ptr<const functions::LibraryFile>& library() const noexcept {
    return library_;
  }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const FunctionOptions& options() const noexcept { return options_; }

 private:
  std::shared_ptr<const functions::LibraryFile> library_;
  std::string name_;
  FunctionOptions options_;
};

/// A shared library with functions of the program's.
class FunctionLibrary {
 public:
  FunctionLibrary() = default;
  /// A path; one that is relative begins in the working directory, a name without '/' is looked for
  /// in the folders of LD_LIBRARY_PATH. The file is read here, and loaded by the first call in each
  /// device host. It must stay as it is: a device host that finds other contents there refuses the
  /// call (invalid), because the results would change.
  explicit FunctionLibrary(const std::string& path) : file_(functions::library_file(path)) {}
  /// Whether there is one of that name is found out by the first call.
  [[nodiscard]] Function function(std::string name, const FunctionOptions& options = {}) const {
    return {file_, std::move(name), options};
  }

 private:
  std::shared_ptr<const functions::LibraryFile> file_;
};

/// Calling functions on one device; from `functions::on(device)`, or by Device::call().
class Functions {
 public:
  // What Device's functions take.
  using Libraries = FunctionLibrary;
  using One = Function;

  explicit Functions(const Device& device) : submitter_(&device.submitter()) {}

  /// Arguments as those of a launch; the function has the stream before them. Errors: unsupported
  /// (there is no such library or function on this engine), invalid (it takes other arguments; the
  /// library's file has changed), library (it has failed; native: what it returned): then what it
  /// was to write is stale.
  template <class... Arguments>
  Future<void> call(const Function& function, const Arguments&... arguments) const {
    return submit(function, detail::LaunchArguments::of(arguments...));
  }
  /// On another rank's device: see RemoteDevice::call().
  template <class... Arguments>
  static Future<void> call_there(detail::Submitter& there, const Function& function,
                                 const Arguments&... arguments) {
    return submit_there(there, function, detail::LaunchArguments::of(arguments...));
  }

 private:
  static Future<void> submit_there(detail::Submitter& there, const Function& function,
                                   const detail::LaunchArguments& arguments);
  Future<void> submit(const Function& function, const detail::LaunchArguments& arguments) const;
  detail::Submitter* submitter_;
};

namespace functions {
inline Functions on(const Device& device) {
  return Functions(device);
}
}  // namespace functions

}  // namespace troupe
