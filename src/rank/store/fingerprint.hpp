#pragma once

#include <filesystem>
#include <map>
#include <string>

#include <troupe/error.hpp>

namespace troupe::rank_process {

/// What the result of a run depends on beside its state: names and values, such as options.
using Fingerprint = std::map<std::string, std::string>;
/// The first thing in which two fingerprints differ, in words; empty: nothing.
std::string difference(const Fingerprint& saved, const Fingerprint& now);
/// What a file stands for in a fingerprint: its size and a checksum of its contents, of a very
/// large one those of pieces all over it. Errors: io.
Result<std::string> contents_of(const std::filesystem::path& file);
/// The same in printable characters: whatever bytes a user's text has, it passes unchanged through
/// JSON and a message.
Fingerprint in_ascii(const Fingerprint& fingerprint);

}  // namespace troupe::rank_process
