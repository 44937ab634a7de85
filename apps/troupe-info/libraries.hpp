#pragma once

#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include <troupe/device.hpp>

namespace troupe::info {

/// Opens all libraries of operations. What each stands on, with versions and files, or why it
/// cannot be opened: [{"library", "stands_on": [{"name", "version", "file"}], "error"}].
nlohmann::json open_libraries(Device& device);

/// The names of the libraries that open_libraries() found not installed.
std::set<std::string> missing_of(const nlohmann::json& libraries);

/// The libraries of rank 0 as text, and of other ranks those that differ.
std::string libraries_text(const nlohmann::json& ranks);

}  // namespace troupe::info
