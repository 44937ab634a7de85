#include "common/ipc/code_file.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <span>
#include <sstream>

#include "common/ipc/trusted_file.hpp"
#include "common/ipc/whole_file.hpp"

namespace troupe::ipc {
namespace {

namespace fs = std::filesystem;

Result<UniqueFd> open_code(const std::string& path) {
  auto fd = open_trusted(path, {.follows_links = true, .group_may_write = true, .any_owner = true});
  if (fd.ok() || fd.code() != Errc::io) return fd;
  const int why = fd.error().native;
  const bool missing = why == ENOENT || why == ENOTDIR;
  return Error{missing ? Errc::unsupported : Errc::io, why, path + ": " + std::strerror(why)};
}

/// True if all that the loader maps is there. `bytes`: the beginning of the file, of `size` bytes.
Result<void> check_object(std::span<const std::byte> bytes, std::uint64_t size,
                          const std::string& path) {
  const auto wrong = [&path](const std::string& why) {
    return Error{Errc::invalid, 0, path + " cannot be loaded: " + why};
  };
  ElfW(Ehdr) head;
  if (bytes.size() < sizeof head) return wrong("it is no shared object");
  std::memcpy(&head, bytes.data(), sizeof head);
  if (std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0) return wrong("it is no shared object");
  const auto cut = [&] { return wrong("it is cut short, at " + std::to_string(size) + " bytes"); };
  for (std::size_t i = 0; i < head.e_phnum; ++i) {
    ElfW(Phdr) part;
    const auto at = head.e_phoff + i * head.e_phentsize;
    if (at > bytes.size() || bytes.size() - at < sizeof part) return cut();
    std::memcpy(&part, bytes.data() + at, sizeof part);
    if (part.p_type != PT_LOAD) continue;
    if (part.p_offset > size || size - part.p_offset < part.p_filesz) return cut();
  }
  return {};
}

/// The contents of a file that is open.
Result<std::vector<std::byte>> contents(int fd, const std::string& path) {
  auto bytes = read_whole(fd);
  if (!bytes) return bytes;
  if (auto whole = check_object(*bytes, bytes->size(), path); !whole) return whole.error();
  return bytes;
}

Error changed(const std::string& path) {
  return {Errc::invalid, 0,
          path +
              " has changed since this job began to use it: build into another file while a job "
              "runs, or start the job again"};
}

bool same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size &&
         a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

}  // namespace

std::string code_path(const std::string& name) {
  std::error_code failed;
  if (name.empty()) return name;
  if (name.find('/') != name.npos) {
    // One name for each file, whatever the folder is called; a link to the file itself stays one.
    const auto path = fs::absolute(name, failed);
    const auto folder = fs::weakly_canonical(path.parent_path(), failed);
    return failed ? name : (folder / path.filename()).string();
  }
  const char* const folders = std::getenv("LD_LIBRARY_PATH");
  std::istringstream all(folders != nullptr ? folders : "");
  for (std::string folder; std::getline(all, folder, ':');) {
    const auto path = fs::absolute(fs::path(folder.empty() ? "." : folder) / name, failed);
    if (!failed && fs::exists(path, failed)) return path.string();
  }
  return name;
}

Result<CodeFile> look_at_code(const std::string& path) {
  if (path.find('/') == path.npos)
    return Error{Errc::unsupported, ENOENT,
                 path + ": no folder of LD_LIBRARY_PATH has it: give its path"};
  const auto fd = open_code(path);
  if (!fd) return fd.error();
  const auto bytes = contents(fd->get(), path);
  if (!bytes) return bytes.error();
  return CodeFile{path, content_id(*bytes)};
}

Result<CodeFile> keep_code(const std::string& path) {
  static auto& kept = *new std::map<std::string, CodeFile>;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (const auto known = kept.find(path); known != kept.end()) return known->second;
  auto file = look_at_code(path);
  if (file.ok()) kept.emplace(path, *file);
  return file;
}

Result<std::vector<std::byte>> read_code(const CodeFile& file) {
  const auto fd = open_code(file.path);
  if (!fd) return fd.error();
  auto bytes = read_whole(fd->get());
  if (bytes.ok() && content_id(*bytes) != file.content) return changed(file.path);
  return bytes;
}

Result<void*> load_code(const CodeFile& file, int flags) {
  const auto fd = open_code(file.path);
  if (!fd) return fd.error();
  const auto bytes = read_whole(fd->get());
  if (!bytes) return bytes.error();
  if (content_id(*bytes) != file.content) return changed(file.path);
  void* const loaded = ::dlopen(file.path.c_str(), flags);
  if (loaded == nullptr) return load_error({});
  struct stat read {
  }, there{};
  if (::fstat(fd->get(), &read) != 0 || ::stat(file.path.c_str(), &there) != 0 ||
      !same_file(read, there)) {
    ::dlclose(loaded);
    return changed(file.path);
  }
  return loaded;
}

Result<void> check_whole(const std::string& path) {
  const auto fd = open_code(path);
  if (!fd) return fd.error();
  struct stat info {};
  if (::fstat(fd->get(), &info) != 0)
    return Error{Errc::io, errno, path + ": " + std::strerror(errno)};
  // The end of what is mapped stands in the table of its parts; what else there is is not looked
  // at.
  std::vector<std::byte> head(4096);
  const auto got = ::pread(fd->get(), head.data(), head.size(), 0);
  if (got < 0) return Error{Errc::io, errno, path + ": " + std::strerror(errno)};
  head.resize(static_cast<std::size_t>(got));
  return check_object(head, static_cast<std::uint64_t>(info.st_size), path);
}

Error load_error(std::string_view what) {
  // glibc's words; dlerror() has no number.
  const char* const said = ::dlerror();
  const std::string why = said != nullptr ? said : "unknown error";
  const auto says = [&why](const char* words) { return why.find(words) != std::string::npos; };
  const bool unopened = says("cannot open shared object file");
  const auto code = !unopened                           ? Errc::library
                    : says("No such file or directory") ? Errc::unsupported
                                                        : Errc::io;
  return {code, 0, what.empty() ? why : std::string(what) + ": " + why};
}

}  // namespace troupe::ipc
