#pragma once

#include <string>
#include <vector>

#include "common/core/content_id.hpp"

namespace troupe::wire {

/// A file that a compiler has looked for, and what it has found: what comes out of it is the same
/// as long as all of them are as they were. A header that was not there counts as much as one that
/// was: had it been there, another one might not have been taken.
struct CompileInput {
  std::string path;  ///< as the compiler has it; a relative one follows the working directory
  bool is_file = false;
  ContentId content;  ///< of a file

  friend bool operator==(const CompileInput&, const CompileInput&) = default;
};

/// The file as it is now. A folder, and a file that cannot be read, is no file.
CompileInput look_at(const std::string& path);

/// True if all of them still are as they were.
bool inputs_hold(const std::vector<CompileInput>& inputs);

}  // namespace troupe::wire
