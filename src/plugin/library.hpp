#pragma once

#include <troupe/lib/operation_table.hpp>
#include <troupe/lib/submit.hpp>

#include "common/wire/checker.hpp"

/// For the operations of a library outside troupe's tree: how their arguments are checked, beside
/// what operation.hpp says of how they are declared. The header with their structs and typed calls
/// includes <troupe/lib/submit.hpp>, the source file that makes their tables this one. Its halves
/// include cpu.hpp and cuda.hpp. docs/extending.md has the whole.
namespace troupe::plugin {

using wire::Checker;
using wire::checker;

}  // namespace troupe::plugin
