#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "common/ipc/process.hpp"
#include "common/ipc/unique_fd.hpp"
#include "common/ipc/whole_file.hpp"
#include "lib/kernel/compile.hpp"
#include "lib/kernel/headers.hpp"

namespace troupe::compile {
namespace {

namespace fs = std::filesystem;

/// The program of that name, as a shell finds it; empty: there is none.
std::string found(const std::string& program) {
  if (program.find('/') != program.npos) return ::access(program.c_str(), X_OK) == 0 ? program : "";
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const auto file = fs::path(folder) / program;
    if (::access(file.c_str(), X_OK) == 0) return file.string();
  }
  return {};
}

bool write_file(const fs::path& file, const std::string& text) {
  std::error_code ignored;
  fs::create_directories(file.parent_path(), ignored);
  std::ofstream out(file, std::ios::binary);
  out << text;
  return static_cast<bool>(out.flush());
}

/// Whether a file of that name stays within the folder that it is put into.
bool stays_within(const std::string& name) {
  const fs::path path(name);
  if (name.empty() || path.is_absolute()) return false;
  for (const auto& part : path) {
    if (part == "..") return false;
  }
  return true;
}

/// The translation unit: the subset, the program's source, a line for each kernel.
std::string unit_of(const wire::CompileJob& job) {
  std::string text = "#include \"troupe_kernel.hpp\"\n#include \"" + job.file + "\"\n";
  text += "namespace {\nconstexpr troupe_kernel::Entry kEntries[] = {\n";
  for (std::size_t i = 0; i < job.names.size(); ++i) {
    const auto& name = job.names[i];
    const auto kernel = name.substr(name.find_first_not_of("& "));
    // Messages name the kernel, not this line.
    text += "#line 1 \"kernel named '" + kernel + "'\"\n";
    text += "troupe_kernel::Caller<&" + kernel + ">::entry(\"" + name + "\"),\n";
  }
  text +=
      "};\n}\nextern \"C\" __attribute__((visibility(\"default\"))) const troupe_kernel::Table "
      "troupe_kernel_table{troupe_kernel::kVersion, " +
      std::to_string(job.names.size()) + ", kEntries, &troupe_kernel::enter};\n";
  return text;
}

std::vector<std::string> arguments_of(const wire::CompileJob& job, const std::string& folder) {
  // Templates of a kernel's need what came with C++17.
  const auto standard = job.standard == "c++14" || job.standard == "c++11" ? "c++17" : job.standard;
  // Two images may have the same names in them: none may be shared between them.
  std::vector<std::string> arguments{"-std=" + standard,
                                     "-O2",
                                     "-fPIC",
                                     "-shared",
                                     "-fno-gnu-unique",
                                     "-fno-strict-aliasing",
                                     "-Wno-unknown-pragmas",
                                     "-Wno-attributes",
                                     "-Wl,-Bsymbolic",
                                     "-Wl,-z,defs",
                                     "-I" + folder};
  for (const auto& path : job.include_paths) arguments.push_back("-I" + path);
  arguments.insert(arguments.end(), job.options.begin(), job.options.end());
  arguments.insert(arguments.end(),
                   {"-x", "c++", folder + "/troupe_unit.cpp", "-o", folder + "/image.so"});
  return arguments;
}

/// Runs the compiler; its words are in the file `log`. Returns how it ended.
std::string run(const std::string& compiler, std::vector<std::string> arguments, int log) {
  (void)::dup2(log, STDOUT_FILENO);
  (void)::dup2(log, STDERR_FILENO);
  ::setenv("LC_ALL", "C", 1);
  ipc::SpawnOptions spawn;
  spawn.program = compiler;
  spawn.arguments = std::move(arguments);
  auto child = ipc::ChildProcess::spawn(spawn);
  return child.ok() ? child->reap() : child.error().message;
}

std::string without(std::string text, const std::string& folder) {
  for (auto at = text.find(folder + "/"); at != text.npos; at = text.find(folder + "/", at))
    text.erase(at, folder.size() + 1);
  return text;
}

}  // namespace

std::string rewritten(const std::string& source) {
  // `extern __shared__ [alignment] TYPE NAME[];`
  static const std::regex dynamic(
      R"(\bextern\s+__shared__\s+(?:(?:__align__|alignas)\s*\(\s*\w+\s*\)\s*)?)"
      R"(([A-Za-z_][\w:<>, \t]*?)\s*\b([A-Za-z_]\w*)\s*\[\s*\]\s*;)");
  static const std::regex twice(R"(\bstatic(\s+)__shared__\b)");
  const auto pointers = std::regex_replace(
      source, dynamic, "auto* const $2 = ::troupe_kernel::dynamic_shared<$1>();");
  return std::regex_replace(pointers, twice, "$1__shared__");
}

wire::CompileOutcome for_cpu(const wire::CompileJob& job) {
  const auto compiler = found(job.host_compiler);
  if (compiler.empty())
    return failed(Errc::unsupported, "there is no compiler " + job.host_compiler +
                                         " for the cpu engine (see --host-compiler)");
  const fs::path folder = job.folder;
  for (const auto& name : job.names) {
    if (name.find_first_not_of("& ") == name.npos || name.find_first_of("\"\n\\;") != name.npos)
      return failed(Errc::invalid, "\"" + name + "\" is no name of a kernel");
  }
  bool written = stays_within(job.file) && write_file(folder / job.file, rewritten(job.source));
  for (const auto& [name, text] : job.headers)
    written = written && stays_within(name) && write_file(folder / name, rewritten(text));
  written = written && write_file(folder / "troupe_kernel.hpp", kSubset) &&
            write_file(folder / "lib/kernel/image_cpu.hpp", kImage) &&
            write_file(folder / "troupe_unit.cpp", unit_of(job));
  if (!written)
    return failed(Errc::invalid,
                  "the source or a header cannot be written in " + folder.string() +
                      ": its name is a path that leads elsewhere, or there is no room");
  const UniqueFd log(::memfd_create("log", MFD_CLOEXEC));
  const auto how = run(compiler, arguments_of(job, folder.string()), log.get());
  wire::CompileOutcome outcome;
  if (const auto words = ipc::read_whole(log.get()); words.ok())
    outcome.log =
        without({reinterpret_cast<const char*>(words->data()), words->size()}, folder.string());
  std::error_code ignored;
  const auto real = fs::canonical(compiler, ignored);
  outcome.compiler = wire::file_stamp(compiler) + wire::file_stamp(real.string());
  if (how != "exited with status 0") {
    outcome.code = Errc::invalid;
    outcome.log = compiler + " has " + how +
                  " (the cpu engine takes a subset of CUDA C++: see docs/kernels.md)\n" +
                  outcome.log;
    return outcome;
  }
  const UniqueFd image(::open((folder / "image.so").c_str(), O_RDONLY | O_CLOEXEC));
  auto bytes = ipc::read_whole(image.get());
  if (!bytes) return failed(Errc::io, bytes.error().message);
  outcome.image = std::move(*bytes);
  outcome.names = job.names;
  return outcome;
}

}  // namespace troupe::compile
