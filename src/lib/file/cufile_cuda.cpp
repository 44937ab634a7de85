#include "lib/file/cufile_cuda.hpp"

#include <dlfcn.h>

#include "common/core/foreign.hpp"

namespace troupe::file {
namespace {

// Of cuFile's interface (cufile.h of CUDA 13): functions return a number of its own, 0 where they
// succeed, beside one of the driver's.
struct Status {
  int of_cufile;
  int of_cuda;
};
struct Description {  // CUfileDescr_t
  int type;
  union {
    int fd;
    void* handle;
  } handle;
  const void* operations;
};
constexpr int kOpaqueDescriptor = 1;               // CU_FILE_HANDLE_TYPE_OPAQUE_FD
constexpr int kAllowCompat = 1, kForceCompat = 2;  // CUFileBoolConfigParameter_t

using SetBool = Status (*)(int parameter, bool value);
using OpenDriver = Status (*)();
using Register = Status (*)(void** handle, Description* description);
using Deregister = void (*)(void* handle);
using ReadFile = ssize_t (*)(void* handle, void* memory, std::size_t bytes, off_t offset,
                             off_t memory_offset);
using WriteFile = ssize_t (*)(void* handle, const void* memory, std::size_t bytes, off_t offset,
                              off_t memory_offset);

Error missing(const std::string& what) {
  return {Errc::unsupported, 0, "cuFile: " + what};
}

}  // namespace

Result<CuFile> CuFile::load(const char* library) {
  void* const loaded = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);  // stays: it has threads
  if (loaded == nullptr) {
    const std::string why = ::dlerror();
    const bool absent = why.find("No such file or directory") != std::string::npos;
    return missing(absent ? std::string(library) + ": not installed" : why);
  }
  CuFile file;
  void *set = nullptr, *open = nullptr;
  const std::pair<const char*, void**> functions[] = {{"cuFileSetParameterBool", &set},
                                                      {"cuFileDriverOpen", &open},
                                                      {"cuFileHandleRegister", &file.register_},
                                                      {"cuFileHandleDeregister", &file.deregister_},
                                                      {"cuFileRead", &file.read_},
                                                      {"cuFileWrite", &file.write_}};
  for (const auto& [name, function] : functions) {
    *function = ::dlsym(loaded, name);
    if (*function == nullptr) return missing(std::string(library) + ": it has no " + name);
  }
  for (const int parameter : {kAllowCompat, kForceCompat}) {
    const auto status = call_foreign<SetBool>(set, parameter, false);
    if (status.of_cufile != 0) {
      return missing("compatibility mode cannot be switched off (status " +
                     std::to_string(status.of_cufile) + ")");
    }
  }
  if (const auto status = call_foreign<OpenDriver>(open); status.of_cufile != 0)
    return missing("no GPUDirect Storage driver (status " + std::to_string(status.of_cufile) + ")");
  return file;
}

const Result<CuFile>& CuFile::installed() {
  static const auto one = load("libcufile.so.0");
  return one;
}

Result<CuFile::File> CuFile::open(int fd) const {
  Description description{};
  description.type = kOpaqueDescriptor;
  description.handle.fd = fd;
  void* handle = nullptr;
  const auto status = call_foreign<Register>(register_, &handle, &description);
  if (status.of_cufile != 0) {
    return missing("no direct way to this file system (status " + std::to_string(status.of_cufile) +
                   ")");
  }
  return File(*this, handle);
}

CuFile::File::~File() {
  if (handle_ != nullptr) call_foreign<Deregister>(library_->deregister_, handle_);
}

ssize_t CuFile::File::write(const void* memory, std::size_t bytes, off_t offset) const {
  return call_foreign<WriteFile>(library_->write_, handle_, memory, bytes, offset, off_t{0});
}

ssize_t CuFile::File::read(void* memory, std::size_t bytes, off_t offset) const {
  return call_foreign<ReadFile>(library_->read_, handle_, memory, bytes, offset, off_t{0});
}

}  // namespace troupe::file
