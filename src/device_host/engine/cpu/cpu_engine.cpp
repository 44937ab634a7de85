#include "device_host/engine/cpu/cpu_engine.hpp"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "common/ipc/pages.hpp"
#include "common/ipc/system_error.hpp"
#include "device_host/engine/cpu/host_info.hpp"

namespace troupe::host::cpu {
namespace {

/// The work of a graph, one after another.
struct WorkList {
  std::vector<std::function<void()>> work;
  std::shared_ptr<std::atomic<bool>> failure_over;  ///< of whatever in it has one
};

/// The list that this thread's work goes to, instead of to the workers.
thread_local WorkList* recorded = nullptr;

class WorkGraph final : public Graph {
 public:
  std::shared_ptr<WorkList> list = std::make_shared<WorkList>();
};

}  // namespace

CpuEngine::CpuEngine(const EngineOptions& options)
    : options_(options),
      description_(describe_host(options.device)),
      compute_("cpu-compute", signal_),
      collective_("cpu-collective", signal_) {
  auto half = make_half(library_of(Lane::collective), "cpu", static_cast<Services&>(*this)).take();
  collectives_.reset(static_cast<CollectiveHalf*>(half.release()));
  libraries_[static_cast<std::size_t>(Lane::collective)] = collectives_.get();
  description_.libraries = located(collectives_->stands_on());
  compute_.set_listener([this] { collective_.look_again(); });
  collective_.set_listener([this] { compute_.look_again(); });
}

CpuEngine::~CpuEngine() {
  collectives_->abort();
  // Both must skip their work before either is joined, for one may wait for a mark of the other;
  // and both must be there until both are joined, for each tells the other.
  compute_.drop_work();
  collective_.drop_work();
  compute_.finish();
  collective_.finish();
}

bool CpuEngine::blocks(const OperationInfo& info, const std::byte* op, const Call& call) {
  auto* const library = libraries_[static_cast<std::size_t>(call.queue().lane)].load();
  check(library != nullptr, "the lane is not open");
  // Where it cannot say, its own thread finds out.
  return asked(true, [&] { return library->blocks(info, op, call); });
}

Result<void> CpuEngine::run(const OperationInfo& info, const std::byte* op, const Call& call) {
  auto* const library = libraries_[static_cast<std::size_t>(call.queue().lane)].load();
  check(library != nullptr, "the lane is not open");
  return library->run(info, op, call);
}

// Memory.

Result<void> CpuEngine::reserve(std::uint64_t bytes) {
  const auto total = slab_bytes_.fetch_add(bytes) + bytes;
  if (options_.memory_limit == 0 || total <= options_.memory_limit) return {};
  slab_bytes_.fetch_sub(bytes);
  return Error{Errc::out_of_memory, 0,
               "slabs of " + std::to_string(total) + " bytes, above the limit of " +
                   std::to_string(options_.memory_limit)};
}

Result<std::byte*> CpuEngine::map(int fd, std::uint64_t bytes) {
  void* base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (base == MAP_FAILED) {
    return Error{errno == ENOMEM ? Errc::out_of_memory : Errc::io, errno,
                 std::string("mmap: ") + std::strerror(errno)};
  }
  return static_cast<std::byte*>(base);
}

Result<Slab> CpuEngine::make_slab(std::uint64_t bytes) {
  if (auto reserved = reserve(bytes); !reserved) return reserved.error();
  const auto refused = [&](const Error& error) -> Result<Slab> {
    slab_bytes_.fetch_sub(bytes);
    return error;
  };
  Slab slab;
  slab.fd.reset(::memfd_create("troupe-slab", MFD_CLOEXEC));
  if (!slab.fd) return refused(ipc::system_error("memfd_create"));
  if (auto taken = ipc::take_pages(slab.fd.get(), "a slab", bytes, ipc::Look::first); !taken)
    return refused(taken.error());
  auto mapped = map(slab.fd.get(), bytes);
  if (!mapped) return refused(mapped.error());
  slab.base = *mapped;
  return slab;
}

Result<std::byte*> CpuEngine::map_slab(int fd, std::uint64_t bytes) {
  auto mapped = map(fd, bytes);
  if (mapped) slab_bytes_.fetch_add(bytes);
  return mapped;
}

void CpuEngine::unmap_slab(std::byte* base, std::uint64_t bytes) {
  ::munmap(base, bytes);
  slab_bytes_.fetch_sub(bytes);
}

Result<std::byte*> CpuEngine::map_foreign(int fd, std::uint64_t bytes) {
  return map(fd, bytes);
}

void CpuEngine::unmap_foreign(std::byte* base, std::uint64_t bytes) {
  ::munmap(base, bytes);
}

Result<std::byte*> CpuEngine::map_pinned(int fd, std::uint64_t bytes) {
  return map(fd, bytes);
}

void CpuEngine::unmap_pinned(std::byte* base, std::uint64_t bytes) {
  ::munmap(base, bytes);
}

// Lanes.

Result<void> CpuEngine::open_queue(Queue queue) {
  auto& library = libraries_[static_cast<std::size_t>(queue.lane)];
  if (library.load() != nullptr) return {};
  auto half = make_half(library_of(queue.lane), "cpu", static_cast<Services&>(*this));
  if (!half) return half.error();
  library.store(half->get());
  const std::lock_guard lock(loaded_mutex_);
  loaded_.push_back(std::move(*half));
  return {};
}

std::vector<LoadedLibrary> CpuEngine::stands_on(Lane lane) const {
  const auto* const library = libraries_[static_cast<std::size_t>(lane)].load();
  if (library == nullptr) return {};
  return asked(std::vector<LoadedLibrary>(), [&] { return located(library->stands_on()); });
}

std::vector<std::vector<std::byte>> CpuEngine::take_new_plans(Lane lane) {
  auto* const library = libraries_[static_cast<std::size_t>(lane)].load();
  if (library == nullptr) return {};
  return asked(std::vector<std::vector<std::byte>>(), [&] { return library->take_new_plans(); });
}

void CpuEngine::adopt_plan(Lane lane, std::span<const std::byte> plan) {
  auto* const library = libraries_[static_cast<std::size_t>(lane)].load();
  asked(0, [&] { return library->adopt_plan(plan), 0; });
}

Result<std::shared_ptr<std::byte>> CpuEngine::scratch_memory(Queue, std::uint64_t bytes) {
  const auto size = std::max<std::uint64_t>(bytes, 1);
  void* const memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    return Error{Errc::out_of_memory, errno, std::string("mmap: ") + std::strerror(errno)};
  return std::shared_ptr<std::byte>(static_cast<std::byte*>(memory),
                                    [size](std::byte* base) { ::munmap(base, size); });
}

void CpuEngine::discard_library(Lane lane) {
  libraries_[static_cast<std::size_t>(lane)].store(nullptr);
}

MarkState& CpuEngine::state(Mark mark) {
  check(mark.id < marks_.size() && marks_[mark.id].state != nullptr, "a mark that is not there");
  return *marks_[mark.id].state;
}

Result<Mark> CpuEngine::mark(Queue queue) {
  auto state = std::make_shared<MarkState>();
  if (recorded != nullptr) {
    state->reached = 1;  // a list keeps its order
  } else if (auto pushed = worker(queue).push({.queue = queue, .mark = state}); !pushed) {
    return pushed.error();
  }
  if (free_marks_.empty()) {
    free_marks_.push_back(static_cast<std::uint32_t>(marks_.size()));
    marks_.emplace_back();
  }
  const auto id = free_marks_.back();
  free_marks_.pop_back();
  marks_[id] = {std::move(state), queue};
  return Mark{id};
}

Result<void> CpuEngine::wait(Queue queue, Mark mark) {
  if (state(mark).reached.load() != 0 || marks_[mark.id].queue == queue)
    return {};  // the queue keeps the order
  // This cannot deadlock: whatever a queued task waits for was queued before it.
  return worker(queue).push({.queue = queue, .wait_for = marks_[mark.id].state});
}

Result<void> CpuEngine::outcome(const MarkState& reached) {
  if (!reached.failure) return {};
  return reached.failure->error;
}

Result<bool> CpuEngine::reached(Mark mark) {
  const auto& reached = state(mark);
  if (reached.reached.load() == 0) return false;
  if (auto result = outcome(reached); !result) {
    reached.failure->reported();
    return result.error();
  }
  return true;
}

void CpuEngine::release(Mark mark) {
  check(mark.id < marks_.size() && marks_[mark.id].state != nullptr,
        "release of a mark that is not there");
  marks_[mark.id] = {};
  free_marks_.push_back(mark.id);
}

Result<void> CpuEngine::call_when_reached(Queue queue, void (*done)(void*), void* argument) {
  return worker(queue).push({.queue = queue, .then = [done, argument] { done(argument); }});
}

Result<void> CpuEngine::synchronize(Queue queue) {
  auto place = mark(queue);
  if (!place) return place.error();
  state(*place).reached.wait(0);
  auto result = reached(*place);
  release(*place);
  if (!result) return result.error();
  return {};
}

// Graphs: the reactor's thread records, so what others submit meanwhile is none of it.

Result<void> CpuEngine::begin_graph(Queue) {
  recorded = new WorkList;
  return {};
}

Result<std::unique_ptr<Graph>> CpuEngine::end_graph(Queue) {
  auto graph = std::make_unique<WorkGraph>();
  graph->list.reset(std::exchange(recorded, nullptr));
  return std::unique_ptr<Graph>(std::move(graph));
}

Result<bool> CpuEngine::update_graph(Graph& graph, std::unique_ptr<Graph> changed) {
  static_cast<WorkGraph&>(graph).list = static_cast<WorkGraph&>(*changed).list;
  return true;
}

Result<void> CpuEngine::launch_graph(Graph& graph, Queue queue) {
  const auto& list = static_cast<WorkGraph&>(graph).list;
  return worker(queue).push({.queue = queue,
                             .work =
                                 [list] {
                                   for (const auto& work : list->work) work();
                                 },
                             .failure_over = list->failure_over});
}

Result<void> CpuEngine::submit(const Call& call, std::function<void()> work,
                               std::shared_ptr<std::atomic<bool>> failure_over) {
  if (recorded != nullptr) {
    recorded->work.push_back(std::move(work));
    if (failure_over) recorded->failure_over = std::move(failure_over);
    return {};
  }
  return worker(call.queue())
      .push({.queue = call.queue(),
             .work = std::move(work),
             .failure_over = std::move(failure_over)});
}

std::uint64_t CpuEngine::free_memory() {
  return ipc::available_memory();
}

Result<void> CpuEngine::suffer(memory::FaultKind kind, Queue) {
  return Error{Errc::unsupported, 0,
               "the cpu engine has no fault '" + std::string(to_string(kind)) + "'"};
}

}  // namespace troupe::host::cpu
