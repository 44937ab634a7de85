#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/error.hpp>

#include "common/core/content_id.hpp"

/// Files of code that a program names: libraries of functions and of host kernels, modules of
/// libraries. Device hosts load them, one after another; a file that is built anew meanwhile must
/// not change the results.
///
/// One rule. The rank notes where a file lies (absolute) and what its contents are called when the
/// program first names it, and from then on names it so. A device host that finds other contents
/// there loads nothing. Such a file is a regular one that not everybody may write to.
namespace troupe::ipc {

/// A file of code as it was when it was first looked at.
struct CodeFile {
  std::string path;  ///< absolute
  ContentId content;
  friend bool operator==(const CodeFile&, const CodeFile&) = default;
};

/// Where a library lies that the program calls `name`: a path that is relative begins in the
/// working directory, a name without '/' is looked for in the folders of LD_LIBRARY_PATH. What is
/// not found stays as it is.
std::string code_path(const std::string& name);

/// The file as it is now. Errors name it: unsupported, there is none; invalid, it is no whole
/// shared object, or may be written by everybody; io.
Result<CodeFile> look_at_code(const std::string& path);
/// The file as it was when this process first called this for the path: the same answer whatever
/// lies there by then. Any thread. Errors: as look_at_code(), and these are not kept.
Result<CodeFile> keep_code(const std::string& path);

/// The contents of a file. Errors: as look_at_code(); invalid if they are not those any more.
Result<std::vector<std::byte>> read_code(const CodeFile& file);
/// dlopen() of a file, by its path, so that it finds what it links and what lies beside it. The
/// contents are checked before, and that the file is still that one afterwards. Errors: as
/// read_code(); see also load_error().
Result<void*> load_code(const CodeFile& file, int flags);

/// True if a shared object is as long as it says: the loader would be killed by one that is cut
/// short. Errors name the file: unsupported (there is none), invalid, io.
Result<void> check_whole(const std::string& path);

/// The error of a dlopen() or dlsym() of this thread that has just failed: unsupported where a file
/// is missing, io where the system does not open it (too many are open, say), else library.
Error load_error(std::string_view what);

}  // namespace troupe::ipc
