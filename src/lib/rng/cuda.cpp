#include <troupe/lib/rng.hpp>

#include <array>

#include "device_host/engine/cuda/library.hpp"
#include "lib/rng/kernels.cuh"
#include "lib/rng/laws/law_of.hpp"
#include "lib/rng/sequences/sequences.hpp"

namespace troupe::host::cuda {
namespace {

template <class Op>
kernels::RandomRange range_of(const Op& op) {
  return {op.seed, rng_numbers::position_of(op), op.n};
}

class Rng final : public LibraryHalfOf<Rng, rng::Operations> {
 public:
  explicit Rng(Services& services) : services_(services) {}
  Result<void> open(Queue queue) override;
  Result<void> run(const rng::Bits& op, const Call& call);
  Result<void> run(const rng::Uniform& op, const Call& call);
  Result<void> run(const rng::Normal& op, const Call& call);
  Result<void> run(const rng::LogNormal& op, const Call& call);
  template <rng::Law kLaw>
  Result<void> run(const rng::Distributed<kLaw>& op, const Call& call);
  Result<void> run(const rng::Discrete& op, const Call& call);
  Result<void> run(const rng::Sequence& op, const Call& call);

 private:
  Services& services_;
  std::array<Workspace, kQueueCount> rooms_;  ///< of sequences, by queue
  rng_numbers::Sequences sequences_{rng_numbers::Sequences::Where::device};
};

Result<void> Rng::open(Queue queue) {
  if (queue.detour) return {};
  TROUPE_CUDA_TRY(kernels::preload_rng());
  const WarmUp warm_up(services_, queue);
  const auto call = warm_up.call();
  for (const auto dtype : WarmUp::kReals) {
    TROUPE_CUDA_PROPAGATE(run(rng::Uniform{dtype, 64, 0, 0, 0, WarmUp::part(1)}, call));
    TROUPE_CUDA_PROPAGATE(run(rng::Normal{dtype, 64, 0, 0, 0, 0, 1, WarmUp::part(2)}, call));
    TROUPE_CUDA_PROPAGATE(run(rng::LogNormal{dtype, 64, 0, 0, 0, 0, 1, WarmUp::part(3)}, call));
  }
  return {};
}

Result<void> Rng::run(const rng::Bits& op, const Call& call) {
  auto range = range_of(op);
  if (op.dtype == DType::u64) range.n *= 2;
  TROUPE_CUDA_TRY(
      kernels::bits(services_.launch(call.queue()), range, call.at<std::uint32_t>(op.destination)));
  return {};
}

Result<void> Rng::run(const rng::Uniform& op, const Call& call) {
  return with_real(op.dtype, [&]<class T>(T) -> Result<void> {
    TROUPE_CUDA_TRY(
        kernels::uniform(services_.launch(call.queue()), range_of(op), call.at<T>(op.destination)));
    return {};
  });
}

Result<void> Rng::run(const rng::Normal& op, const Call& call) {
  return with_real(op.dtype, [&]<class T>(T) -> Result<void> {
    TROUPE_CUDA_TRY(kernels::normal(services_.launch(call.queue()), range_of(op),
                                    static_cast<T>(op.mean), static_cast<T>(op.deviation),
                                    call.at<T>(op.destination)));
    return {};
  });
}

Result<void> Rng::run(const rng::LogNormal& op, const Call& call) {
  return with_real(op.dtype, [&]<class T>(T) -> Result<void> {
    TROUPE_CUDA_TRY(kernels::log_normal(services_.launch(call.queue()), range_of(op),
                                        static_cast<T>(op.mean), static_cast<T>(op.deviation),
                                        call.at<T>(op.destination)));
    return {};
  });
}

template <rng::Law kLaw>
Result<void> Rng::run(const rng::Distributed<kLaw>& op, const Call& call) {
  const auto queue = [&]<class T>(T) -> Result<void> {
    TROUPE_CUDA_TRY(kernels::draw(services_.launch(call.queue()), range_of(op),
                                  rng_numbers::law_of(op), call.at<T>(op.destination)));
    return {};
  };
  if constexpr (kLaw >= rng::Law::poisson) {
    return queue(std::uint32_t{});
  } else {
    return with_real(op.dtype, queue);
  }
}

Result<void> Rng::run(const rng::Discrete& op, const Call& call) {
  const rng_numbers::DiscreteLaw law{call.at<const double>(op.threshold),
                                     call.at<const std::uint32_t>(op.alias),
                                     static_cast<std::uint32_t>(op.categories)};
  TROUPE_CUDA_TRY(kernels::draw(services_.launch(call.queue()), range_of(op), law,
                                call.at<std::uint32_t>(op.destination)));
  return {};
}

Result<void> Rng::run(const rng::Sequence& op, const Call& call) {
  const auto queue = call.queue();
  auto& room = rooms_[queue.index()];
  const auto made = sequences_.make(
      op, queue.index(), services_.stream(queue), call.at(op.destination),
      [&](std::size_t bytes) -> Result<void*> {
        TROUPE_CUDA_PROPAGATE(room.reserve(services_, queue, bytes));
        return room.get();
      },
      [&](void* to, const void* from, std::size_t bytes) -> Result<void> {
        TROUPE_CUDA_TRY(
            cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, services_.stream(queue)));
        return {};
      });
  if (!made && made.code() != Errc::unsupported) return prefer_context(made.error());
  return made;
}

}  // namespace
}  // namespace troupe::host::cuda

TROUPE_MODULE_HALF(troupe::host::cuda::Rng, cuda)
