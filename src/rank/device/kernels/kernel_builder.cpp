#include "rank/device/kernels/kernel_builder.hpp"

#include <poll.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>

#include <troupe/clock.hpp>

#include "common/ipc/process.hpp"
#include "common/ipc/scratch_folder.hpp"
#include "common/ipc/system_error.hpp"
#include "common/ipc/unique_fd.hpp"
#include "common/ipc/whole_file.hpp"

namespace troupe::rank_process {
namespace {

/// Between two looks whether the job is to be given up.
constexpr int kLookMs = 50;

/// Variables by which compilers, and the wrappers of some, find their parts, libraries and headers.
/// The preprocessed source and the files looked for show most of it; this is for the rest.
constexpr const char* kSearchedBy[] = {"PATH",          "LD_LIBRARY_PATH", "LD_PRELOAD",
                                       "CUDA_HOME",     "CPATH",           "CPLUS_INCLUDE_PATH",
                                       "COMPILER_PATH", "GCC_EXEC_PREFIX", "LIBRARY_PATH"};

/// All that is known beforehand of what an image is made from.
std::vector<std::byte> key_of(wire::CompileJob job, const std::string& tool,
                              const std::string& identity) {
  job.step = wire::CompileStep::whole;
  job.folder.clear();
  auto key = wire::encode(job);
  const auto add = [&](std::string_view text) {
    const auto more = std::as_bytes(std::span(text.data(), text.size()));
    key.insert(key.end(), more.begin(), more.end());
    key.push_back({});
  };
  add(wire::file_stamp(tool));
  for (const auto* const variable : kSearchedBy) {
    const char* const value = std::getenv(variable);
    add(value != nullptr ? value : "");
  }
  add(identity);
  return key;
}

}  // namespace

KernelBuilder::KernelBuilder(Options options)
    : options_(std::move(options)), cache_(options_.cache, options_.cache_bytes) {}

Result<wire::CompileOutcome> KernelBuilder::build(wire::CompileJob job) {
  job.host_compiler = options_.host_compiler;
  job.folder.clear();
  if (job.engine == "cpu") return build_preprocessed(std::move(job));
  const auto key = key_of(job, options_.tool, {});
  if (auto kept = find(key)) return std::move(*kept);
  auto outcome = run_tool(job, -1);
  if (outcome.ok()) {
    ++compiled_;
    keep(key, *outcome);
  }
  return outcome;
}

Result<wire::CompileOutcome> KernelBuilder::build_preprocessed(wire::CompileJob job) {
  const auto folder = ipc::ScratchFolder::make("troupe-compiling");
  if (!folder) return folder.error();
  job.folder = folder->path();
  job.step = wire::CompileStep::preprocess;
  auto source = run_tool(job, folder->lock());
  if (!source.ok()) return source;
  const auto key = key_of(job, options_.tool, source->identity);
  if (source->known) {
    if (auto kept = find(key)) return std::move(*kept);
  }
  job.step = wire::CompileStep::rest;
  auto outcome = run_tool(job, folder->lock());
  if (!outcome.ok()) return outcome;
  ++compiled_;
  outcome->log = source->log + outcome->log;
  outcome->known = source->known;
  keep(key, *outcome);
  return outcome;
}

std::optional<wire::CompileOutcome> KernelBuilder::find(KernelKey key) {
  if (auto known = find_in_memory(key)) return known;
  auto kept = cache_.find(key);
  if (kept) keep_in_memory(key, *kept);
  return kept;
}

void KernelBuilder::keep(KernelKey key, const wire::CompileOutcome& outcome) {
  if (!outcome.known) return;
  keep_in_memory(key, outcome);
  cache_.store(key, outcome);
}

std::optional<wire::CompileOutcome> KernelBuilder::find_in_memory(KernelKey key) {
  const std::lock_guard lock(mutex_);
  const auto known = std::find_if(in_memory_.begin(), in_memory_.end(), [&](const auto& one) {
    return std::equal(one.first.begin(), one.first.end(), key.begin(), key.end());
  });
  if (known == in_memory_.end()) return std::nullopt;
  if (!wire::inputs_hold(known->second.inputs)) {
    in_memory_.erase(known);
    return std::nullopt;
  }
  in_memory_.splice(in_memory_.begin(), in_memory_, known);
  return known->second;
}

void KernelBuilder::keep_in_memory(KernelKey key, const wire::CompileOutcome& outcome) {
  const std::lock_guard lock(mutex_);
  in_memory_.emplace_front(std::vector<std::byte>(key.begin(), key.end()), outcome);
  if (in_memory_.size() > kMaxInMemory) in_memory_.pop_back();
}

Result<wire::CompileOutcome> KernelBuilder::run_tool(const wire::CompileJob& job, int lock) {
  const UniqueFd asked(::memfd_create("troupe-compile-job", MFD_CLOEXEC)),
      told(::memfd_create("troupe-compiled", MFD_CLOEXEC));
  if (!asked || !told) return ipc::system_error("memfd_create");
  if (auto written = ipc::write_whole(asked.get(), wire::encode(job)); !written)
    return written.error();
  if (auto done = run_tool(asked.get(), told.get(), lock); !done) return done.error();
  const auto bytes = ipc::read_whole(told.get());
  if (!bytes) return bytes.error();
  auto outcome = wire::decode_outcome(*bytes);
  if (outcome.ok() && outcome->code != Errc::ok) return Error{outcome->code, 0, outcome->log};
  return outcome;
}

Result<void> KernelBuilder::run_tool(int job, int outcome, int lock) {
  ipc::SpawnOptions spawn;
  spawn.program = options_.tool;
  spawn.arguments = {std::to_string(::getpid())};
  spawn.descriptors = {job, outcome};
  if (lock >= 0)
    spawn.descriptors.push_back(lock);  // so that the folder is not taken for abandoned
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
  return Error{Errc::library, 0, "the process that compiles kernels has ended: " + how};
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
