#pragma once

#include <string_view>

#include <troupe/lib/operation.hpp>

namespace troupe::catalogue {

/// Says if an engine, or a device, need not have a call.
enum class Missing : std::uint8_t {
  never,
  itself,
  library  ///< none of its library, of which the first call tells
};

/// How a call of the catalogue is known.
struct CallName {
  std::string_view name;        ///< "trmm"; unique in its library for each dtype
  std::string_view operations;  ///< the operations that it submits: "trmm trsm"
  Missing missing = Missing::never;
  /// An engine may answer `unsupported` to some of its forms.
  bool may_refuse = false;

  constexpr CallName(std::string_view its_name, std::string_view its_operations,
                     Missing its_missing = Missing::never, bool it_may_refuse = false)
      : name(its_name),
        operations(its_operations),
        missing(its_missing),
        may_refuse(it_may_refuse) {}
  /// A call named after its only operation.
  constexpr CallName(std::string_view operation) : CallName(operation, operation) {}
  constexpr CallName(const char* operation) : CallName(std::string_view(operation)) {}
};

/// A call of the catalogue, in one or more dtypes.
struct CallInfo : CallName {
  std::string_view library;  ///< "blas"
  DTypes dtypes;

  constexpr CallInfo(const CallName& its_name, std::string_view its_library, DTypes its_dtypes)
      : CallName(its_name), library(its_library), dtypes(its_dtypes) {}
};

}  // namespace troupe::catalogue
