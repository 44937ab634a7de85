// A stand-in for cuFile, for tests of what loads it: "device" memory is the process's own. As the
// real one it opens its driver whatever the settings, and then takes regular files only.
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>

extern "C" {

struct CUfileError {
  int err;
  int cu_err;
};
struct CUfileDescr {
  int type;
  union {
    int fd;
    void* handle;
  } handle;
  const void* ops;
};

static bool compat_allowed = true, compat_forced = true;

CUfileError cuFileSetParameterBool(int parameter, bool value) {
  if (parameter == 1) compat_allowed = value;
  if (parameter == 2) compat_forced = value;
  return {0, 0};
}

CUfileError cuFileDriverOpen() {
  // Whoever leaves compatibility mode on is not told what is direct.
  return {compat_allowed || compat_forced ? 5001 : 0, 0};
}

CUfileError cuFileHandleRegister(void** handle, CUfileDescr* description) {
  struct stat status {};
  if (description->type != 1 || ::fstat(description->handle.fd, &status) != 0 ||
      !S_ISREG(status.st_mode)) {
    return {5027, 0};
  }
  *handle = new int(description->handle.fd);
  return {0, 0};
}

void cuFileHandleDeregister(void* handle) {
  delete static_cast<int*>(handle);
}

ssize_t cuFileRead(void* handle, void* memory, std::size_t bytes, off_t offset, off_t at) {
  return ::pread(*static_cast<int*>(handle), static_cast<char*>(memory) + at, bytes, offset);
}

ssize_t cuFileWrite(void* handle, const void* memory, std::size_t bytes, off_t offset, off_t at) {
  return ::pwrite(*static_cast<int*>(handle), static_cast<const char*>(memory) + at, bytes, offset);
}
}
