#include "device_host/engine/cuda/cuda_engine.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "device_host/engine/cuda/faults.hpp"
#include "device_host/engine/cuda/kernels.hpp"

namespace troupe::host::cuda {
namespace {

constexpr std::size_t kProbeBytes = 8;

cudaError_t make_stream(Stream& stream, bool urgent) {
  int least = 0, greatest = 0;
  const auto known = cudaDeviceGetStreamPriorityRange(&least, &greatest);
  return known == cudaSuccess ? cudaStreamCreateWithPriority(stream.out(), cudaStreamNonBlocking,
                                                             urgent ? greatest : least)
                              : known;
}

}  // namespace

CudaEngine::CudaEngine(const EngineOptions& options, const Driver& api, DeviceInfo description,
                       const DeviceFacts& facts)
    : device_(options.device),
      other_hosts_(options.other_hosts),
      reproducible_(options.reproducible),
      register_buffers_(options.register_buffers),
      in_process_(options.in_process),
      memory_limit_(options.memory_limit),
      api_(api),
      description_(std::move(description)),
      facts_(facts),
      rdma_(facts.rdma) {}

CudaEngine::~CudaEngine() {
  if (collectives_ != nullptr) collectives_->abort();
  enter();  // for the libraries' ends
}

Result<void> CudaEngine::start() {
  // Before the context, which starts threads: see the half.
  auto half = make_half(library_of(Lane::collective), "cuda", static_cast<Services&>(*this));
  if (!half) return half.error();
  collectives_.reset(static_cast<CollectiveHalf*>(half->release()));
  libraries_[static_cast<std::size_t>(Lane::collective)] = collectives_.get();
  for (auto& library : located(collectives_->stands_on()))
    description_.libraries.push_back(std::move(library));
  const auto before = free_memory_of(description_.bus_id);
  TROUPE_CUDA_TRY(cudaSetDevice(device_));
  TROUPE_CUDA_TRY(cudaFree(nullptr));
  if (const auto after = free_memory_of(description_.bus_id); before && after)
    memory_use_.add("context", static_cast<std::int64_t>(*before - *after));
  TROUPE_CUDA_TRY(kernels::preload());
  TROUPE_CUDA_TRY(faults::preload());
  has_conditions_ = kernels::preload_condition() == cudaSuccess;
  (void)cudaGetLastError();
  TROUPE_CUDA_TRY(cudaMallocHost(scratch_cells_.out(), kScratchCellBytes));
  TROUPE_CUDA_TRY(make_stream(detour_, false));
  TROUPE_CUDA_TRY(make_stream(upload_, false));
  TROUPE_CUDA_TRY(cudaEventCreateWithFlags(probed_.out(), cudaEventDisableTiming));
  TROUPE_CUDA_TRY(cudaMalloc(probe_memory_.out(), kProbeBytes));
  return marks_.start();
}

Result<void> CudaEngine::run(const OperationInfo& info, const std::byte* op, const Call& call) {
  auto* const library = libraries_[static_cast<std::size_t>(call.queue().lane)].load();
  check(library != nullptr, "the lane is not open");
  enter();
  return library->run(info, op, call);
}

bool CudaEngine::blocks(const OperationInfo& info, const std::byte* op, const Call& call) {
  auto* const library = libraries_[static_cast<std::size_t>(call.queue().lane)].load();
  check(library != nullptr, "the lane is not open");
  // Where it cannot say, its own thread finds out.
  return asked(true, [&] { return library->blocks(info, op, call); });
}

void CudaEngine::discard_library(Lane lane) {
  const auto index = static_cast<std::size_t>(lane);
  libraries_[index].store(nullptr);
  discarded_.push_back(std::exchange(loaded_[index], nullptr));
}

std::vector<LoadedLibrary> CudaEngine::stands_on(Lane lane) const {
  const auto* const library = libraries_[static_cast<std::size_t>(lane)].load();
  if (library == nullptr) return {};
  return asked(std::vector<LoadedLibrary>(), [&] { return located(library->stands_on()); });
}

bool CudaEngine::remembers_contents(Lane lane) const {
  const auto* const library = libraries_[static_cast<std::size_t>(lane)].load();
  return library != nullptr && asked(true, [&] { return library->remembers_contents(); });
}

bool CudaEngine::overlaps(Lane lane) const {
  const auto* const library = libraries_[static_cast<std::size_t>(lane)].load();
  return library != nullptr && asked(false, [&] { return library->overlaps(); });
}

void CudaEngine::overwrites(Lane lane, const Operand& range) {
  enter();
  libraries_[static_cast<std::size_t>(lane)].load()->overwrites(range);
}

std::vector<std::vector<std::byte>> CudaEngine::take_new_plans(Lane lane) {
  auto* const library = libraries_[static_cast<std::size_t>(lane)].load();
  if (library == nullptr) return {};
  enter();
  return asked(std::vector<std::vector<std::byte>>(), [&] { return library->take_new_plans(); });
}

void CudaEngine::adopt_plan(Lane lane, std::span<const std::byte> plan) {
  enter();
  auto* const library = libraries_[static_cast<std::size_t>(lane)].load();
  asked(0, [&] { return library->adopt_plan(plan), 0; });
}

Result<std::shared_ptr<std::byte>> CudaEngine::scratch_memory(Queue queue, std::uint64_t bytes) {
  auto memory = reserve(queue, std::max<std::uint64_t>(bytes, 1));
  if (!memory) return memory.error();
  TROUPE_CUDA_TRY(cudaMemsetAsync(memory->get(), 0, bytes, stream(queue)));
  return std::shared_ptr<std::byte>(
      static_cast<std::byte*>(memory->release()),
      [this, queue](std::byte* base) { (void)cudaFreeAsync(base, stream(queue)); });
}

void CudaEngine::enter() const {
  thread_local int current = -1;
  if (current == device_) return;
  (void)cudaSetDevice(device_);  // what goes wrong here goes wrong in the call that follows
  current = device_;
}

cudaStream_t CudaEngine::stream(Queue queue) const {
  enter();
  const auto& state = queues_[queue.index()];
  check(state.stream != nullptr, "the queue is not open");
  return state.stream;
}

Result<void> CudaEngine::write_addresses(Queue queue, void** destination,
                                         std::span<void* const> addresses) const {
  for (std::size_t at = 0; at < addresses.size(); at += kernels::kAddresses) {
    kernels::Addresses some{};
    const auto count = std::min(kernels::kAddresses, addresses.size() - at);
    std::copy_n(addresses.begin() + static_cast<std::ptrdiff_t>(at), count, some.address);
    TROUPE_CUDA_TRY(kernels::write_addresses(launch(queue), destination + at, some, count));
  }
  return {};
}

Result<void> CudaEngine::write_addresses(Queue queue, void** destination,
                                         const kernels::Places& places, std::int64_t count,
                                         std::int64_t* outside) const {
  TROUPE_CUDA_TRY(kernels::write_addresses(launch(queue), destination, places,
                                           static_cast<std::uint64_t>(count),
                                           reinterpret_cast<unsigned long long*>(outside)));
  return {};
}

Result<void> CudaEngine::open_queue(Queue queue) {
  enter();
  const bool own = queue.lane < Lane::first_library;
  return memory_use_.measured(own ? "queues" : std::string(to_string(queue.lane)),
                              [&] { return open_measured(queue); });
}

Result<void> CudaEngine::open_measured(Queue queue) {
  auto& state = queues_[queue.index()];
  auto& stream = queue.side != 0 ? sides_[queue.side - 1u]
                 : queue.detour  ? detour_
                                 : streams_[queue.index()];
  if (!stream) TROUPE_CUDA_TRY(make_stream(stream, queue.lane == Lane::collective));
  state.stream = stream.get();
  if (!state.scratch) {
    auto reserved = reserve(queue, kScratchBytes);
    if (!reserved) return reserved.error();
    state.scratch = std::move(*reserved);
  }
  TROUPE_CUDA_TRY(cudaMemsetAsync(state.scratch.get(), 0, kScratchBytes, state.stream));
  const auto half = library(queue.lane);
  if (!half) return half.error();
  const auto opened = [&]() -> Result<void> {
    try {
      return (*half)->open(queue);
    } catch (...) {
      return current_error(std::string(to_string(queue.lane)) + " cannot be opened");
    }
  }();
  TROUPE_CUDA_PROPAGATE(opened);
  TROUPE_CUDA_TRY(cudaStreamSynchronize(state.stream));
  // Not before: the reactor calls what it finds there, and a half is not to be called by two
  // threads.
  libraries_[static_cast<std::size_t>(queue.lane)].store(*half);
  return {};
}

Result<LibraryHalf*> CudaEngine::library(Lane lane) {
  const auto index = static_cast<std::size_t>(lane);
  if (auto* const open = libraries_[index].load(); open != nullptr) return open;
  auto& half = loaded_[index];
  if (half == nullptr) {
    auto made = make_half(library_of(lane), "cuda", static_cast<Services&>(*this));
    if (!made) return made.error();
    half = std::move(*made);
  }
  return half.get();
}

Result<Mark> CudaEngine::mark(Queue queue) {
  const auto its_stream = stream(queue);
  auto mark = marks_.take(queue);
  if (!mark) return mark;
  const auto status = cudaEventRecord(marks_.event(*mark), its_stream);
  if (status == cudaSuccess) return mark;
  marks_.give_back(*mark);
  return failure(status, "cudaEventRecord");
}

Result<void> CudaEngine::wait(Queue queue, Mark mark) {
  TROUPE_CUDA_TRY(cudaStreamWaitEvent(stream(queue), marks_.event(mark), 0));
  return {};
}

/// Asked most of the time while anything is under way. The runtime's query costs six times as much
/// as the driver's, and leaves "not ready" behind as this thread's last error.
Result<bool> CudaEngine::reached(Mark mark) {
  enter();
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
  TROUPE_CUDA_TRY(cudaLaunchHostFunc(stream(queue), done, argument));
  return {};
}

Result<void> CudaEngine::synchronize(Queue queue) {
  TROUPE_CUDA_TRY(cudaStreamSynchronize(stream(queue)));
  return {};
}

Result<void> CudaEngine::suffer(memory::FaultKind kind, Queue queue) {
  const auto its_stream = stream(queue);
  switch (kind) {
    case memory::FaultKind::illegal_address:
      TROUPE_CUDA_TRY(faults::illegal_address(its_stream));
      return {};
    case memory::FaultKind::trap: TROUPE_CUDA_TRY(faults::trap(its_stream)); return {};
    case memory::FaultKind::assertion: TROUPE_CUDA_TRY(faults::assertion(its_stream)); return {};
    case memory::FaultKind::misaligned:
      TROUPE_CUDA_TRY(faults::misaligned(its_stream, queues_[queue.index()].scratch.get()));
      return {};
    case memory::FaultKind::kill:
    case memory::FaultKind::segv:
    case memory::FaultKind::hang:
    case memory::FaultKind::exit:
    case memory::FaultKind::device_failure: break;
  }
  return Error{Errc::unsupported, 0, std::string(to_string(kind)) + " is not a fault of the GPU"};
}

Result<void> CudaEngine::begin_probe() {
  enter();
  TROUPE_CUDA_TRY(cudaMemcpyAsync(probe_memory_.get(), scratch_cells_.get(), kProbeBytes,
                                  cudaMemcpyHostToDevice, upload_.get()));
  TROUPE_CUDA_TRY(cudaEventRecord(probed_.get(), upload_.get()));
  return {};
}

Result<bool> CudaEngine::probe_ended() {
  enter();
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

Result<void> CudaEngine::count_memory(const std::string& cause,
                                      const std::function<Result<void>()>& work) {
  enter();
  memory_use_.forget(cause);
  return memory_use_.measured(cause, work);
}

Result<void> CudaEngine::fill(Queue queue, void* destination,
                              const std::array<std::uint8_t, 16>& pattern, std::size_t size,
                              std::uint64_t count) const {
  TROUPE_CUDA_TRY(kernels::fill(launch(queue), destination, pattern, size, count));
  return {};
}

std::vector<std::pair<std::string, std::uint64_t>> CudaEngine::memory_use() {
  enter();
  auto all = memory_use_.all();
  all.emplace_back("slabs", slab_bytes_.load());
  return all;
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
