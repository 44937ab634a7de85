#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <troupe/lib/operation_info.hpp>

/// What the module of a library outside troupe's tree says of itself.
namespace troupe::plugin {

/// The version of the interface between device hosts and such modules: of what is in
/// include/troupe/plugin, and of the parts of include/troupe/lib that these headers include. It is
/// raised whenever one of their layouts or virtual functions changes. A device host loads modules
/// of its own version alone.
inline constexpr std::uint32_t kAbiVersion = 3;

/// What a module exports by the name kModuleSymbol, and beside it what makes its half: see
/// TROUPE_LIBRARY_HALF.
struct Module {
  /// The first field in every version; another version may have changed all behind it.
  std::uint32_t abi = kAbiVersion;
  std::uint32_t reserved = 0;
  const char* engine = nullptr;  ///< "cpu" or "cuda"
  /// The operations of the module, and the fingerprints of their libraries.
  std::vector<const OperationInfo*> (*operations)() = &all_operations;
  std::vector<LibraryFingerprint> (*fingerprints)() = &library_fingerprints;
};
inline constexpr const char* kModuleSymbol = "troupe_library_module";

}  // namespace troupe::plugin

/// What the macros of cpu.hpp and cuda.hpp consist of.
#define TROUPE_DETAIL_LIBRARY_HALF(Half, its_engine)                           \
  extern "C" __attribute__((visibility("default")))                            \
  const ::troupe::plugin::Module troupe_library_module{.engine = #its_engine}; \
  TROUPE_MODULE_HALF(Half, its_engine)
