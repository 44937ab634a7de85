#include "lib/collective/nccl/communicator_cuda.hpp"

#include <optional>
#include <system_error>
#include <thread>

#include "common/core/log.hpp"
#include "lib/collective/nccl/contribution_cuda.hpp"
#include "lib/collective/nccl/status_cuda.hpp"

namespace troupe::host::cuda {
namespace {

/// How long an abort waits for a call on the communicator that is about to return, before it takes
/// it for stuck.
constexpr std::chrono::milliseconds kLaunchGrace{10};
constexpr std::chrono::microseconds kPollInterval{20};

std::size_t place_of(const Link& link) {
  return 2 * std::size_t{link.peer} + (link.receive ? 1 : 0);
}

/// A byte over each of the links, in one group.
Result<void> send_a_byte(const std::vector<Link>& links, ncclComm_t comm, cudaStream_t stream) {
  void* cells = nullptr;
  TROUPE_CUDA_TRY(cudaMallocAsync(&cells, 2, stream));
  auto* const sent = static_cast<std::byte*>(cells);
  auto* const received = sent + 1;
  TROUPE_NCCL_TRY(ncclGroupStart());
  auto queued = ncclSuccess;
  for (const auto& [peer, receive] : links) {
    const int rank = static_cast<int>(peer);
    queued = receive ? ncclRecv(received, 1, ncclInt8, rank, comm, stream)
                     : ncclSend(sent, 1, ncclInt8, rank, comm, stream);
    if (queued != ncclSuccess) break;
  }
  const auto ended = ncclGroupEnd();
  (void)cudaFreeAsync(cells, stream);
  TROUPE_NCCL_TRY(queued);
  TROUPE_NCCL_TRY(ended);
  return {};
}

}  // namespace

/// One connect(); what its thread works on.
struct Communicator::Attempt {
  Attempt(int rank_, int size_, const std::vector<Contributed>& contributions)
      : rank(rank_), size(size_) {
    for (const auto& [id, card, has_id] : contributions) {
      if (has_id != 0) ids.push_back(id);
      cards.push_back(card);
    }
  }

  Result<void> initialise(Channels channels);
  Result<void> warm_up(Channels channels);
  /// Makes the direct way ready where all ranks can; without an error there is none where one of
  /// them cannot.
  Result<void> connect_directly(Shared& shared);
  /// Sums the cell up over all ranks.
  Result<void> sum_up();

  const int rank, size;
  std::vector<ncclUniqueId> ids;
  std::vector<PeerMemory::Card> cards;  ///< of all ranks
  std::shared_ptr<Direct> direct;
  std::atomic<bool> abandoned{false};
  // The thread's own. Memory is freed after the communicator is given up: freeing waits for what
  // runs.
  ncclComm_t handle = nullptr;
  DeviceMemory cell;
  Stream stream;
  std::optional<Result<void>> outcome;  ///< guarded by Shared::state
};

Result<void> Communicator::Attempt::initialise(Channels channels) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 1;
  config.splitShare = 0;
  if (channels.least != 0) config.minCTAs = channels.least;
  if (channels.most != 0) config.maxCTAs = channels.most;
  if (ids.size() == 1) {
    TROUPE_CUDA_TRY(ncclCommInitRankConfig(&handle, size, ids.front(), rank, &config));
  } else {
    TROUPE_CUDA_TRY(ncclCommInitRankScalable(&handle, size, rank, static_cast<int>(ids.size()),
                                             ids.data(), &config));
  }
  return {};
}

/// NCCL connects ranks at the first collective: an all-reduce of one float takes that out of the
/// first real one.
Result<void> Communicator::Attempt::warm_up(Channels channels) {
  TROUPE_CUDA_TRY(cudaMalloc(cell.out(), sizeof(float)));
  TROUPE_CUDA_TRY(cudaStreamCreateWithFlags(stream.out(), cudaStreamNonBlocking));
  TROUPE_CUDA_TRY(cudaMemsetAsync(cell.get(), 0, sizeof(float), stream.get()));
  TROUPE_CUDA_TRY(cudaStreamSynchronize(stream.get()));
  TROUPE_CUDA_PROPAGATE(initialise(channels));
  return sum_up();
}

Result<void> Communicator::Attempt::connect_directly(Shared& shared) {
  {
    const std::lock_guard lock(shared.state);
    if (!abandoned) direct = std::move(shared.offered);  // else it is another attempt's
  }
  if (!PeerMemory::can_meet(cards)) {  // known to all ranks
    direct.reset();
    return {};
  }
  const auto met = direct != nullptr
                       ? direct->meet(rank, cards, [this] { return abandoned.load(); })
                       : Error{Errc::world_reformed, 0, "it was given up"};
  if (!met.ok() && !abandoned)
    log::debug("engine", "small collectives go by NCCL: {}", met.error().to_string());
  // Either all of them take this way, or none.
  const float ready = met.ok() ? 1 : 0;
  float count = 0;
  TROUPE_CUDA_TRY(
      cudaMemcpyAsync(cell.get(), &ready, sizeof ready, cudaMemcpyHostToDevice, stream.get()));
  TROUPE_CUDA_PROPAGATE(sum_up());
  TROUPE_CUDA_TRY(
      cudaMemcpyAsync(&count, cell.get(), sizeof count, cudaMemcpyDeviceToHost, stream.get()));
  TROUPE_CUDA_TRY(cudaStreamSynchronize(stream.get()));
  if (count != static_cast<float>(size)) direct.reset();
  return {};
}

Result<void> Communicator::Attempt::sum_up() {
  TROUPE_NCCL_TRY(
      ncclAllReduce(cell.get(), cell.get(), 1, ncclFloat32, ncclSum, handle, stream.get()));
  // Polled, not waited for: a peer that is gone would keep the kernel running for ever.
  while (!abandoned) {
    const auto status = cudaStreamQuery(stream.get());
    if (status == cudaSuccess) return {};
    if (status != cudaErrorNotReady) return failure(status, "ncclAllReduce");
    (void)cudaGetLastError();
    ncclResult_t noticed = ncclSuccess;
    TROUPE_NCCL_TRY(ncclCommGetAsyncError(handle, &noticed));
    if (const auto code = classify_noticed(noticed); code != Errc::ok)
      return failure(noticed, "ncclAllReduce", code);
    std::this_thread::sleep_for(kPollInterval);
  }
  return Error{Errc::peer_lost, 0, "the communicator was given up while it was being formed"};
}

Result<void> Communicator::rehearse(int device) {
  TROUPE_CUDA_TRY(cudaSetDevice(device));
  ncclUniqueId id{};
  TROUPE_CUDA_TRY(ncclGetUniqueId(&id));
  Attempt alone(0, 1, {{id, {}, 1}});
  auto outcome = alone.warm_up(Channels::exactly(1));  // NCCL takes a GiB for all it can use
  if (alone.handle != nullptr) (void)ncclCommDestroy(alone.handle);  // it has no peers
  return outcome;
}

Communicator::Communicator(int device, Channels channels, bool in_process, Directs* directs)
    : end_timeout_(in_process ? kEndTimeoutInProcess : kEndTimeout),
      directs_(directs),
      shared_(std::make_shared<Shared>(device, channels)) {}

Communicator::~Communicator() {
  abort();
  std::unique_lock lock(shared_->state);
  const bool ended =
      shared_->changed.wait_for(lock, end_timeout_, [&] { return shared_->background == 0; });
  if (!ended) log::warn("engine", "{} communicators are still being given up", shared_->background);
}

Result<std::vector<std::byte>> Communicator::contribute(int rank, int size,
                                                        const std::function<bool()>& given_up) {
  Contributed given;
  if (rank % kRanksPerRoot == 0) {
    TROUPE_CUDA_TRY(ncclGetUniqueId(&given.id));
    given.has_id = 1;
  }
  std::shared_ptr<Direct> offered;
  if (directs_ != nullptr && size > 1) {
    auto made = directs_->make(shared_->device, size);
    if (made.ok()) {
      offered = std::move(*made);
      given.card = offered->card();
    } else if (made.code() != Errc::unsupported) {
      log::debug("engine", "small collectives go by NCCL: {}", made.error().to_string());
    }
  }
  {
    const std::lock_guard lock(shared_->state);
    if (given_up && given_up())
      return Error{Errc::peer_lost, 0, "the communicator was given up before it was formed"};
    shared_->offered = std::move(offered);
  }
  const auto* bytes = reinterpret_cast<const std::byte*>(&given);
  return std::vector<std::byte>(bytes, bytes + sizeof given);
}

Result<void> Communicator::connect(int rank, int size,
                                   const std::vector<std::vector<std::byte>>& contributions) {
  const auto given = contributed(contributions);
  if (!given) return given.error();
  const auto attempt = std::make_shared<Attempt>(rank, size, *given);
  if (attempt->ids.empty()) return Error{Errc::invalid, 0, "no rank contributed an NCCL unique id"};

  std::unique_lock lock(shared_->state);
  if (shared_->handle.load() != nullptr || shared_->attempt != nullptr) {
    return Error{Errc::invalid, 0, "there is a communicator already"};
  }
  if (shared_->closed)
    return Error{Errc::world_reformed, 0, "the communicator was given up before it was formed"};
  if (shared_->background >= kMaxBackground) {
    return Error{Errc::device_lost, 0, "too many communicators of this process are stuck in NCCL"};
  }
  try {
    std::thread(form, shared_, attempt).detach();
  } catch (const std::system_error& error) {
    return Error{Errc::library, error.code().value(), std::string("thread: ") + error.what()};
  }
  shared_->attempt = attempt;
  ++shared_->background;
  shared_->changed.wait(lock, [&] { return attempt->outcome.has_value() || attempt->abandoned; });
  if (attempt->abandoned) {
    return Error{Errc::peer_lost, 0, "the communicator was given up while it was being formed"};
  }
  return *attempt->outcome;
}

void Communicator::form(const std::shared_ptr<Shared>& shared,
                        const std::shared_ptr<Attempt>& attempt) {
  (void)cudaSetDevice(shared->device);
  auto outcome = attempt->warm_up(shared->channels);
  if (outcome.ok()) outcome = attempt->connect_directly(*shared);
  if (!outcome && attempt->handle != nullptr) {
    (void)ncclCommAbort(std::exchange(attempt->handle, nullptr));
  }
  attempt->cell.reset();
  attempt->stream.reset();
  std::unique_lock lock(shared->state);
  if (outcome.ok() && !attempt->abandoned) {
    shared->rank = attempt->rank;
    shared->size = attempt->size;
    ++shared->formed;
    shared->handle = attempt->handle;
    shared->direct = std::move(attempt->direct);
  } else if (outcome.ok()) {
    lock.unlock();
    (void)ncclCommAbort(attempt->handle);
    lock.lock();
  }
  // abort() has taken an abandoned attempt out, and there may be another by now.
  if (shared->attempt == attempt) shared->attempt = nullptr;
  attempt->outcome = std::move(outcome);
  --shared->background;
  shared->changed.notify_all();
}

void Communicator::abort() {
  const std::lock_guard lock(shared_->state);
  if (shared_->attempt != nullptr) {
    shared_->attempt->abandoned = true;
    shared_->attempt = nullptr;
    shared_->changed.notify_all();
  }
  if (shared_->offered != nullptr) {
    shared_->offered->withdraw();
    directs_->retire(std::move(shared_->offered));
  }
  const ncclComm_t handle = shared_->handle.exchange(nullptr);
  if (shared_->direct != nullptr) {
    shared_->direct->give_up();
    directs_->retire(std::move(shared_->direct));
  }
  if (handle == nullptr) return;
  std::thread(give_up, shared_, handle).detach();
  ++shared_->background;
}

void Communicator::close() {
  {
    const std::lock_guard lock(shared_->state);
    shared_->closed = true;
  }
  abort();
}

void Communicator::give_up(const std::shared_ptr<Shared>& shared, ncclComm_t handle) {
  // No new call can find the handle. One that is under way usually returns at once; one that does
  // not is waiting for a peer, and only the abort will end it.
  if (shared->launching.try_lock_for(kLaunchGrace)) shared->launching.unlock();
  (void)cudaSetDevice(shared->device);
  (void)ncclCommAbort(handle);
  const std::lock_guard lock(shared->state);
  --shared->background;
  shared->changed.notify_all();
}

bool Communicator::is_open(const Link& link) const {
  const auto at = place_of(link);
  return shared_->open_on == shared_->formed && at < shared_->open.size() && shared_->open[at];
}

Result<void> Communicator::open(const std::vector<Link>& links, cudaStream_t stream) {
  (void)cudaSetDevice(shared_->device);
  return use([&](ncclComm_t comm, int, int size) -> Result<void> {
    const auto formed = shared_->formed.load();
    const auto opened = send_a_byte(links, comm, stream);
    // What a call says that an abort has ended is of no interest.
    if (shared_->handle.load() != comm || shared_->formed != formed) {
      return Error{Errc::world_reformed, 0, "the communicator was given up"};
    }
    if (!opened.ok()) return opened;
    if (std::exchange(shared_->open_on, formed) != formed) shared_->open.clear();
    shared_->open.resize(2 * static_cast<std::size_t>(size));
    for (const auto& link : links) shared_->open[place_of(link)] = true;
    return {};
  });
}

void Communicator::add_memory(std::byte* base, std::uint64_t bytes) {
  (void)use([&](ncclComm_t comm, int, int) -> Result<void> {
    const auto formed = shared_->formed.load();
    if (std::exchange(shared_->memory_on, formed) != formed) shared_->memory.clear();
    shared_->drop_leaving(comm);
    if (shared_->memory.contains(base)) return {};
    void* handle = nullptr;
    const auto status = ncclCommRegister(comm, base, bytes, &handle);
    if (status == ncclSuccess)
      shared_->memory.emplace(base, handle);
    else
      log::warn("engine", "{}", failure(status, "ncclCommRegister").to_string());
    return {};
  });
}

/// Within use(), by whoever is next.
void Communicator::Shared::drop_leaving(ncclComm_t comm) {
  const auto bases = [&] {
    const std::lock_guard lock(state);
    return std::exchange(leaving, {});
  }();
  for (auto* const base : bases) {
    const auto known = memory.find(base);
    if (memory_on != formed || known == memory.end()) continue;
    const auto status = ncclCommDeregister(comm, known->second);
    if (status != ncclSuccess)
      log::warn("engine", "{}", failure(status, "ncclCommDeregister").to_string());
    memory.erase(known);
  }
}

void Communicator::remove_memory(std::byte* base) {
  {
    const std::lock_guard lock(shared_->state);
    const bool under_way = !shared_->leaving.empty();
    shared_->leaving.push_back(base);
    if (under_way || shared_->handle.load() == nullptr) return;
    ++shared_->background;
  }
  std::thread([shared = shared_] {
    (void)cudaSetDevice(shared->device);
    {
      const std::lock_guard lock(shared->launching);
      const ncclComm_t comm = shared->handle.load();
      if (comm != nullptr) shared->drop_leaving(comm);
    }
    const std::lock_guard lock(shared->state);
    --shared->background;
    shared->changed.notify_all();
  }).detach();
}

Result<void> Communicator::health() {
  const std::unique_lock lock(shared_->launching, std::try_to_lock);
  if (!lock) return {};
  const ncclComm_t handle = shared_->handle.load();
  if (handle == nullptr) return {};
  ncclResult_t noticed = ncclSuccess;
  const auto asked = ncclCommGetAsyncError(handle, &noticed);
  if (asked != ncclSuccess) noticed = asked;
  if (const auto code = classify_noticed(noticed); code != Errc::ok)
    return failure(noticed, "ncclCommGetAsyncError", code);
  return {};
}

}  // namespace troupe::host::cuda
