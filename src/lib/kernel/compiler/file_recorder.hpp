#pragma once

#include <optional>
#include <vector>

#include "common/wire/compile_input.hpp"

namespace troupe::compile {

/// Notes which files are looked for in this process while it lives, by any library: the functions
/// of the C library that open files or ask for them are found here first. One at a time.
class FileRecorder {
 public:
  FileRecorder();
  ~FileRecorder();
  FileRecorder(const FileRecorder&) = delete;
  FileRecorder& operator=(const FileRecorder&) = delete;

  /// The files that were looked for, each as it was before it was opened. Nothing if a file has
  /// changed since then, or if no call came by here: then a library goes another way.
  [[nodiscard]] static std::optional<std::vector<wire::CompileInput>> inputs();
};

}  // namespace troupe::compile
