#include "rank/device/kernel_builder.hpp"

#include <poll.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include <troupe/clock.hpp>

#include "common/ipc/process.hpp"
#include "common/ipc/system_error.hpp"
#include "common/ipc/unique_fd.hpp"
#include "common/ipc/whole_file.hpp"

namespace troupe::rank_process {
namespace {

namespace fs = std::filesystem;

/// Between two looks whether the job is to be given up.
constexpr int kLookMs = 50;

/// Where the compilers and their libraries are looked for.
constexpr const char* kSearchedBy[] = {"PATH", "LD_LIBRARY_PATH", "CUDA_HOME", "CPATH",
                                       "CPLUS_INCLUDE_PATH"};

/// A folder for the temporary files of one job, gone with this object.
class Folder {
 public:
  Folder() {
    std::error_code ignored;
    auto name = (fs::temp_directory_path(ignored) / "troupe-compile-XXXXXX").string();
    if (::mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

std::optional<std::string> text_of(const fs::path& file) {
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored)) return std::nullopt;
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// The names in `#include` lines. False if one of them is a macro.
bool find_includes(const std::string& text, std::vector<std::string>& names) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    auto at = line.find_first_not_of(" \t");
    if (at == line.npos || line[at] != '#') continue;
    at = line.find_first_not_of(" \t", at + 1);
    if (at == line.npos || line.compare(at, 7, "include") != 0) continue;
    at = line.find_first_not_of(" \t", at + 7);
    if (at == line.npos || (line[at] != '"' && line[at] != '<')) return false;
    const auto end = line.find(line[at] == '"' ? '"' : '>', at + 1);
    if (end == line.npos) return false;
    names.push_back(line.substr(at + 1, end - at - 1));
  }
  return true;
}

}  // namespace

std::optional<std::string> included_text(const wire::CompileJob& job) {
  std::string all;
  std::set<fs::path> seen;
  struct Text {
    std::string text;
    fs::path folder;  ///< empty: it is no file
  };
  std::vector<Text> open{{job.source, {}}};
  for (const auto& [name, text] : job.headers) open.push_back({text, {}});
  while (!open.empty()) {
    const auto one = std::move(open.back());
    open.pop_back();
    std::vector<std::string> names;
    if (!find_includes(one.text, names)) return std::nullopt;
    for (const auto& name : names) {
      auto folders = job.include_paths;
      if (!one.folder.empty()) folders.insert(folders.begin(), one.folder);
      for (const auto& folder : folders) {
        const auto path = (fs::path(folder) / name).lexically_normal();
        if (seen.contains(path)) break;
        auto text = text_of(path);
        if (!text) continue;
        seen.insert(path);
        all += path.string() + '\0' + *text + '\0';
        open.push_back({std::move(*text), path.parent_path()});
        break;
      }
    }
  }
  return all;
}

KernelBuilder::KernelBuilder(Options options)
    : options_(std::move(options)), cache_(options_.cache, options_.cache_bytes) {}

Result<wire::CompileOutcome> KernelBuilder::build(wire::CompileJob job) {
  job.host_compiler = options_.host_compiler;
  job.folder.clear();
  const auto included = included_text(job);
  auto bytes = wire::encode(job);
  const auto add = [&](std::string_view text) {
    const auto more = std::as_bytes(std::span(text.data(), text.size()));
    bytes.insert(bytes.end(), more.begin(), more.end());
    bytes.push_back({});
  };
  if (included) add(*included);
  add(wire::file_stamp(options_.tool));
  for (const auto* const variable : kSearchedBy) {
    const char* const value = std::getenv(variable);
    add(value != nullptr ? value : "");
  }
  const auto key = content_id(bytes);
  if (included) {
    if (auto known = find_in_memory(key)) return std::move(*known);
    if (auto kept = cache_.find(key)) {
      keep_in_memory(key, *kept);
      return std::move(*kept);
    }
  }
  auto outcome = compile(std::move(job));
  if (!outcome.ok()) return outcome;
  if (outcome->code != Errc::ok) return Error{outcome->code, 0, outcome->log};
  if (included) {
    keep_in_memory(key, *outcome);
    cache_.store(key, *outcome);
  }
  return outcome;
}

std::optional<wire::CompileOutcome> KernelBuilder::find_in_memory(const ContentId& key) {
  const std::lock_guard lock(mutex_);
  const auto known = std::find_if(in_memory_.begin(), in_memory_.end(),
                                  [&](const auto& one) { return one.first == key; });
  if (known == in_memory_.end()) return std::nullopt;
  in_memory_.splice(in_memory_.begin(), in_memory_, known);
  return known->second;
}

void KernelBuilder::keep_in_memory(const ContentId& key, const wire::CompileOutcome& outcome) {
  const std::lock_guard lock(mutex_);
  in_memory_.emplace_front(key, outcome);
  if (in_memory_.size() > kMaxInMemory) in_memory_.pop_back();
}

Result<wire::CompileOutcome> KernelBuilder::compile(wire::CompileJob job) {
  std::optional<Folder> folder;
  if (job.engine == "cpu") {
    folder.emplace();
    if (folder->path().empty()) return ipc::system_error("mkdtemp");
    job.folder = folder->path();
  }
  const UniqueFd asked(::memfd_create("troupe-compile-job", MFD_CLOEXEC)),
      told(::memfd_create("troupe-compiled", MFD_CLOEXEC));
  if (!asked || !told) return ipc::system_error("memfd_create");
  if (auto written = ipc::write_whole(asked.get(), wire::encode(job)); !written)
    return written.error();
  if (auto done = run_tool(asked.get(), told.get()); !done) return done.error();
  const auto bytes = ipc::read_whole(told.get());
  if (!bytes) return bytes.error();
  ++compiled_;
  return wire::decode_outcome(*bytes);
}

Result<void> KernelBuilder::run_tool(int job, int outcome) {
  ipc::SpawnOptions spawn;
  spawn.program = options_.tool;
  spawn.arguments = {std::to_string(::getpid())};
  spawn.descriptors = {job, outcome};
  spawn.blocks_job_signals = true;
  auto child = ipc::ChildProcess::spawn(spawn);
  if (!child) return child.error();
  const auto end = SteadyClock::time() + kLimit;
  pollfd ended{child->pidfd(), POLLIN, 0};
  while (::poll(&ended, 1, kLookMs) <= 0) {
    if (stopping_.load()) return Error{Errc::stopped, 0, "the runtime has ended"};
    if (SteadyClock::time() > end)
      return Error{Errc::timeout, 0, "the compiler has not ended after 10 minutes"};
  }
  const auto how = child->reap();
  if (how == "exited with status 0") return {};
  return Error{Errc::library, 0, "the process that compiles kernels has " + how};
}

Result<void> KernelBuilder::start(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  if (stopping_.load()) return Error{Errc::stopped, 0, "the runtime has ended"};
  if (waiting_.size() == kMaxWaiting)
    return Error{Errc::would_block, 0, "too many kernels wait for their compiler"};
  waiting_.push_back(std::move(work));
  if (idle_ < waiting_.size() && threads_.size() < kThreads)
    threads_.emplace_back([this] { this->work(); });
  wake_.notify_one();
  return {};
}

void KernelBuilder::work() {
  std::unique_lock lock(mutex_);
  while (!stopping_.load()) {
    if (waiting_.empty()) {
      ++idle_;
      wake_.wait(lock, [&] { return stopping_.load() || !waiting_.empty(); });
      --idle_;
      continue;
    }
    const auto next = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    next();
    lock.lock();
  }
}

void KernelBuilder::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_.store(true);
    waiting_.clear();
  }
  wake_.notify_all();
  for (auto& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace troupe::rank_process
