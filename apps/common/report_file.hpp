#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>

#include <nlohmann/json.hpp>
#include <troupe/error.hpp>

/// The file that --json names.
namespace troupe::app {

/// Bytes that are no UTF-8, of a path or the name of a host, become U+FFFD. `indent` -1: one line.
inline std::string json_text(const nlohmann::json& json, int indent = -1) {
  return json.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

inline Error report_error(const std::string& path) {
  return {Errc::io, errno, path + ": " + std::strerror(errno)};
}

/// True if the report can be written there: asked before the work, whose result would be lost. What
/// is there stays as it is; no file is left behind. An empty path is none. Errors: io.
inline Result<void> check_report_file(const std::string& path) {
  struct stat file {};
  if (path.empty()) return {};
  const bool there = ::stat(path.c_str(), &file) == 0;
  if (there && !S_ISREG(file.st_mode)) {  // to open a pipe would tell its reader of an end
    if (S_ISDIR(file.st_mode)) errno = EISDIR;
    if (!S_ISDIR(file.st_mode) && ::access(path.c_str(), W_OK) == 0) return {};
    return report_error(path);
  }
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return report_error(path);
  ::close(fd);
  if (!there) ::unlink(path.c_str());
  return {};
}

/// Errors: io.
inline Result<void> write_report_file(const std::string& path, const std::string& text) {
  std::ofstream out(path);
  out << text << '\n';
  out.close();
  if (!out) return report_error(path);
  return {};
}

}  // namespace troupe::app
