#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "common/wire/library_stamps.hpp"

/// Libraries that come with a program and not with troupe: see plugin/module.hpp.
namespace troupe::host {

/// Where troupe's own modules may lie: beside the file that this engine is linked into, and in
/// ../libexec/troupe from there.
std::vector<std::filesystem::path> module_folders();

/// Loads the module of a library that this process does not know, and makes its operations known:
/// troupe-NAME-ENGINE.so from the first folder that has one, of `folders` (separated by ':') and
/// then of those where troupe's own modules lie. It stays loaded. Runs the initialisers of the
/// module and of what it links, and nothing else of them unless it fits. The module must be the one
/// that the stamp names, if it does; else the stamp is told which it is. Any thread; may block.
/// Errors, each one line that names the file: unsupported.
Result<void> load_outside_library(wire::LibraryStamp& stamp, const std::string& engine,
                                  const std::string& folders);

/// The dlopen() handle of such a module, where find_in_module() looks first; nullptr: none has been
/// loaded for this library.
void* outside_module(std::string_view library);

}  // namespace troupe::host
