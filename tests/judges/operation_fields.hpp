#pragma once

#include <cstddef>

#include <nlohmann/json_fwd.hpp>
#include <troupe/lib/operation_info.hpp>

namespace troupe::judge {

/// The fields of an operation by their names, without operands: numbers; enumerators and dtypes as
/// words; of a scalar, which may be of any type, its 16 bytes. Null where the libraries that come
/// with troupe do not have the operation. `op`: its bytes, aligned to 8.
nlohmann::json fields_of(const OperationInfo& info, const std::byte* op);

}  // namespace troupe::judge
