#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <regex>
#include <sstream>
#include <string_view>

#include "common/core/content_id.hpp"
#include "common/ipc/process.hpp"
#include "common/ipc/unique_fd.hpp"
#include "common/ipc/whole_file.hpp"
#include "lib/kernel/compiler/compile.hpp"
#include "lib/kernel/headers.hpp"

namespace troupe::compile {
namespace {

namespace fs = std::filesystem;

constexpr const char *kUnit = "troupe_unit.cpp", *kPreprocessed = "troupe_unit.ii";

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

/// The arguments of the preprocessor and of the compiler.
std::vector<std::string> arguments_of(const wire::CompileJob& job) {
  // Templates of a kernel's need what came with C++17.
  const auto standard = job.standard == "c++14" || job.standard == "c++11" ? "c++17" : job.standard;
  // Two images may have the same names in them: none may be shared between them. Messages of
  // assertions name the source as the program does.
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
                                     "-fmacro-prefix-map=" + job.folder + "/=",
                                     "-I" + job.folder};
  for (const auto& path : job.include_paths) arguments.push_back("-I" + path);
  arguments.insert(arguments.end(), job.options.begin(), job.options.end());
  return arguments;
}

/// A run of the compiler.
struct Run {
  std::string ending;
  std::string words;  ///< what it has written, to either stream
  [[nodiscard]] bool ok() const { return ending == "exited with status 0"; }
};

/// The compiler's own processes are in the group of this one, and end with it.
Run run(const std::string& compiler, std::vector<std::string> arguments,
        std::initializer_list<std::string> more) {
  const UniqueFd log(::memfd_create("log", MFD_CLOEXEC));
  (void)::dup2(log.get(), STDOUT_FILENO);
  (void)::dup2(log.get(), STDERR_FILENO);
  arguments.insert(arguments.end(), more);
  ipc::SpawnOptions spawn;
  spawn.program = compiler;
  spawn.arguments = std::move(arguments);
  spawn.leads_group = false;
  auto child = ipc::ChildProcess::spawn(spawn);
  Run done{child.ok() ? child->reap() : child.error().message, {}};
  if (const auto words = ipc::read_whole(log.get()); words.ok())
    done.words.assign(reinterpret_cast<const char*>(words->data()), words->size());
  return done;
}

/// True if nothing but the preprocessed source decides on the image under these options: none names
/// a file to anything but the preprocessor.
bool all_known(const std::vector<std::string>& options) {
  static const std::vector<std::string> with_value{
      "-I",      "-D",       "-U",       "-include",     "-imacros",  "-idirafter",
      "-iquote", "-isystem", "-iprefix", "-iwithprefix", "-isysroot", "-iwithprefixbefore"};
  static const std::regex sound(
      R"(-[IDUOgm].*|-i(nclude|macros|dirafter|quote|system|sysroot).*|-std=.*|-w|-ansi|-pthread|)"
      R"(-pedantic.*|-W(?![lap],).*|)"
      R"(-f(?!plugin|profile|auto-profile|branch-prob|module|use-ld|sanitize-|pre|offload).*)");
  for (std::size_t i = 0; i < options.size(); ++i) {
    if (std::find(with_value.begin(), with_value.end(), options[i]) != with_value.end())
      ++i;
    else if (!std::regex_match(options[i], sound))
      return false;
  }
  return true;
}

/// True if the assembler may include files for it.
bool names_files(const std::string& preprocessed) {
  return preprocessed.find(".incbin") != std::string::npos ||
         preprocessed.find(".include") != std::string::npos;
}

/// The compiler, also behind symbolic links.
std::string stamps_of(const std::string& compiler) {
  std::error_code ignored;
  return wire::file_stamp(compiler) + wire::file_stamp(fs::canonical(compiler, ignored).string());
}

/// The folder has another name each time: neither messages nor keys have it.
std::string without(std::string_view text, const std::string& folder) {
  std::string rest;
  for (auto at = text.find(folder); at != text.npos; at = text.find(folder)) {
    rest += text.substr(0, at);
    text.remove_prefix(at + folder.size());
    if (text.starts_with('/')) text.remove_prefix(1);
  }
  return rest += text;
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

namespace {

/// Writes what the translation unit is made of. False: it cannot be.
bool write_unit(const wire::CompileJob& job) {
  const fs::path folder = job.folder;
  bool written = stays_within(job.file) && write_file(folder / job.file, rewritten(job.source));
  for (const auto& [name, text] : job.headers)
    written = written && stays_within(name) && write_file(folder / name, rewritten(text));
  return written && write_file(folder / "troupe_kernel.hpp", kSubset) &&
         write_file(folder / "lib/kernel/fibers/image_cpu.hpp", kImage) &&
         write_file(folder / kUnit, unit_of(job));
}

wire::CompileOutcome refused(const std::string& compiler, const Run& run,
                             const std::string& folder) {
  return failed(Errc::invalid,
                compiler + " has " + run.ending +
                    " (the cpu engine takes a subset of CUDA C++: see docs/kernels.md)\n" +
                    without(run.words, folder));
}

/// Leaves the preprocessed source in the folder, which is all that the rest is made from.
wire::CompileOutcome preprocessed(const wire::CompileJob& job, const std::string& compiler,
                                  const std::vector<std::string>& arguments) {
  if (!write_unit(job))
    return failed(Errc::invalid,
                  "the source or a header cannot be written in " + job.folder +
                      ": its name is a path that leads elsewhere, or there is no room");
  const auto unit = job.folder + "/" + kUnit, text_file = job.folder + "/" + kPreprocessed;
  const auto done = run(compiler, arguments, {"-E", "-x", "c++", unit, "-o", text_file});
  if (!done.ok()) return refused(compiler, done, job.folder);
  // The commands that it would run for that name the real compiler, its version, and the machine
  // that -march=native means.
  const auto commands =
      run(compiler, arguments, {"-###", "-S", "-x", "c++-cpp-output", text_file, "-o", "image.s"});
  const UniqueFd file(::open(text_file.c_str(), O_RDONLY | O_CLOEXEC));
  const auto bytes = ipc::read_whole(file.get());
  if (!bytes) return failed(Errc::io, bytes.error().message);
  const auto text =
      without({reinterpret_cast<const char*>(bytes->data()), bytes->size()}, job.folder);
  wire::CompileOutcome outcome;
  outcome.log = without(done.words, job.folder);
  outcome.known = commands.ok() && all_known(job.options) && !names_files(text);
  outcome.identity =
      content_id(text).text() + stamps_of(compiler) + without(commands.words, job.folder);
  return outcome;
}

}  // namespace

wire::CompileOutcome for_cpu(const wire::CompileJob& job) {
  const auto compiler = found(job.host_compiler);
  if (compiler.empty())
    return failed(Errc::unsupported, "there is no compiler " + job.host_compiler +
                                         " for the cpu engine (see --host-compiler)");
  for (const auto& name : job.names) {
    if (name.find_first_not_of("& ") == name.npos || name.find_first_of("\"\n\\;") != name.npos)
      return failed(Errc::invalid, "\"" + name + "\" is no name of a kernel");
  }
  ::setenv("LC_ALL", "C", 1);
  ::setenv("TMPDIR", job.folder.c_str(), 1);
  const auto arguments = arguments_of(job);
  if (job.step == wire::CompileStep::preprocess) return preprocessed(job, compiler, arguments);
  const auto& folder = job.folder;
  const auto image_file = folder + "/image.so";
  const auto done = run(compiler, arguments,
                        {"-x", "c++-cpp-output", folder + "/" + kPreprocessed, "-o", image_file});
  if (!done.ok()) return refused(compiler, done, folder);
  wire::CompileOutcome outcome;
  outcome.log = without(done.words, folder);
  const UniqueFd image(::open(image_file.c_str(), O_RDONLY | O_CLOEXEC));
  auto bytes = ipc::read_whole(image.get());
  if (!bytes) return failed(Errc::io, bytes.error().message);
  outcome.image = std::move(*bytes);
  outcome.names = job.names;
  return outcome;
}

}  // namespace troupe::compile
