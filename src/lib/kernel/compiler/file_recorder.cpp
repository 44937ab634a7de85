#undef _FORTIFY_SOURCE  // it has functions of these names in the headers
#include "lib/kernel/compiler/file_recorder.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <map>
#include <mutex>
#include <string_view>

namespace troupe::compile {
namespace {

std::mutex mutex;
bool recording = false;
std::map<std::string, wire::CompileInput> seen;
thread_local bool looking = false;  ///< what look_at() opens is no input

/// True for files in which the kernel describes the machine: they are no inputs of a compilation,
/// and change all the time.
bool is_of_the_kernel(std::string_view path) {
  return path.starts_with("/proc/") || path.starts_with("/sys/") || path.starts_with("/dev/");
}

void record(const char* path) {
  if (path == nullptr || looking || is_of_the_kernel(path)) return;
  const std::lock_guard lock(mutex);
  if (!recording || seen.contains(path)) return;
  looking = true;
  seen.emplace(path, wire::look_at(path));
  looking = false;
}

/// The C library's function.
template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

FileRecorder::FileRecorder() {
  const std::lock_guard lock(mutex);
  recording = true;
}

FileRecorder::~FileRecorder() {
  const std::lock_guard lock(mutex);
  recording = false;
  seen.clear();
}

std::optional<std::vector<wire::CompileInput>> FileRecorder::inputs() {
  const std::lock_guard lock(mutex);
  std::vector<wire::CompileInput> all;
  for (const auto& [path, input] : seen) all.push_back(input);
  looking = true;
  const bool hold = wire::inputs_hold(all);
  looking = false;
  if (all.empty() || !hold) return std::nullopt;
  return all;
}

}  // namespace troupe::compile

// Exported by the program: see CMakeLists.txt. Old libraries ask by __xstat and __lxstat.

extern "C" {
#define TROUPE_RECORDED __attribute__((visibility("default")))

TROUPE_RECORDED FILE* fopen(const char* path, const char* mode) {
  static auto* const call = troupe::compile::real<FILE*(const char*, const char*)>("fopen");
  troupe::compile::record(path);
  return call(path, mode);
}
TROUPE_RECORDED FILE* fopen64(const char* path, const char* mode) {
  static auto* const call = troupe::compile::real<FILE*(const char*, const char*)>("fopen64");
  troupe::compile::record(path);
  return call(path, mode);
}
TROUPE_RECORDED int open(const char* path, int flags, ...) {
  static auto* const call = troupe::compile::real<int(const char*, int, ...)>("open");
  va_list more;
  va_start(more, flags);
  const auto mode = va_arg(more, unsigned);
  va_end(more);
  troupe::compile::record(path);
  return call(path, flags, mode);
}
TROUPE_RECORDED int open64(const char* path, int flags, ...) {
  static auto* const call = troupe::compile::real<int(const char*, int, ...)>("open64");
  va_list more;
  va_start(more, flags);
  const auto mode = va_arg(more, unsigned);
  va_end(more);
  troupe::compile::record(path);
  return call(path, flags, mode);
}
TROUPE_RECORDED int access(const char* path, int how) {
  static auto* const call = troupe::compile::real<int(const char*, int)>("access");
  troupe::compile::record(path);
  return call(path, how);
}
TROUPE_RECORDED int stat(const char* path, struct stat* info) {
  static auto* const call = troupe::compile::real<int(const char*, struct stat*)>("stat");
  troupe::compile::record(path);
  return call(path, info);
}
TROUPE_RECORDED int lstat(const char* path, struct stat* info) {
  static auto* const call = troupe::compile::real<int(const char*, struct stat*)>("lstat");
  troupe::compile::record(path);
  return call(path, info);
}
TROUPE_RECORDED int __xstat(int, const char* path, struct stat* info) {
  return ::stat(path, info);
}
TROUPE_RECORDED int __lxstat(int, const char* path, struct stat* info) {
  return ::lstat(path, info);
}
}
