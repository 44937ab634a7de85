#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <troupe/error.hpp>

namespace troupe::train {

/// The bytes of a file. Errors: io.
Result<std::vector<std::uint8_t>> read_text(const std::string& path);

/// Sentences of a few words, the same everywhere: what is trained on where no text is given.
std::vector<std::uint8_t> made_text();

/// FNV-1a, 64 bits.
std::uint64_t hash_of(const void* data, std::size_t bytes);

}  // namespace troupe::train
