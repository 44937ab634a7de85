#pragma once

#include <string>
#include <string_view>

#include <troupe/error.hpp>
#include <troupe/loaded_library.hpp>

namespace troupe::wire {

/// An OpenedLibrary as it stands in messages: each of its texts, ended by a byte of value 0.
std::string encode(const OpenedLibrary& library);
/// Errors: invalid.
Result<OpenedLibrary> decode_opened_library(std::string_view bytes);

}  // namespace troupe::wire
