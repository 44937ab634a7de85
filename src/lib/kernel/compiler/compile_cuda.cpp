#include <cuda.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <nvJitLink.h>
#include <nvrtc.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <vector>

#include "common/ipc/unique_fd.hpp"
#include "common/ipc/whole_file.hpp"
#include "lib/kernel/compiler/compile.hpp"
#include "lib/kernel/compiler/file_recorder.hpp"

// NVRTC and nvJitLink are loaded, not linked: troupe-compile starts where there is neither, and of
// nvJitLink only what asks for it pays.

namespace troupe::compile {
namespace {

namespace fs = std::filesystem;

/// A library of the toolkit that troupe was built with.
class Loaded {
 public:
  explicit Loaded(const std::string& name) {
    std::vector<std::string> places{name, TROUPE_CUDA_LIBRARIES "/" + name};
    if (const char* const home = std::getenv("CUDA_HOME"); home != nullptr)
      places.push_back(std::string(home) + "/lib64/" + name);
    places.push_back("/usr/local/cuda/lib64/" + name);
    for (const auto& place : places) {
      if (library_ != nullptr) break;
      library_ = ::dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (library_ == nullptr && why_.empty()) why_ = ::dlerror();
    }
  }
  [[nodiscard]] bool ok() const { return library_ != nullptr; }
  [[nodiscard]] const std::string& why() const { return why_; }
  template <class Function>
  void find(const char* symbol, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(library_, symbol));
    if (function != nullptr) return;
    why_ = std::string("it has no ") + symbol;
    complete_ = false;
  }
  [[nodiscard]] bool complete() const { return complete_; }

 private:
  void* library_ = nullptr;
  bool complete_ = true;
  std::string why_;
};

struct Nvrtc {
  Loaded library{"libnvrtc.so." + std::to_string(CUDA_VERSION / 1000)};
  decltype(&nvrtcGetErrorString) error_string = nullptr;
  decltype(&nvrtcGetNumSupportedArchs) count_architectures = nullptr;
  decltype(&nvrtcGetSupportedArchs) architectures = nullptr;
  decltype(&nvrtcCreateProgram) create = nullptr;
  decltype(&nvrtcAddNameExpression) add_name = nullptr;
  decltype(&nvrtcCompileProgram) compile = nullptr;
  decltype(&nvrtcGetProgramLogSize) log_size = nullptr;
  decltype(&nvrtcGetProgramLog) log = nullptr;
  decltype(&nvrtcGetLoweredName) lowered_name = nullptr;
  decltype(&nvrtcGetCUBINSize) cubin_size = nullptr;
  decltype(&nvrtcGetCUBIN) cubin = nullptr;
  decltype(&nvrtcGetPTXSize) ptx_size = nullptr;
  decltype(&nvrtcGetPTX) ptx = nullptr;
  decltype(&nvrtcGetLTOIRSize) lto_size = nullptr;
  decltype(&nvrtcGetLTOIR) lto = nullptr;

  Nvrtc() {
    if (!library.ok()) return;
    library.find("nvrtcGetErrorString", error_string);
    library.find("nvrtcGetNumSupportedArchs", count_architectures);
    library.find("nvrtcGetSupportedArchs", architectures);
    library.find("nvrtcCreateProgram", create);
    library.find("nvrtcAddNameExpression", add_name);
    library.find("nvrtcCompileProgram", compile);
    library.find("nvrtcGetProgramLogSize", log_size);
    library.find("nvrtcGetProgramLog", log);
    library.find("nvrtcGetLoweredName", lowered_name);
    library.find("nvrtcGetCUBINSize", cubin_size);
    library.find("nvrtcGetCUBIN", cubin);
    library.find("nvrtcGetPTXSize", ptx_size);
    library.find("nvrtcGetPTX", ptx);
    library.find("nvrtcGetLTOIRSize", lto_size);
    library.find("nvrtcGetLTOIR", lto);
  }
  /// Where it lies. The headers of its toolkit are found from there.
  [[nodiscard]] std::string path() const {
    Dl_info info{};
    if (::dladdr(reinterpret_cast<const void*>(create), &info) == 0) return {};
    std::error_code ignored;
    return fs::canonical(info.dli_fname, ignored).string();
  }
};

/// The compilers of the toolkit that this process has loaded: NVRTC, its built-in functions, the
/// linker.
std::string loaded_compilers() {
  std::string stamps;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* to) {
        std::error_code ignored;
        const auto path = fs::canonical(info->dlpi_name, ignored);
        if (path.filename().string().starts_with("libnv"))
          *static_cast<std::string*>(to) += wire::file_stamp(path.string());
        return 0;
      },
      &stamps);
  return stamps;
}

/// True if the text means something else each time that it is compiled.
bool tells_the_time(std::string_view text) {
  const auto has = [&](const char* macro) { return text.find(macro) != text.npos; };
  return has("__DATE__") || has("__TIME__") || has("__TIMESTAMP__");
}

/// True if the image follows from the job and from the files that were looked for.
bool is_known(const wire::CompileJob& job, const std::vector<wire::CompileInput>& inputs) {
  // Some of NVRTC's options have it write files, or use what an earlier job has left.
  for (const auto& option : job.options) {
    if (option.starts_with("-D") || option.starts_with("-I")) continue;
    if (option.find("pch") != option.npos || option.find("time") != option.npos) return false;
  }
  if (tells_the_time(job.source)) return false;
  for (const auto& [name, text] : job.headers) {
    if (tells_the_time(text)) return false;
  }
  return std::none_of(inputs.begin(), inputs.end(), [](const wire::CompileInput& input) {
    if (!input.is_file) return false;
    const UniqueFd file(::open(input.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    const auto bytes = file ? ipc::read_whole(file.get()) : Result<std::vector<std::byte>>(Error{});
    if (!bytes.ok()) return true;  // it may tell anything
    return tells_the_time({reinterpret_cast<const char*>(bytes->data()), bytes->size()});
  });
}

/// The headers of the toolkit that a library of it belongs to.
std::vector<std::string> toolkit_headers(const std::string& library) {
  std::vector<fs::path> roots;
  const auto folder = fs::path(library).parent_path();
  for (const auto* const up : {"..", "../.."}) roots.push_back((folder / up).lexically_normal());
  if (const char* const home = std::getenv("CUDA_HOME"); home != nullptr) roots.emplace_back(home);
  std::vector<std::string> paths;
  for (const auto& root : roots) {
    std::error_code ignored;
    if (!fs::exists(root / "include" / "cuda_runtime.h", ignored)) continue;
    paths.push_back((root / "include").string());
    paths.push_back((root / "include" / "cccl").string());
    break;
  }
  return paths;
}

bool names_architecture(const wire::CompileJob& job) {
  return std::any_of(job.options.begin(), job.options.end(), [](const std::string& option) {
    return option.starts_with("-arch") || option.starts_with("--gpu-architecture");
  });
}

/// For link-time optimisation: from NVRTC's output to a cubin.
wire::CompileOutcome linked(const wire::CompileJob& job, const std::vector<std::byte>& ir) {
  Loaded library("libnvJitLink.so." + std::to_string(CUDA_VERSION / 1000));
  if (!library.ok()) return failed(Errc::unsupported, "no nvJitLink: " + library.why());
  decltype(&nvJitLinkCreate) create = nullptr;
  decltype(&nvJitLinkAddData) add = nullptr;
  decltype(&nvJitLinkComplete) complete = nullptr;
  decltype(&nvJitLinkGetLinkedCubinSize) size = nullptr;
  decltype(&nvJitLinkGetLinkedCubin) get = nullptr;
  decltype(&nvJitLinkGetErrorLogSize) log_size = nullptr;
  decltype(&nvJitLinkGetErrorLog) get_log = nullptr;
  library.find("nvJitLinkCreate", create), library.find("nvJitLinkAddData", add);
  library.find("nvJitLinkComplete", complete), library.find("nvJitLinkGetLinkedCubin", get);
  library.find("nvJitLinkGetLinkedCubinSize", size);
  library.find("nvJitLinkGetErrorLogSize", log_size);
  library.find("nvJitLinkGetErrorLog", get_log);
  if (!library.complete()) return failed(Errc::unsupported, "nvJitLink: " + library.why());
  const auto architecture = "-arch=sm_" + std::to_string(job.compute_capability);
  const char* options[] = {architecture.c_str(), "-lto"};
  nvJitLinkHandle handle = nullptr;
  auto status = create(&handle, 2, options);
  if (status == NVJITLINK_SUCCESS)
    status = add(handle, NVJITLINK_INPUT_LTOIR, ir.data(), ir.size(), job.file.c_str());
  if (status == NVJITLINK_SUCCESS) status = complete(handle);
  std::size_t bytes = 0;
  if (status == NVJITLINK_SUCCESS) status = size(handle, &bytes);
  wire::CompileOutcome outcome;
  outcome.image.resize(bytes);
  if (status == NVJITLINK_SUCCESS) status = get(handle, outcome.image.data());
  if (status == NVJITLINK_SUCCESS) return outcome;
  std::string words;
  if (handle != nullptr && log_size(handle, &bytes) == NVJITLINK_SUCCESS && bytes > 0) {
    words.resize(bytes);
    (void)get_log(handle, words.data());
  }
  return failed(Errc::invalid, "nvJitLink has failed (" + std::to_string(static_cast<int>(status)) +
                                   ")\n" + words);
}

/// One program of NVRTC's.
class Program {
 public:
  Program(const Nvrtc& api, const wire::CompileJob& job) : api_(api), job_(job) {}

  wire::CompileOutcome compile() {
    std::vector<const char*> texts, names;
    for (const auto& [name, text] : job_.headers)
      names.push_back(name.c_str()), texts.push_back(text.c_str());
    auto status = api_.create(&program_, job_.source.c_str(), job_.file.c_str(),
                              static_cast<int>(texts.size()), texts.data(), names.data());
    if (status != NVRTC_SUCCESS) return fail(status, "nvrtcCreateProgram");
    for (const auto& name : job_.names) {
      status = api_.add_name(program_, name.c_str());
      if (status != NVRTC_SUCCESS) return fail(status, "nvrtcAddNameExpression");
    }
    choose_architecture();
    std::vector<const char*> options;
    for (const auto& option : options_) options.push_back(option.c_str());
    {
      const FileRecorder recorder;
      status = api_.compile(program_, static_cast<int>(options.size()), options.data());
      if (auto inputs = FileRecorder::inputs()) {
        outcome_.inputs = std::move(*inputs);
        outcome_.known = is_known(job_, outcome_.inputs);
      }
    }
    read_log();
    if (status != NVRTC_SUCCESS) return fail(status, "NVRTC");
    for (const auto& name : job_.names) {
      const char* lowered = nullptr;
      status = api_.lowered_name(program_, name.c_str(), &lowered);
      if (status != NVRTC_SUCCESS) return fail(status, "there is no kernel " + name);
      outcome_.names.emplace_back(lowered);
    }
    return take_image();
  }

 private:
  /// The device's own. What NVRTC does not know yet gets PTX of the newest that it knows.
  void choose_architecture() {
    options_ = {"--std=" + job_.standard};
    if (job_.link) options_.emplace_back("-dlto");
    if (!names_architecture(job_)) {
      int count = 0;
      (void)api_.count_architectures(&count);
      std::vector<int> known(static_cast<std::size_t>(count));
      if (count != 0) (void)api_.architectures(known.data());
      const auto wanted = static_cast<int>(job_.compute_capability);
      const auto newest = known.empty() ? wanted : *std::max_element(known.begin(), known.end());
      ptx_ = wanted > newest;
      options_.push_back("--gpu-architecture=" + std::string(ptx_ ? "compute_" : "sm_") +
                         std::to_string(std::min(wanted, newest)));
    }
    for (const auto& path : job_.include_paths) options_.push_back("-I" + path);
    for (const auto& path : toolkit_headers(api_.path())) options_.push_back("-I" + path);
    options_.insert(options_.end(), job_.options.begin(), job_.options.end());
  }
  void read_log() {
    std::size_t bytes = 0;
    if (api_.log_size(program_, &bytes) != NVRTC_SUCCESS || bytes <= 1) return;
    outcome_.log.resize(bytes);
    (void)api_.log(program_, outcome_.log.data());
    outcome_.log.resize(bytes - 1);  // the zero at its end
  }
  wire::CompileOutcome take_image() {
    const auto size = job_.link ? api_.lto_size : ptx_ ? api_.ptx_size : api_.cubin_size;
    const auto get = job_.link ? api_.lto : ptx_ ? api_.ptx : api_.cubin;
    std::size_t bytes = 0;
    auto status = size(program_, &bytes);
    std::vector<std::byte> image(bytes);
    if (status == NVRTC_SUCCESS) status = get(program_, reinterpret_cast<char*>(image.data()));
    if (status != NVRTC_SUCCESS || bytes == 0) return fail(status, "NVRTC has made no image");
    if (job_.link) {
      auto result = linked(job_, image);
      if (result.code != Errc::ok) return result;
      image = std::move(result.image);
    }
    outcome_.image = std::move(image);
    return outcome_;
  }
  wire::CompileOutcome fail(nvrtcResult status, const std::string& what) {
    auto result =
        failed(Errc::invalid, what + ": " + api_.error_string(status) + "\n" + outcome_.log);
    return result;
  }

  const Nvrtc& api_;
  const wire::CompileJob& job_;
  nvrtcProgram program_ = nullptr;  // it ends with the process
  std::vector<std::string> options_;
  bool ptx_ = false;
  wire::CompileOutcome outcome_;
};

}  // namespace

wire::CompileOutcome for_cuda(const wire::CompileJob& job) {
  const Nvrtc api;
  if (!api.library.ok()) return failed(Errc::unsupported, "no NVRTC: " + api.library.why());
  if (!api.library.complete()) return failed(Errc::unsupported, "NVRTC: " + api.library.why());
  auto outcome = Program(api, job).compile();
  outcome.compiler = loaded_compilers();
  return outcome;
}

}  // namespace troupe::compile
