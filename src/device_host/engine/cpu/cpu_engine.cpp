#include "device_host/engine/cpu/cpu_engine.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

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

/// The reactor's thread records, so what others submit meanwhile is none of it.
class WorkGraphs final : public EngineGraphs {
 public:
  /// `push`: queues work.
  using Push = std::function<Result<void>(Task task)>;
  explicit WorkGraphs(Push push) : push_(std::move(push)) {}

  Result<void> begin(Queue) override {
    recorded = new WorkList;
    return {};
  }
  Result<std::unique_ptr<Graph>> end(Queue) override {
    auto graph = std::make_unique<WorkGraph>();
    graph->list.reset(std::exchange(recorded, nullptr));
    return std::unique_ptr<Graph>(std::move(graph));
  }
  Result<void> finish(Graph&) override { return {}; }
  Result<bool> update(Graph& graph, std::unique_ptr<Graph> changed) override {
    static_cast<WorkGraph&>(graph).list = static_cast<WorkGraph&>(*changed).list;
    return true;
  }
  Result<void> launch(Graph& graph, Queue queue) override {
    const auto& list = static_cast<WorkGraph&>(graph).list;
    return push_({.queue = queue,
                  .work =
                      [list] {
                        for (const auto& work : list->work) work();
                      },
                  .failure_over = list->failure_over});
  }

 private:
  Push push_;
};

}  // namespace

CpuEngine::CpuEngine(const EngineOptions& options)
    : options_(options),
      description_(describe_host(options.device)),
      memory_(options.memory_limit),
      libraries_("cpu"),
      graphs_(std::make_unique<WorkGraphs>(
          [this](Task task) { return worker(task.queue).push(std::move(task)); })),
      compute_("cpu-compute", signal_),
      collective_("cpu-collective", signal_) {
  auto half = make_half(library_of(Lane::collective), "cpu", static_cast<Services&>(*this)).take();
  collectives_.reset(static_cast<CollectiveHalf*>(half.release()));
  libraries_.open(Lane::collective, collectives_.get());
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

Result<void> CpuEngine::run(const OperationInfo& info, const std::byte* op, const Call& call) {
  return libraries_.at(call.queue().lane).run(info, op, call);
}

// Lanes.

Result<void> CpuEngine::open_queue(Queue queue) {
  const auto half = libraries_.load(queue.lane, static_cast<Services&>(*this));
  if (!half) return half.error();
  libraries_.open(queue.lane, *half);
  return {};
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

bool CpuEngine::records() const noexcept {
  return recorded != nullptr;
}

Result<void> CpuEngine::order_wrong_products(std::uint32_t count) {
  if (!product_checks_.on()) return Engine::order_wrong_products(count);
  product_checks_.order_wrong(count);
  return {};
}

Result<void> CpuEngine::suffer(memory::FaultKind kind, Queue) {
  return Error{Errc::unsupported, 0,
               "the cpu engine has no fault '" + std::string(to_string(kind)) + "'"};
}

}  // namespace troupe::host::cpu
