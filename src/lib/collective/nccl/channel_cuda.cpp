#include "lib/collective/nccl/channel_cuda.hpp"

#include <atomic>
#include <chrono>
#include <thread>

#include "lib/collective/nccl/communicator_cuda.hpp"
#include "lib/collective/nccl/status_cuda.hpp"

namespace troupe::host::cuda {
namespace {

/// Channels that NCCL may use of its own for one of ours: it takes memory for each.
constexpr int kNcclChannels = 4;
constexpr std::chrono::microseconds kTransferPollInterval{20};
/// Looks at the stream between those at what NCCL has noticed, which are dearer.
constexpr int kLooks = 50;

/// The sending end is rank 0, which has the unique id. Its stream carries nothing else: a transfer
/// waits on the GPU for the other end, and nothing may stand behind it.
class NcclChannelEnd final : public ChannelEnd {
 public:
  NcclChannelEnd(bool receives, const Services& services)
      : receives_(receives),
        services_(services),
        communicator_(services.device(), Communicator::Channels{.most = kNcclChannels},
                      services.in_process()) {}

  Result<std::vector<std::byte>> invite() override {
    services_.enter();
    auto id = communicator_.contribute(0, 2);
    if (id.ok()) invitation_ = *id;
    return id;
  }

  Result<void> connect(const std::vector<std::byte>& invitation) override {
    services_.enter();
    return reason(form(receives_ ? invitation : invitation_));
  }

  Result<void> transfer(std::byte* data, std::uint64_t bytes) override {
    services_.enter();
    const auto launched = communicator_.use([&](ncclComm_t comm, int, int) -> Result<void> {
      if (receives_) {
        TROUPE_NCCL_TRY(ncclRecv(data, bytes, ncclInt8, peer(), comm, stream_.get()));
      } else {
        TROUPE_NCCL_TRY(ncclSend(data, bytes, ncclInt8, peer(), comm, stream_.get()));
      }
      return {};
    });
    if (launched.ok()) return reason(await());
    if (launched.code() == Errc::peer_lost) {  // part of it may run
      communicator_.abort();
      (void)await();
    }
    return reason(launched);
  }

  void abort() override {
    aborted_.store(true);
    communicator_.close();
  }

 private:
  [[nodiscard]] int peer() const noexcept { return receives_ ? 0 : 1; }

  Result<void> form(const std::vector<std::byte>& id) {
    TROUPE_CUDA_TRY(cudaStreamCreateWithFlags(stream_.out(), cudaStreamNonBlocking));
    TROUPE_CUDA_PROPAGATE(communicator_.connect(receives_ ? 1 : 0, 2, {id, {}}));
    // NCCL connects the two when the first message is queued, and blocks until both have got there.
    const Link link{static_cast<std::uint32_t>(peer()), receives_};
    TROUPE_CUDA_PROPAGATE(communicator_.open({link}, stream_.get()));
    return await();
  }

  /// Until the stream is empty, also after an abort: what runs there writes to memory.
  Result<void> await() {
    Result<void> noticed;
    for (int look = 1;; ++look) {
      const auto status = cudaStreamQuery(stream_.get());
      if (status == cudaSuccess) return noticed;
      if (status != cudaErrorNotReady) return failure(status, "cudaStreamQuery");
      (void)cudaGetLastError();  // else a later call trips over it
      if (look % kLooks == 0 && noticed.ok()) {
        noticed = communicator_.health();
        if (!noticed.ok()) communicator_.abort();  // else it would run for ever
      }
      std::this_thread::sleep_for(kTransferPollInterval);
    }
  }

  /// What an abort has ended tells nothing of the other end, nor what has ended well of itself.
  [[nodiscard]] Result<void> reason(const Result<void>& outcome) const {
    const bool sound = outcome.code() != Errc::device_lost && outcome.code() != Errc::device_failed;
    if (aborted_ && sound) return Error{Errc::world_reformed, 0, "the channel was given up"};
    return outcome;
  }

  const bool receives_;
  const Services& services_;
  std::atomic<bool> aborted_{false};
  std::vector<std::byte> invitation_;
  Stream stream_;
  Communicator communicator_;
};

}  // namespace

std::shared_ptr<ChannelEnd> make_channel_end(bool receives, const Services& services) {
  return std::make_shared<NcclChannelEnd>(receives, services);
}

}  // namespace troupe::host::cuda
