#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <troupe/lib/operation.hpp>

#include "program.hpp"

namespace troupe::torture {

/// Whether an engine, or a device, need not have a call.
enum class Missing : std::uint8_t {
  never,
  itself,
  library  ///< none of its library, of which the first call tells
};

/// A call of a library on operands of its own, of which a seed tells: see Trial for how it is made
/// and judged.
struct CallInfo {
  Kind kind{};  ///< by library
  std::string_view name;
  std::string_view operations;  ///< that it makes: "potrf potrs"
  DTypes dtypes;
  Missing missing{};
  /// An engine may answer `unsupported` to some of its forms: a run would end with that.
  bool may_refuse = false;
};

/// All there are. An operation of a kind of calls has in m which of them it makes.
std::span<const CallInfo> calls();
/// Those of one kind: places in calls().
std::vector<std::int64_t> calls_of(Kind kind);
/// The call of an operation whose kind is a call.
const CallInfo& call_of(const Operation& op);

}  // namespace troupe::torture
