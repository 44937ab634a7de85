#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// Operators of the program's own, and the text of the kernels around them. See
/// primitives/custom.hpp.
namespace troupe::primitives {

/// An operator of the program's own.
struct CustomOperator {
  /// An expression that can be called: "[](float a, float b) { return a > b ? a : b; }",
  /// "Larger{}". It is evaluated on the device.
  std::string source;
  /// What stands in front of it: types, functions (`__device__`) and includes.
  std::string declarations = {};
  /// What CUDA C++ calls the types of elements, in the order of the template's arguments. Numbers
  /// need no names.
  std::vector<std::string> types = {};
  /// As CompileOptions has them.
  std::vector<std::string> include_paths = {}, options = {};
};

}  // namespace troupe::primitives

namespace troupe::detail::custom {

/// A type of elements. Without a name it is none that the kernels know.
struct Type {
  std::string name;
  std::size_t bytes = 0;
};
enum class Kind : std::uint8_t { transform, transform_pairs, reduction, selection, for_each, bulk };
/// The kernels around an operator, and their names. `types`: of the operands, then of the result.
std::string source_of(Kind kind, const primitives::CustomOperator& op,
                      const std::vector<Type>& types);
std::vector<std::string> names_of(Kind kind);

}  // namespace troupe::detail::custom
