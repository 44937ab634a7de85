#include "device_host/engine/cuda/cuda_engine.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "device_host/engine/cuda/faults.hpp"
#include "device_host/engine/cuda/kernels.hpp"

namespace troupe::host::cuda {
namespace {

constexpr std::size_t kProbeBytes = 8;

}  // namespace

CudaEngine::CudaEngine(const EngineOptions& options, const Driver& api, DeviceInfo description,
                       const DeviceFacts& facts)
    : register_buffers_(options.register_buffers),
      api_(api),
      description_(std::move(description)),
      services_(options, facts),
      memory_(services_, api, options.memory_limit, facts.rdma),
      graphs_(services_),
      libraries_("cuda", [this] { services_.enter(); }) {}

CudaEngine::~CudaEngine() {
  if (collectives_ != nullptr) collectives_->abort();
  services_.enter();  // for the libraries' ends
}

Result<void> CudaEngine::start() {
  // Before the context, which starts threads: see the half.
  auto half = make_half(library_of(Lane::collective), "cuda", static_cast<Services&>(services_));
  if (!half) return half.error();
  collectives_.reset(static_cast<CollectiveHalf*>(half->release()));
  libraries_.open(Lane::collective, collectives_.get());
  if (register_buffers_) memory_.register_with(collectives_.get());
  for (auto& library : located(collectives_->stands_on()))
    description_.libraries.push_back(std::move(library));
  const auto before = free_memory_of(description_.bus_id);
  TROUPE_CUDA_TRY(cudaSetDevice(services_.device()));
  TROUPE_CUDA_TRY(cudaFree(nullptr));
  if (const auto after = free_memory_of(description_.bus_id); before && after)
    services_.memory_use().add("context", static_cast<std::int64_t>(*before - *after));
  TROUPE_CUDA_TRY(kernels::preload());
  TROUPE_CUDA_TRY(faults::preload());
  graphs_.start();
  TROUPE_CUDA_TRY(cudaMallocHost(scratch_cells_.out(), kScratchCellBytes));
  TROUPE_CUDA_PROPAGATE(services_.start());
  TROUPE_CUDA_TRY(cudaEventCreateWithFlags(probed_.out(), cudaEventDisableTiming));
  TROUPE_CUDA_TRY(cudaMalloc(probe_memory_.out(), kProbeBytes));
  return marks_.start();
}

Result<void> CudaEngine::run(const OperationInfo& info, const std::byte* op, const Call& call) {
  services_.enter();
  return libraries_.at(call.queue().lane).run(info, op, call);
}

Result<std::shared_ptr<std::byte>> CudaEngine::scratch_memory(Queue queue, std::uint64_t bytes) {
  auto memory = services_.reserve(queue, std::max<std::uint64_t>(bytes, 1));
  if (!memory) return memory.error();
  TROUPE_CUDA_TRY(cudaMemsetAsync(memory->get(), 0, bytes, services_.stream(queue)));
  return std::shared_ptr<std::byte>(
      static_cast<std::byte*>(memory->release()),
      [this, queue](std::byte* base) { (void)cudaFreeAsync(base, services_.stream(queue)); });
}

Result<void> CudaEngine::open_queue(Queue queue) {
  services_.enter();
  const bool own = queue.lane < Lane::first_library;
  return services_.memory_use().measured(own ? "queues" : std::string(to_string(queue.lane)),
                                         [&] { return open_measured(queue); });
}

Result<void> CudaEngine::open_measured(Queue queue) {
  TROUPE_CUDA_PROPAGATE(services_.open(queue));
  const auto half = libraries_.load(queue.lane, static_cast<Services&>(services_));
  if (!half) return half.error();
  const auto opened = [&]() -> Result<void> {
    try {
      return (*half)->open(queue);
    } catch (...) {
      return current_error(std::string(to_string(queue.lane)) + " cannot be opened");
    }
  }();
  TROUPE_CUDA_PROPAGATE(opened);
  TROUPE_CUDA_TRY(cudaStreamSynchronize(services_.stream(queue)));
  libraries_.open(queue.lane, *half);  // not before: see there
  return {};
}

Result<Mark> CudaEngine::mark(Queue queue) {
  const auto its_stream = services_.stream(queue);
  auto mark = marks_.take(queue);
  if (!mark) return mark;
  const auto status = cudaEventRecord(marks_.event(*mark), its_stream);
  if (status == cudaSuccess) return mark;
  marks_.give_back(*mark);
  return failure(status, "cudaEventRecord");
}

Result<void> CudaEngine::wait(Queue queue, Mark mark) {
  TROUPE_CUDA_TRY(cudaStreamWaitEvent(services_.stream(queue), marks_.event(mark), 0));
  return {};
}

/// Asked most of the time while anything is under way. The runtime's query costs six times as much
/// as the driver's, and leaves "not ready" behind as this thread's last error.
Result<bool> CudaEngine::reached(Mark mark) {
  services_.enter();
  const auto status = api_.cuEventQuery(marks_.event(mark));
  if (status == CUDA_SUCCESS) return true;
  if (status != CUDA_ERROR_NOT_READY) return failure(status, "cuEventQuery");
  if (marks_.queue(mark).lane == Lane::collective) TROUPE_CUDA_PROPAGATE(collectives_->health());
  return false;
}

void CudaEngine::release(Mark mark) {
  marks_.give_back(mark);
}

Result<void> CudaEngine::call_when_reached(Queue queue, void (*done)(void*), void* argument) {
  TROUPE_CUDA_TRY(cudaLaunchHostFunc(services_.stream(queue), done, argument));
  return {};
}

Result<void> CudaEngine::synchronize(Queue queue) {
  TROUPE_CUDA_TRY(cudaStreamSynchronize(services_.stream(queue)));
  return {};
}

Result<void> CudaEngine::suffer(memory::FaultKind kind, Queue queue) {
  const auto its_stream = services_.stream(queue);
  switch (kind) {
    case memory::FaultKind::illegal_address:
      TROUPE_CUDA_TRY(faults::illegal_address(its_stream));
      return {};
    case memory::FaultKind::trap: TROUPE_CUDA_TRY(faults::trap(its_stream)); return {};
    case memory::FaultKind::assertion: TROUPE_CUDA_TRY(faults::assertion(its_stream)); return {};
    case memory::FaultKind::misaligned:
      TROUPE_CUDA_TRY(faults::misaligned(its_stream, services_.scratch(queue)));
      return {};
    case memory::FaultKind::kill:
    case memory::FaultKind::segv:
    case memory::FaultKind::hang:
    case memory::FaultKind::exit:
    case memory::FaultKind::device_failure: break;
  }
  return Error{Errc::unsupported, 0, std::string(to_string(kind)) + " is not a fault of the GPU"};
}

Result<void> CudaEngine::order_wrong_products(std::uint32_t count) {
  if (!services_.product_checks().on()) return Engine::order_wrong_products(count);
  services_.product_checks().order_wrong(count);
  return {};
}

Result<void> CudaEngine::begin_probe() {
  services_.enter();
  TROUPE_CUDA_TRY(cudaMemcpyAsync(probe_memory_.get(), scratch_cells_.get(), kProbeBytes,
                                  cudaMemcpyHostToDevice, services_.aside()));
  TROUPE_CUDA_TRY(cudaEventRecord(probed_.get(), services_.aside()));
  return {};
}

Result<bool> CudaEngine::probe_ended() {
  services_.enter();
  const auto status = api_.cuEventQuery(probed_.get());
  if (status == CUDA_ERROR_NOT_READY) return false;
  if (status != CUDA_SUCCESS) return failure(status, "cuEventQuery");
  return true;
}

bool CudaEngine::is_still_after(const Error& error) const {
  switch (static_cast<cudaError_t>(error.native)) {
    case cudaErrorIllegalAddress:
    case cudaErrorIllegalInstruction:
    case cudaErrorLaunchFailure:
    case cudaErrorAssert:
    case cudaErrorMisalignedAddress: return error.code == Errc::device_lost;
    default: return false;
  }
}

}  // namespace troupe::host::cuda

namespace troupe::host {

Result<std::unique_ptr<Engine>> make_engine(const EngineOptions& asked) {
  if (asked.other_hosts || asked.channels != 0) cuda::enough_connections(asked.channels);
  cuda::forget_precision();
  const auto api = cuda::driver();
  if (!api) return api.error();
  const auto count = cuda::count_devices(**api);
  if (!count) return count.error();
  if (*count == 0) return Error{Errc::unsupported, 0, "no GPU"};
  EngineOptions options = asked;
  options.device %= *count;
  auto description = cuda::describe_device(**api, options.device);
  if (!description) return description.error();
  const auto facts = cuda::facts_of_device(**api, options.device);
  if (!facts) return facts.error();
  if (facts->compute_major * 10 + facts->compute_minor < 75 || !facts->shares_memory) {
    return Error{Errc::unsupported, 0,
                 fmt::format("{}: compute capability {}.{}, {}: needs 7.5 and shareable memory",
                             description->name, facts->compute_major, facts->compute_minor,
                             facts->shares_memory ? "shareable memory" : "no shareable memory")};
  }
  auto engine = std::make_unique<cuda::CudaEngine>(options, **api, std::move(*description), *facts);
  if (auto started = engine->start(); !started) return started.error();
  return std::unique_ptr<Engine>(std::move(engine));
}

}  // namespace troupe::host
