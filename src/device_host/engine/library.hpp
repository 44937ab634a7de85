#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "device_host/engine/current_error.hpp"
#include "device_host/engine/engine.hpp"

namespace troupe::host {

/// A library of another project that something here stands on.
struct Dependency {
  std::string name;              ///< "cuBLAS"
  std::string version;           ///< as the library itself says
  const void* symbol = nullptr;  ///< something of its own, which tells where it was loaded from

  Dependency(std::string its_name, std::string its_version, const void* its_symbol = nullptr)
      : name(std::move(its_name)), version(std::move(its_version)), symbol(its_symbol) {}
  template <class R, class... Arguments>
  Dependency(std::string its_name, std::string its_version, R (*function)(Arguments...))
      : Dependency(std::move(its_name), std::move(its_version),
                   reinterpret_cast<const void*>(function)) {}
};
using Dependencies = std::vector<Dependency>;

/// A library's half in an engine: what carries out its operations. Lives as long as the engine,
/// also if another one has taken its place after a failure. By one thread at a time: the reactor's,
/// or that of the library where a call may block.
class LibraryHalf {
 public:
  virtual ~LibraryHalf() = default;
  LibraryHalf() = default;
  LibraryHalf(const LibraryHalf&) = delete;
  LibraryHalf& operator=(const LibraryHalf&) = delete;

  /// See Engine::blocks(). By default what the operation declares.
  [[nodiscard]] virtual bool blocks(const OperationInfo& info, const std::byte*, const Call&) {
    return info.traits.blocking;
  }
  /// Queues an operation, given by its bytes, as Engine::run() does. What the half throws is the
  /// error of the call: the library is opened anew where it is one of the library.
  Result<void> run(const OperationInfo& info, const std::byte* op, const Call& call) {
    try {
      const auto function = find(info.opcode);
      if (function != nullptr) return function(*this, op, call);
    } catch (...) {
      return current_error(info.name);
    }
    return Error{Errc::unsupported, 0, std::string(info.name) + ": this engine does not have it"};
  }

  /// Whether the lane may have side queues beside its own one; asked when that is open.
  [[nodiscard]] virtual bool overlaps() const { return false; }

  /// Makes what the library needs on a queue and warms it up. Before the first run() on that queue;
  /// may block. Called once more after a failure. The cuda engine calls it; a queue of the cpu
  /// engine needs nothing.
  virtual Result<void> open(Queue) { return {}; }
  /// Plans that it has made since it was last asked and that another process can use: found by a
  /// search or compiled, then serialised. The rank keeps them. May block.
  virtual std::vector<std::vector<std::byte>> take_new_plans() { return {}; }
  /// Takes over a plan of take_new_plans(), of a half of this library in another process. What does
  /// not fit (another version, another model of GPU) is left alone. May block.
  virtual void adopt_plan(std::span<const std::byte>) {}
  /// What it stands on, as it is loaded.
  [[nodiscard]] virtual Dependencies stands_on() const { return {}; }
  /// Whether it prepares anything from the contents of operands.
  [[nodiscard]] virtual bool remembers_contents() const { return false; }
  /// A command that writes this range is about to be queued: what has been prepared from its
  /// contents is void.
  virtual void overwrites(const Operand&) {}

 protected:
  using Function = Result<void> (*)(LibraryHalf& library, const std::byte* op, const Call& call);
  /// nullptr: it has no such operation.
  [[nodiscard]] virtual Function find(std::uint32_t opcode) const = 0;
};

/// Has L, the class that is derived from it, carry out operations of a List: by functions of its
/// own, `run(op, call)`, and by handlers, which are free functions `Result<void> run(const Op& op,
/// const Call& call, L& library)` in the files of the operations' families. TROUPE_HANDLERS makes
/// those of a file known. An operation with neither is unsupported on the half's engine. `Half` is
/// LibraryHalf or what a library of a special sort has instead.
template <class L, std::derived_from<LibraryHalf> Half, class Operations>
class HalfOf;
template <class L, std::derived_from<LibraryHalf> Half, Operation... Ops>
class HalfOf<L, Half, List<Ops...>> : public Half {
 public:
  using typename Half::Function;

  /// Makes the handlers known that `handler(op, call, library)` finds for the library's operations.
  /// When the module is loaded, see TROUPE_HANDLERS.
  template <class Handler>
  static bool handle(Handler) {
    (add_handler<Ops, Handler>(), ...);
    return true;
  }
  /// Carries an operation out by its handler, for other parts of the library.
  template <Operation Op>
  Result<void> carry_out(const Op& op, const Call& call) {
    return handlers().at(opcode_of<Op>)(*this, reinterpret_cast<const std::byte*>(&op), call);
  }

 protected:
  [[nodiscard]] Function find(std::uint32_t opcode) const final {
    static const auto functions = [] {
      Functions all;
      (add_own<Ops>(all), ...);
      all.insert(handlers().begin(), handlers().end());
      return all;
    }();
    const auto found = functions.find(opcode);
    return found != functions.end() ? found->second : nullptr;
  }

 private:
  using Functions = std::unordered_map<std::uint32_t, Function>;
  static Functions& handlers() {
    static Functions all;
    return all;
  }
  template <Operation Op, class Handler>
  static void add_handler() {
    if constexpr (std::is_invocable_v<Handler, const Op&, const Call&, L&>) {
      handlers()[opcode_of<Op>] = [](LibraryHalf& library, const std::byte* op, const Call& call) {
        return Handler()(*reinterpret_cast<const Op*>(op), call, static_cast<L&>(library));
      };
    }
  }
  template <Operation Op>
  static void add_own(Functions& all) {
    if constexpr (requires(L & library, const Op& op, const Call& call) {
                    library.run(op, call);
                  }) {
      all[opcode_of<Op>] = [](LibraryHalf& library, const std::byte* op, const Call& call) {
        return static_cast<L&>(library).run(*reinterpret_cast<const Op*>(op), call);
      };
    }
  }
};
template <class L, class Operations>
using LibraryHalfOf = HalfOf<L, LibraryHalf, Operations>;

/// The name of the library that carries out the commands of a lane.
[[nodiscard]] std::string_view library_of(Lane lane) noexcept;

/// Asks a half something that is no operation; `otherwise` is the answer if it throws.
template <class T, class Ask>
T asked(T otherwise, Ask&& ask) {
  try {
    return ask();
  } catch (...) {
    return otherwise;
  }
}

/// The module of a library exports `LibraryHalf* troupe_library_make(Services&)`, of its engine's
/// Services, which outlive the half: see TROUPE_MODULE_HALF.
inline constexpr const char* kMakeSymbol = "troupe_library_make";

/// Finds a symbol in the module of a library: troupe-NAME-ENGINE.so beside the file that this
/// engine is linked into, or in ../libexec/troupe from there. The module stays loaded. May block.
/// Errors: unsupported if it or a library that it needs is not installed, library if it cannot be
/// loaded.
Result<void*> find_in_module(const std::string& name, const std::string& engine,
                             const char* symbol);
/// The same with the files that they were loaded from, links resolved.
std::vector<LoadedLibrary> located(const Dependencies& dependencies);
/// Loads the module of a library and makes a half of it. May block. Errors: see find_in_module().
template <class Services>
Result<std::unique_ptr<LibraryHalf>> make_half(std::string_view name, const std::string& engine,
                                               Services& services) {
  const auto symbol = find_in_module(std::string(name), engine, kMakeSymbol);
  if (!symbol) return symbol.error();
  const auto make = reinterpret_cast<LibraryHalf* (*)(Services&)>(*symbol);
  try {
    return std::unique_ptr<LibraryHalf>(make(services));
  } catch (...) {
    return current_error(std::string(name) + " cannot be opened");
  }
}

/// The libraries that have a module for the engine, by name.
std::vector<std::string> installed_libraries(const std::string& engine);

}  // namespace troupe::host

/// Makes known the handlers of a library's half that stand above it in this file: see HalfOf. In
/// the namespace of the half's class.
#define TROUPE_HANDLERS(Half)                                                                    \
  namespace {                                                                                    \
  [[maybe_unused]] const bool TROUPE_DETAIL_JOIN(handled_, __COUNTER__) = Half::handle(          \
      [](const auto& op, const ::troupe::host::Call& call,                                       \
         Half& library) -> decltype(run(op, call, library)) { return run(op, call, library); }); \
  }
#define TROUPE_DETAIL_JOIN(a, b) TROUPE_DETAIL_JOIN_NAMES(a, b)
#define TROUPE_DETAIL_JOIN_NAMES(a, b) a##b

/// Makes a class the half of its module. Outside of all namespaces, once in a module;
/// `its_engine`: the engine's namespace.
#define TROUPE_MODULE_HALF(Half, its_engine)                                     \
  extern "C" __attribute__((visibility("default"))) ::troupe::host::LibraryHalf* \
  troupe_library_make(::troupe::host::its_engine::Services& services) {          \
    return new Half(services);                                                   \
  }
