#include "common/wire/compile_input.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "common/ipc/unique_fd.hpp"
#include "common/ipc/whole_file.hpp"

namespace troupe::wire {

CompileInput look_at(const std::string& path) {
  CompileInput seen{path, false, {}};
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat info {};
  if (!fd || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return seen;
  const auto bytes = ipc::read_whole(fd.get());
  if (!bytes.ok()) return seen;
  seen.is_file = true;
  seen.content = content_id(*bytes);
  return seen;
}

bool inputs_hold(const std::vector<CompileInput>& inputs) {
  return std::all_of(inputs.begin(), inputs.end(),
                     [](const CompileInput& input) { return look_at(input.path) == input; });
}

}  // namespace troupe::wire
